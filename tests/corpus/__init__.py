"""Calibration and simulation."""
