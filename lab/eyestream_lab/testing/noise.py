"""Noises without a guarantee, and the real one, watched. What is released with a false noise says so.

Examples
--------
The same seed gives the same release.

>>> import numpy as np
>>> from eyestream import CFPA, load_calibration
>>> calibration = load_calibration("everyday-cfpa-32")
>>> chunk = np.repeat(calibration.fill[:, None], 32, axis=1)
>>> one, other = (CFPA(calibration, epsilon=4.8, noise=SeededNoise(7)) for _ in range(2))
>>> bool((one.release(chunk) == other.release(chunk)).all())
True
>>> one.guarantee.partition(":")[0]
'none'
"""

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from eyestream.core.noise import Bits, Law, SecureNoise, certified_source
from eyestream.core.noise.laws import LaplaceLaw

__all__ = ["FixedNoise", "ScaledNoise", "SeededNoise", "WatchedNoise", "WordNoise", "ZeroNoise"]


class FixedNoise:
    """The same integer for every draw."""

    def __init__(self, value: int) -> None:
        self._value = value

    def draw(self, law: Law) -> NDArray[np.int64]:
        """The integer, in the shape of the law."""
        return np.full(law.shape, self._value, dtype=np.int64)


class ZeroNoise(FixedNoise):
    """No noise at all."""

    def __init__(self) -> None:
        super().__init__(0)


class WordNoise:
    """The production law from words of the test's choice: a recorded tape, a counter, a seeded generator."""

    def __init__(self, source: Bits) -> None:
        self._source = source

    def draw(self, law: Law) -> NDArray[np.int64]:
        """One draw of the law."""
        return law.sample(self._source)


class SeededNoise(WordNoise):
    """The production law from seeded words, so that a test, or a study, can be repeated."""

    def __init__(self, seed: int | Sequence[int]) -> None:
        super().__init__(self)
        self._rng = np.random.default_rng(seed)

    def words(self, count: int) -> NDArray[np.uint32]:
        """(count,) uniform words."""
        return self._rng.integers(0, 2**32, count, dtype=np.uint32)


class ScaledNoise:
    """Laplace noise of `factor` times the scale that the law asks for: a fault that a test must see."""

    def __init__(self, factor: float, seed: int) -> None:
        self._factor = factor
        self._rng = np.random.default_rng(seed)

    def draw(self, law: Law) -> NDArray[np.int64]:
        """Rounded floats; TypeError for a law that is not Laplace's."""
        if not isinstance(law, LaplaceLaw):
            raise TypeError(f"expected a Laplace law, not {type(law).__name__}")
        scale = self._factor * law.sd[:, None] / math.sqrt(2)
        return np.rint(self._rng.laplace(scale=scale, size=law.shape)).astype(np.int64)


@certified_source
class WatchedNoise(SecureNoise):
    """The real noise, certified; `drawn` is called with each draw."""

    def __init__(self, drawn: Callable[[], None]) -> None:
        super().__init__()
        self._drawn = drawn

    def draw(self, law: Law) -> NDArray[np.int64]:
        """Draw, and tell."""
        values = super().draw(law)
        self._drawn()
        return values
