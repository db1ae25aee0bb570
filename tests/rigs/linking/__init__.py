"""Attackers who link sessions, and pseudonyms of many sessions, to one person."""
