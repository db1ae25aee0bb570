"""Payloads and packets, byte by byte."""
