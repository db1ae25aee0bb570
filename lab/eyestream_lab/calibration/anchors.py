"""The anchor of a calibration from the ranges of a corpus (`eyestream.core.anchor`)."""

import numpy as np
from numpy.typing import NDArray

from eyestream.core.anchor import BASELINE_S, Anchor

Array = NDArray[np.float64]

_FINENESS = 20
"""A feature's range in the corpus is at least 2^20 grid steps wide."""


def anchor_of(lo: Array, hi: Array, centre: Array, n: int, rate_hz: float) -> Anchor:
    """An anchor for features of a corpus with range lo .. hi (F,) and public `centre` (F,), in chunks of `n` rows."""
    shift = grid_of(lo, hi)
    chunks = int(np.ceil(BASELINE_S * rate_hz / n))
    return Anchor(chunks, shift, np.rint(np.ldexp(centre, shift)).astype(np.int64))


def grid_of(lo: Array, hi: Array) -> NDArray[np.int64]:
    """(F,) shift of the grid of features with the range lo .. hi: 2^20 to 2^21 steps in it, 2^0 where it has none."""
    width = np.where(hi > lo, hi - lo, 2.0**_FINENESS)
    return np.asarray(_FINENESS - np.floor(np.log2(width)), np.int64)
