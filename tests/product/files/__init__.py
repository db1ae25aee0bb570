"""Calibrations and recordings on the disk."""
