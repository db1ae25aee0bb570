"""Books: vector quantisers of the scores of a chunk. The nearest point of a book is one coordinate of the code word.

A book quantises several scores y together. With as many points, it leaves a smaller error than a quantiser of each
score: its cells are rounder, and a score need not have a whole number of bits (Gersho, IEEE Trans. Inf. Theory 25(4),
1979). The nearest point q has the least sum_i w_i (y_i - q_i)^2, where w_i is the worth of score i. Each point is the
mean of its cell under the standard normal law, so that E q y' = E q q'.

Points are public figures, and no recording enters them. They were made once (`tests.rigs.trained_books`), and each
calibration stores them, so that every machine has the same bits. Usefulness depends on them, privacy does not.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from eyestream.core.calibration import JointTables
from eyestream.core.portable import total

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ScoreBook:
    """K = 2^b points for m scores of variance 1.

    Attributes
    ----------
    first : number of the first of these scores among all.
    points : (K, m).
    shares : (K,) chance that a point is the nearest, of scores of the standard normal law.
    weights : (m,) of each score's squared distance.
    """

    first: int
    points: Array
    shares: Array
    weights: Array

    @property
    def bits(self) -> int:
        """log2 of the number of points."""
        return len(self.points).bit_length() - 1

    @property
    def end(self) -> int:
        """Number of the score after the last."""
        return self.first + int(self.points.shape[1])

    @cached_property
    def marks(self) -> Array:
        """(K, r) the vector z by which a decoder knows each word. It is the point, and r = m, where K > m.

        K points at most m do not span the space of the scores. Then z is the unit vector with the word's number, and
        r = K: whatever is linear in the points is linear in these too.
        """
        return self.points if len(self.points) > self.points.shape[1] else np.eye(len(self.points))

    @cached_property
    def toward(self) -> Array:
        """(r, m) E z q' = E z y', where q is the point nearest to y, and z its mark."""
        return _second(self.marks * self.shares[:, None], self.points)

    @cached_property
    def power(self) -> Array:
        """(r, r) E z z', where z is the mark of the nearest point."""
        return _second(self.marks * self.shares[:, None], self.marks)

    @cached_property
    def spread(self) -> Array:
        """(r, r) mean of z z' over all words, each with the same weight."""
        return _second(self.marks, self.marks) / len(self.marks)

    @cached_property
    def mean(self) -> Array:
        """(r,) E z, where z is the mark of the nearest point."""
        return total(self.marks * self.shares[:, None])

    @cached_property
    def middle(self) -> Array:
        """(r,) mean of z over all words, each with the same weight."""
        return total(self.marks) / len(self.marks)

    @cached_property
    def _ahead(self) -> tuple[Array, Array]:
        """Weighted points A (m, K), half of their squared lengths b (K,): the point nearest to y maximises y A - b."""
        weighted = self.points * self.weights
        return np.ascontiguousarray(weighted.T), (weighted * self.points).sum(axis=1) / 2

    def nearest(self, scores: Array) -> int:
        """Index of the point nearest to `scores` (m,); any index where a score is NaN."""
        weighted, half = self._ahead
        return int(np.argmax(scores @ weighted - half))


def books_of(tables: JointTables) -> tuple[ScoreBook, ...]:
    """The books of a calibration, empty where it has none. The same objects at each call, which keep their moments."""
    if tables not in _KNOWN:
        _KNOWN[tables] = () if tables.book_shapes is None else read_books(vars(tables))
    return _KNOWN[tables]


_KNOWN: WeakKeyDictionary[JointTables, tuple[ScoreBook, ...]] = WeakKeyDictionary()
"""Books of the calibrations in use, with their moments: computing these takes longer than finding a code word."""


def read_books(arrays: Mapping[str, NDArray[Any]]) -> tuple[ScoreBook, ...]:
    """The books in the arrays of `JointTables` whose names begin with ``book_``."""
    shapes, points, shares, weights = (arrays[f"book_{name}"] for name in ("shapes", "points", "shares", "weights"))
    books, at, word, score = [], 0, 0, 0
    for first, end, bits in shapes.tolist():
        size, count = end - first, 2**bits
        own = shares[word : word + count].astype(np.float64)
        books.append(
            ScoreBook(
                first=first,
                points=points[at : at + count * size].astype(np.float64).reshape(count, size),
                shares=own / math.fsum(own),
                weights=weights[score : score + size],
            )
        )
        at, word, score = at + count * size, word + count, score + size
    return tuple(books)


def _second(first: Array, second: Array) -> Array:
    """(r, s) sum over words of the products of (K, r) and (K, s)."""
    products = first[:, :, None] * second[:, None, :]
    return total(products.reshape(len(first), -1)).reshape(products.shape[1:])
