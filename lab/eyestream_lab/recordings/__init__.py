"""Whole data sets: recordings in, private recordings out."""
