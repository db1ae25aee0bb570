"""Kaleido, corrected: noise, spend, and what the printed text has wrong."""
