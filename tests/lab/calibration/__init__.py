"""Calibration from recordings."""
