"""Books: points for several scores at once, the nearest of which is a code word or a coordinate of one.

Beside quantising score by score, a book of the same number of points leaves less unknown: its cells are rounder, and
bits need not be whole for each score (Gersho, IEEE Trans. Inf. Theory 25(4), 1979). Nearest is counted by
sum_i w_i (y_i - q_i)^2, w the worth of each score. Each point is the mean of its cell under the standard normal law, so
that E q y' = E q q' for what it stands for. Points are public figures that no recording enters, made once
(`tests.rigs.trained_books`) and stored in each calibration, so that everybody has the same to the last bit.
Usefulness rests on them, privacy does not.
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

__all__ = ["ScoreBook", "books_of", "taken"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ScoreBook:
    """2^b points for the unit-variance scores from number `first` on.

    Attributes
    ----------
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
        """(K, r) as what each word is read, r at most m: its point; or, where that many points span no space of m
        dimensions, the unit vector with its number, of which everything that is linear in the points is linear too."""
        return self.points if len(self.points) > self.points.shape[1] else np.eye(len(self.points))

    @cached_property
    def toward(self) -> Array:
        """(r, m) E z q' = E z y' of the nearest point q, whose marks are z."""
        return _second(self.marks * self.shares[:, None], self.points)

    @cached_property
    def power(self) -> Array:
        """(r, r) E z z' of the nearest point's marks."""
        return _second(self.marks * self.shares[:, None], self.marks)

    @cached_property
    def spread(self) -> Array:
        """(r, r) mean of z z' over all words alike."""
        return _second(self.marks, self.marks) / len(self.marks)

    @cached_property
    def mean(self) -> Array:
        """(r,) E z of the nearest point's marks."""
        return total(self.marks * self.shares[:, None])

    @cached_property
    def middle(self) -> Array:
        """(r,) mean of z over all words alike."""
        return total(self.marks) / len(self.marks)

    @cached_property
    def _ahead(self) -> tuple[Array, Array]:
        """The nearest point has the most of y times this (m, K), less that (K,)."""
        weighted = self.points * self.weights
        return np.ascontiguousarray(weighted.T), (weighted * self.points).sum(axis=1) / 2

    def nearest(self, scores: Array) -> int:
        """Index of the point nearest to `scores` (m,); of what is not a number, some index."""
        weighted, half = self._ahead
        return int(np.argmax(scores @ weighted - half))


def books_of(tables: JointTables) -> tuple[ScoreBook, ...]:
    """The books of a calibration, the same ones each time; none where it has none."""
    if tables not in _KNOWN:
        _KNOWN[tables] = () if tables.book_shapes is None else taken(vars(tables))
    return _KNOWN[tables]


_KNOWN: WeakKeyDictionary[JointTables, tuple[ScoreBook, ...]] = WeakKeyDictionary()
"""Moments of the books of calibrations that are in use: they take longer to find than a code."""


def taken(shelf: Mapping[str, NDArray[Any]]) -> tuple[ScoreBook, ...]:
    """The books that `shelved` put away."""
    shapes, points, shares, weights = (shelf[f"book_{name}"] for name in ("shapes", "points", "shares", "weights"))
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
