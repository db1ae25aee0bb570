"""Uniform random words, which the operating system gives at each draw.

A copy of this process starts with the same memory, so nothing in memory may decide the words. No configuration,
variable or command can choose them. `NOISE.md` has the arguments.
"""

import os
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["Bits", "SystemBits"]


class Bits(Protocol):
    """A source of independent, uniform 32-bit words."""

    def words(self, count: int) -> NDArray[np.uint32]:
        """(count,) uniform words."""
        ...


class SystemBits:
    """Uniform words of the operating system."""

    def words(self, count: int) -> NDArray[np.uint32]:
        """(count,) uniform words that no other draw, of this process or of a copy of it, shares."""
        return np.frombuffer(os.urandom(4 * count), np.uint32)
