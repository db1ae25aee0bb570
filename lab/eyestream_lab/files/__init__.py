"""Recordings in the formats of makers and of data sets, and tables of labels."""
