"""Configurations: how they are read, and what they come to."""
