"""Recordings and calibrations, in and out."""
