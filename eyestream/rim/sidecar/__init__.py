"""The service: raw rows in from one link, private chunks out through another."""
