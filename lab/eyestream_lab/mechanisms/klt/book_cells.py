"""What the word of a book tells a Gaussian belief: the cell of each point, held as a Gaussian.

For scores y of the standard normal law, which the points of a book are made for, a cell has a share p, a mean q and a
covariance W; all are taken from a seeded sample. As a function of y,

    p N(y; q, W) / N(y; 0, 1) = p |W|^(-1/2) exp(-q' W^-1 q / 2) exp(eta' y - y' L y / 2),   L = W^-1 - 1, eta = W^-1 q,

has under the standard normal law the mass, mean and covariance of the indicator of the cell. L is positive: a cell is
convex, and no convex set is wider than the normal law that is cut by it (Brascamp and Lieb, J. Funct. Anal. 22, 1976).
Times a belief N(y; mu, S) it is Gaussian again, with N = 1 + L S and r = N^-1 (eta - L mu):

    mean mu + S r,   covariance S - S N^-1 L S,
    log of the integral: log p - (log |W| + q' W^-1 q + log |N| - r' mu - eta' (mu + S r)) / 2.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from eyestream.core.mechanisms.klt.books import Book

__all__ = ["BookCells", "cells_of"]

Array = NDArray[np.float64]

_DRAWS, _MOST_DRAWS, _SEED, _BLOCK = 512, 2**18, 22, 4096
"""Of the sample: for each point, and at most; and how many at once."""
_BORROWED = 2.0
"""Draws for each score by which a cell's covariance is drawn toward the mean of all cells'."""
_KEPT = 32
"""Books whose cells are kept, at most 1 MB each: twice the shipped ones."""
_WIDEST = 1 - 1e-6
"""Variance of a cell in any direction: where it says nothing, the sample must not say the opposite."""


@dataclass(frozen=True, eq=False)
class BookCells:
    """The cells of a book of K points for q scores.

    Attributes
    ----------
    log_mass : (K,) what of the logarithm does not depend on the belief.
    pull : (K, q) eta.
    press : (K, q, q) L.
    """

    log_mass: Array
    pull: Array
    press: Array

    def weigh(
        self, mean: Array, covariance: Array, observed: Array, centre: Array, words: NDArray[np.intp]
    ) -> tuple[Array, Array, Array]:
        """Means, covariances and log-probabilities (B,) of beliefs whose scores lie in the cells of `words` (B,).

        Parameters
        ----------
        mean, covariance
            (B, D) and (B, D, D) of beliefs about a state.
        observed
            (q, D) takes the state to scores.
        centre
            (B, q) what is taken off before.
        """
        toward = covariance @ observed.T  # (B, D, q)
        spread = observed @ toward
        at = mean @ observed.T - centre
        pull, press = self.pull[words], self.press[words]
        whole = np.eye(len(observed)) + press @ spread
        shift = np.asarray(np.linalg.solve(whole, (pull - _times(press, at))[:, :, None])[:, :, 0], np.float64)
        logs = self.log_mass[words] - np.linalg.slogdet(whole)[1] / 2
        logs += ((shift * at).sum(axis=1) + (pull * (at + _times(spread, shift))).sum(axis=1)) / 2
        narrowed = toward @ np.linalg.solve(whole, press) @ toward.transpose(0, 2, 1)
        return mean + _times(toward, shift), covariance - (narrowed + narrowed.transpose(0, 2, 1)) / 2, logs


def cells_of(book: Book) -> BookCells:
    """The cells of `book`, from some hundred draws of the standard normal law for each point.

    Every mechanism has books of its own, most of them with the same points: cells are kept by what is in a book.
    """
    return _cells(book.points.shape, book.points.tobytes(), book.weights.tobytes())


@lru_cache(maxsize=_KEPT)
def _cells(shape: tuple[int, int], of_points: bytes, of_weights: bytes) -> BookCells:
    count, size = shape
    points, weights = np.frombuffer(of_points).reshape(shape), np.frombuffer(of_weights)
    rng, root = np.random.default_rng(_SEED), np.sqrt(weights)
    hits, sums, squares = np.zeros(count), np.zeros((count, size)), np.zeros((count, size * size))
    weighted = (points * root).T
    half = (weighted**2).sum(axis=0) / 2
    for _ in range(max(1, min(_MOST_DRAWS, _DRAWS * count) // _BLOCK)):
        draws = rng.standard_normal((_BLOCK, size))
        order = np.argmax((draws * root) @ weighted - half, axis=1)
        at = np.argsort(order, kind="stable")
        own, start = np.unique(order[at], return_index=True)
        sorted_draws = draws[at]
        outer = (sorted_draws[:, :, None] * sorted_draws[:, None, :]).reshape(_BLOCK, -1)
        hits += np.bincount(order, minlength=count)
        sums[own] += np.add.reduceat(sorted_draws, start)
        squares[own] += np.add.reduceat(outer, start)
    means = np.where(hits[:, None] > 0, sums / np.maximum(hits, 1)[:, None], points)
    inside = squares.reshape(count, size, size) - hits[:, None, None] * means[:, :, None] * means[:, None, :]
    borrowed = _BORROWED * size
    typical = inside.sum(axis=0) / hits.sum()
    covariance = (inside + borrowed * typical) / (hits + borrowed)[:, None, None]
    values, vectors = np.linalg.eigh(covariance)
    values = np.clip(values, 1e-6, _WIDEST)
    precise = (vectors / values[:, None, :]) @ vectors.transpose(0, 2, 1)
    pull = _times(precise, means)
    share = np.maximum(hits, 0.5) / hits.sum()
    log_mass = np.log(share) - (np.log(values).sum(axis=1) + (means * pull).sum(axis=1)) / 2
    return BookCells(log_mass, pull, precise - np.eye(size))


def _times(matrices: Array, vectors: Array) -> Array:
    """(B, p) of matrices (B, p, q) and vectors (B, q)."""
    product: Array = np.einsum("bpq,bq->bp", matrices, vectors)
    return product
