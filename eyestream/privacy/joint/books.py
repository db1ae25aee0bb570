"""Books: points for several scores at once, the nearest of which is a code word or a coordinate of one.

Beside quantising score by score, a book of the same number of points leaves less unknown: its cells are rounder, and
bits need not be whole for each score (Gersho, IEEE Trans. Inf. Theory 25(4), 1979). Nearest is counted by
sum_i w_i (y_i - q_i)^2, w the worth of each score. Points are made of a seeded sample of the standard normal law by
splitting and Lloyd's iteration (Linde, Buzo, Gray, IEEE Trans. Communications 28(1), 1980): each is the mean of its
cell, so that E q y' = E q q' for what it stands for. They are public figures that no recording enters, made once
(`tools/make/make_books.py`) and stored in each calibration, so that everybody has the same to the last bit. Usefulness
rests on them, privacy does not.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eyestream.privacy.calibration import JointTables

__all__ = ["SHELVES", "Book", "books_of", "cell_means", "shelved", "taken", "trained"]

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


@dataclass(frozen=True, eq=False)
class Book:
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
        """Number of the score behind the last."""
        return self.first + int(self.points.shape[1])

    @cached_property
    def power(self) -> Array:
        """(m, m) E q q' = E q y' of the nearest point."""
        second: Array = (self.points * self.shares[:, None]).T @ self.points
        return second

    @cached_property
    def spread(self) -> Array:
        """(m, m) mean of q q' over all points alike."""
        second: Array = self.points.T @ self.points / len(self.points)
        return second

    @cached_property
    def _ahead(self) -> tuple[Array, Array]:
        """The nearest point has the most of y times this (m, K), less that (K,)."""
        weighted = self.points * self.weights
        return np.ascontiguousarray(weighted.T), (weighted * self.points).sum(axis=1) / 2

    def nearest(self, scores: Array) -> int:
        """Index of the point nearest to `scores` (m,); of what is not a number, some index."""
        weighted, half = self._ahead
        return int(np.argmax(scores @ weighted - half))


def books_of(tables: JointTables) -> tuple[Book, ...]:
    """The books of a calibration; none where it has none."""
    if tables.book_shapes is None:
        return ()
    return taken(vars(tables))


def taken(shelf: Mapping[str, NDArray[Any]]) -> tuple[Book, ...]:
    """The books that `shelved` put away."""
    shapes, points, shares, weights = (shelf[f"book_{name}"] for name in ("shapes", "points", "shares", "weights"))
    books, at, word, score = [], 0, 0, 0
    for first, end, bits in shapes.tolist():
        size, count = end - first, 2**bits
        own = shares[word : word + count].astype(np.float64)
        books.append(
            Book(
                first=first,
                points=points[at : at + count * size].astype(np.float64).reshape(count, size),
                shares=own / own.sum(),
                weights=weights[score : score + size],
            )
        )
        at, word, score = at + count * size, word + count, score + size
    return tuple(books)


def shelved(books: Sequence[Book]) -> dict[str, NDArray[Any]]:
    """At least one book, as fields of `JointTables`."""
    return {
        "book_shapes": np.array([(book.first, book.end, book.bits) for book in books], dtype=np.int64),
        "book_points": np.concatenate([book.points.ravel() for book in books]).astype(np.float16),
        "book_shares": np.concatenate([book.shares for book in books]).astype(np.float32),
        "book_weights": np.concatenate([book.weights for book in books]),
    }


def trained() -> Iterator[Book]:
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
                yield Book(first, means.astype(np.float16).astype(np.float64), shares, weights)


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
