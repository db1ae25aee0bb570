"""Noise: random words of the operating system, and the source from which a mechanism draws its law.

A mechanism is built with a source, and asks it for a draw of its law. Production has one source, `SecureNoise`. Tests
pass others, in code. What a mechanism releases with another source says that it has no guarantee (`is_certified`).

The operating system is asked for random words at each draw. A copy of this process starts with the same memory, so
nothing in memory may decide them. No configuration, variable or command can choose them. `NOISE.md` has the arguments.
"""

import os
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray


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


_CERTIFIED: set[type] = set()

Kind = TypeVar("Kind", bound=type)


def certified_source(kind: Kind) -> Kind:
    """Decorate a class of this repository that draws exactly the law, from the words of its attribute `bits`."""
    _CERTIFIED.add(kind)
    return kind


def is_certified(noise: object) -> bool:
    """Whether draws of this source carry the guarantee of their law: a certified class, with bits of the system.

    The very class counts: one that derives from a certified class may draw in another way, and is not certified.
    """
    return type(noise) in _CERTIFIED and type(getattr(noise, "bits", None)) is SystemBits


@certified_source
class SecureNoise:
    """Noise that takes entropy from the operating system at the moment of the draw.

    A mechanism draws when it has the chunk, after the chunk's budget was reserved. Nothing is drawn ahead and kept, so
    two copies of a process never add the same noise to two chunks (`NOISE.md` has the argument).
    """

    def __init__(self) -> None:
        self.bits = SystemBits()

    def draw(self, law: Law) -> NDArray[np.int64]:
        """One draw of `law`, of its shape; handed out once."""
        return law.sample(self.bits)
