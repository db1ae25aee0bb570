"""Releases of version 0.1.0 under a recorded noise tape."""
