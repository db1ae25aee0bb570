"""Pairs of one person and of two, and how well a score tells them apart."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["area", "furthest"]

Array = NDArray[np.float64]


def area(scores: Array, same: NDArray[np.bool_]) -> float:
    """Area under the ROC curve of scores (P,): the chance that a pair of one person scores above a pair of two."""
    different = np.sort(scores[~same])
    below = np.searchsorted(different, scores[same], "left") + np.searchsorted(different, scores[same], "right")
    return float(below.mean() / (2 * len(different)))


def furthest(areas: Sequence[float]) -> float:
    """The largest area, where an attacker below one half may be turned round."""
    return max(max(one, 1 - one) for one in areas)
