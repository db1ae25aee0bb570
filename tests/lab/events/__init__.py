"""Detectors of eye movements, against labels."""
