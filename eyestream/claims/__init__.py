"""Promises about a release: kinds of claims, the facts around one, and a renderer for each reader. Pure."""
