"""The documented examples."""
