"""Rows that can be recognised in anything a process writes, lives of a sidecar with them, and the search."""
