"""Payloads and inputs that mean harm: what they are made of, a second reading of the format, what a fuzzer drives."""
