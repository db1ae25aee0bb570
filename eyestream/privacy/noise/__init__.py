"""Noise: bits of the operating system, exact laws of integers, and the source that draws them."""

from eyestream.privacy.noise.source import Noise, SecureNoise

__all__ = ["Noise", "SecureNoise"]
