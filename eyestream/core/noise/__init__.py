"""Noise: bits of the operating system, exact laws of integers, and the source that draws them.

A mechanism asks its noise object for a draw of its law. There is one in production, `SecureNoise`. Tests hand in
others, in code; what a mechanism releases with one of those says that it has no guarantee.
"""

from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from eyestream.core.noise.bits import Bits, SystemBits

__all__ = ["Law", "Noise", "SecureNoise", "is_certified", "of_the_house"]


class Law(Protocol):
    """A law, as a noise source needs it."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one draw."""
        ...

    def sample(self, bits: Bits) -> NDArray[np.int64]:
        """One draw."""
        ...


class Noise(Protocol):
    """A source of noise for mechanisms."""

    def draw(self, law: Law) -> NDArray[np.int64]:
        """One draw of `law`, of its shape; no draw is ever handed out twice."""
        ...


_OURS: set[type] = set()

Kind = TypeVar("Kind", bound=type)


def of_the_house(kind: Kind) -> Kind:
    """Decorate a class of ours, whose draws are those of the law, from the words of its `bits`."""
    _OURS.add(kind)
    return kind


def is_certified(noise: object) -> bool:
    """Whether what is drawn here carries the guarantee of the law: a source of the house with bits of the system.

    It rests on what the source is. A class that derives from one of ours, and may draw in another way, is another one.
    """
    return type(noise) in _OURS and type(getattr(noise, "bits", None)) is SystemBits


@of_the_house
class SecureNoise:
    """Noise from entropy that the operating system gives when it is drawn.

    A mechanism draws when the chunk lies before it, after the chunk's budget has been reserved. Nothing is drawn ahead
    and kept: whatever is in memory when a process is copied, two copies never add the same noise to two chunks
    (`NOISE.md` has the argument).
    """

    def __init__(self) -> None:
        self.bits = SystemBits()

    def draw(self, law: Law) -> NDArray[np.int64]:
        """One draw of `law`, of its shape; handed out once."""
        return law.sample(self.bits)
