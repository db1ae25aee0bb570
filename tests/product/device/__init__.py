"""Rows in, chunks out: order, repetition, time."""
