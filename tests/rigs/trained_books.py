"""How books are made: by splitting and Lloyd's iteration on a seeded sample of the standard normal law.

Linde, Buzo, Gray, IEEE Trans. Communications 28(1), 1980. No recording enters. The seed chooses points alone, which are
public; it is apart from the rooms that make noise, in which nothing knows a seed.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from eyestream.core.mechanisms.klt.books import ScoreBook

__all__ = ["SHELVES", "cell_means", "trained"]

Array = NDArray[np.float64]
Single = NDArray[np.float32]

SHELVES = ((0, 12, 3, 9), (0, 6, 7, 10), (6, 16, 7, 10))
"""Books of the scores from the first number to the second, with 2^b points, b from the third number to the last: one
for all, or two behind each other where epsilon pays for more bits than one book has."""
FALL = 0.75
"""What score number i is worth to a book: (i + 1)^-FALL. So it is, within a few hundredths of the first, late in a
session of every chunk length of the corpus, and of few people what they show is no better a guess."""
_SEED = 1980
_DRAWS, _ROUNDS = 2**15, 10
"""Of the sample that points are trained on, and rounds of Lloyd's iteration after each splitting."""
_LAST_DRAWS = 2**18
"""Of another sample, which the means and shares of the cells are taken from: 256 and more for a cell."""
_APART = 0.1
"""Standard deviations by which a point is split."""
_BLOCK = 4096
"""Draws that are compared with all points at once: 16 MiB."""


def trained() -> Iterator[ScoreBook]:
    """The books of `SHELVES`; half a minute."""
    for first, end, fewest, most in SHELVES:
        weights: Array = np.arange(first + 1.0, end + 1.0) ** -FALL
        root = np.sqrt(weights).astype(np.float32)
        rng = np.random.default_rng(_SEED)
        draws = rng.standard_normal((_DRAWS, end - first), dtype=np.float32)
        last = rng.standard_normal((_LAST_DRAWS, end - first), dtype=np.float32)
        points = np.zeros((1, end - first))
        for bits in range(1, most + 1):
            apart = _APART * rng.standard_normal(points.shape)
            points = np.concatenate([points + apart, points - apart])
            for _ in range(_ROUNDS):
                points, _ = cell_means(draws, points, root)
            if bits >= fewest:
                means, shares = cell_means(last, points, root)
                yield ScoreBook(first, means.astype(np.float16).astype(np.float64), shares, weights)


def cell_means(draws: Single, points: Array, root: Single) -> tuple[Array, Array]:
    """Means (K, m) and shares (K,) of the `draws` (N, m) nearest to each point (K, m); of none, the point."""
    weighted = points.astype(np.float32) * root
    half = (weighted**2).sum(axis=1) / 2
    nearest = np.concatenate(
        [np.argmax((draws[at : at + _BLOCK] * root) @ weighted.T - half, axis=1) for at in range(0, len(draws), _BLOCK)]
    )
    counts = np.bincount(nearest, minlength=len(points))
    sums = np.stack([np.bincount(nearest, weights=one, minlength=len(points)) for one in draws.T], axis=1)
    means = np.where(counts[:, None] > 0, sums / np.maximum(counts, 1)[:, None], points)
    return means, counts / len(draws)
