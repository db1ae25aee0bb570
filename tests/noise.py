"""Noise sources for tests: what is released with them has no guarantee, and says so."""

import numpy as np
from numpy.typing import NDArray

from eyestream.privacy.noise.laws import Law


class ZeroNoise:
    """No noise at all."""

    certified = False

    def draw(self, law: Law) -> NDArray[np.int64]:
        """Zeros."""
        return np.zeros(law.shape, dtype=np.int64)


class SeededNoise:
    """The production law from seeded words, so that a test can be repeated."""

    certified = False

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)

    def words(self, count: int) -> NDArray[np.uint32]:
        """Uniform words."""
        return self._rng.integers(0, 2**32, count, dtype=np.uint32)

    def draw(self, law: Law) -> NDArray[np.int64]:
        """One draw of the law."""
        return law.sample(self)
