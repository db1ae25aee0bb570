"""Noise: bits of the operating system, exact laws of integers, and the source that draws them."""

from eyestream.core.noise.laws import Noise, SecureNoise

__all__ = ["Noise", "SecureNoise"]
