"""Noise: bits of the operating system, exact laws of integers, and the source that draws them.

A mechanism asks its noise object for a draw of its law. There is one in production, `SecureNoise`. Tests hand in
others, in code; what a mechanism releases with one of those says that it has no guarantee.
"""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from eyestream.core.noise.bits import Bits, SystemBits

__all__ = ["Law", "Noise", "SecureNoise"]


class Law(Protocol):
    """What a noise source needs of a law."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one draw."""
        ...

    def sample(self, bits: Bits) -> NDArray[np.int64]:
        """One draw."""
        ...


class Noise(Protocol):
    """A source of noise for mechanisms."""

    @property
    def certified(self) -> bool:
        """Whether what is drawn here carries the guarantee of the law."""
        ...

    def draw(self, law: Law) -> NDArray[np.int64]:
        """One draw of `law`, of its shape; no draw is ever handed out twice."""
        ...


class SecureNoise:
    """Noise from entropy that the operating system gives when it is drawn.

    A mechanism draws when the chunk lies before it, after the chunk's budget has been reserved. Nothing is drawn ahead
    and kept: whatever is in memory when a process is copied, two copies never add the same noise to two chunks
    (`NOISE.md` has the argument).
    """

    certified = True

    def __init__(self) -> None:
        self._bits = SystemBits()

    def draw(self, law: Law) -> NDArray[np.int64]:
        """One draw of `law`, of its shape; handed out once."""
        return law.sample(self._bits)
