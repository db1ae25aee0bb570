"""Payloads, clocks and floods that mean harm; the corpus of such payloads."""
