"""Grants: which application hears which stream, by the private broker's own means, and the list of what was granted."""
