"""Where a mechanism's noise comes from.

A mechanism asks its noise object for a draw of its law. There is one in production, `SecureNoise`. Tests hand in
others, in code; what a mechanism releases with one of those says that it has no guarantee.
"""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from eyestream.privacy.noise.bits import SystemBits
from eyestream.privacy.noise.laws import Law

__all__ = ["Noise", "SecureNoise"]


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
    """Noise from entropy that the operating system gives when it is drawn; `eyestream.privacy.noise.laws` has the law.

    A mechanism draws when the chunk lies before it, after the chunk's budget has been reserved. Nothing is drawn ahead
    and kept: whatever is in memory when a process is copied, two copies never add the same noise to two chunks
    (`eyestream.privacy.noise.bits` has the argument).
    """

    certified = True

    def __init__(self) -> None:
        self._bits = SystemBits()

    def draw(self, law: Law) -> NDArray[np.int64]:
        """One draw of `law`, of its shape; handed out once."""
        return law.sample(self._bits)
