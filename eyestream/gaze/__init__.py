"""Gaze samples in, rows of 52 window features out. Pure: it is fed, and has no clock of its own."""
