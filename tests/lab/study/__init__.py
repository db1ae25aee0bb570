"""Measures and attacks of the study."""
