"""Random draws in the release of a corpus, all from words of the operating system.

Partitions into groups and synthetic samples are uniform and normal floats. Noise that a guarantee of differential
privacy rests on is a draw of an exact law of integers: a `Draws` is a `Noise` for mechanisms too.
"""

import numpy as np
from numpy.typing import NDArray

from eyestream.core.noise import Bits, Law, SystemBits, certified_source

Array = NDArray[np.float64]


@certified_source
class Draws:
    """Random numbers; `bits` is another source than the operating system in tests alone."""

    def __init__(self, bits: Bits | None = None) -> None:
        self.bits: Bits = bits if bits is not None else SystemBits()

    def draw(self, law: Law) -> NDArray[np.int64]:
        """One draw of an exact law, as `eyestream.core.noise.Noise` has it."""
        return law.sample(self.bits)

    def uniform(self, *shape: int) -> Array:
        """Multiples of 2^-53 in [0, 1)."""
        words = self.bits.words(2 * int(np.prod(shape, dtype=np.int64))).astype(np.uint64)
        whole = ((words[0::2] << np.uint64(32)) | words[1::2]) >> np.uint64(11)
        return (whole.astype(np.float64) * 2.0**-53).reshape(shape)

    def normal(self, *shape: int) -> Array:
        """Standard normal, by Box and Muller (1958)."""
        first, second = self.uniform(2, *shape)
        return np.asarray(np.sqrt(-2.0 * np.log1p(-first)) * np.cos(2.0 * np.pi * second))

    def permutation(self, count: int) -> NDArray[np.intp]:
        """The numbers 0 .. count - 1 in an order that is uniform up to ties among 53-bit keys."""
        return np.argsort(self.uniform(count), kind="stable")
