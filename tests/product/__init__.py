"""Tests of the product: what a headset, an application and an operator install."""
