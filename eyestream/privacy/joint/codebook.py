"""How scores become one code word that randomised response releases: by books, or each by a scalar quantiser.

Lloyd-Max quantisers of the standard normal law (Max, IRE Trans. Inf. Theory 6(1), 1960; Lloyd, IEEE Trans. Inf. Theory
28(2), 1982) with 2^b points; books are of `eyestream.privacy.joint.books`. Quantising and choosing bits decides how
*useful* a release is; privacy does not rest on it.

With Q = E q y' = E q q' of the nearest points q for scores y (a quantiser's points and a book's are the means of their
cells), U the same of points drawn uniformly, and theta the probability that the response keeps the word, a released
point z is described best, among linear descriptions, by

    z = slope y + e,   slope = theta Q,   residual = Var e = theta Q + (1 - theta) U - slope slope'.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from eyestream.privacy.joint.books import Book

__all__ = ["MOST_BITS", "Code", "Quantiser", "choose_code", "coded_by", "keep_probability", "quantiser"]

Array = NDArray[np.float64]

MOST_BITS = 6


@dataclass(frozen=True, eq=False)
class Quantiser:
    """2^b points for a standard normal score.

    Attributes
    ----------
    points : (L,) increasing.
    borders : (L - 1,) between them.
    power : mean square of the quantised score, 1 - D with D the distortion.
    spread : mean square of a point drawn uniformly.
    """

    points: Array
    borders: Array
    power: float
    spread: float


@cache
def quantiser(bits: int) -> Quantiser:
    """Lloyd-Max quantiser with 2^`bits` points, by Lloyd's fixed-point iteration to 1e-10."""
    normal, levels = NormalDist(), 2**bits
    points = np.array([1.2 * normal.inv_cdf((i + 0.5) / levels) for i in range(levels)])
    for _ in range(5000):
        borders = (points[1:] + points[:-1]) / 2
        mass = np.diff([0.0, *map(normal.cdf, borders), 1.0])
        density = np.array([0.0, *map(normal.pdf, borders), 0.0])
        moved = -np.diff(density) / mass
        if np.abs(moved - points).max() < 1e-10:
            break
        points = moved
    return Quantiser(points, borders, float((mass * points**2).sum()), float((points**2).mean()))


def keep_probability(epsilon: float, bits: int) -> float:
    """Probability (e^epsilon - 1) / (e^epsilon + 2^bits - 1) with which randomised response keeps the index."""
    return -math.expm1(-epsilon) / (1 + math.exp(bits * math.log(2) - epsilon) - math.exp(-epsilon))


@dataclass(frozen=True, eq=False)
class Code:
    """How some scores are released together.

    Attributes
    ----------
    scores : (m,) which scores, of those offered.
    bits : of each coordinate of the code word: a score's quantiser, or a book.
    slope : (m, m) mean of the released point given the scores, per unit of them.
    residual : (m, m) covariance of the released point that the scores do not explain.
    books : that give the scores points one behind the other; none: each has a quantiser.
    """

    scores: NDArray[np.intp]
    bits: tuple[int, ...]
    slope: Array
    residual: Array
    books: tuple[Book, ...] = ()

    @cached_property
    def _known(self) -> Array:
        """(m,) variance of each score that a release explains, slope' (slope slope' + residual)^-1 slope."""
        whole = self.residual + self.slope @ self.slope.T
        return np.asarray(np.diag(self.slope.T @ np.linalg.solve(whole, self.slope)), np.float64)

    def removed(self, worth: Array) -> float:
        """The error that a release removes, of scores whose perfect knowledge would remove `worth` (d,) each."""
        return float(worth[self.scores] @ self._known)


def coded_by(books: Sequence[Book], epsilon: float) -> Code:
    """The code of books that give the scores from 0 on their points, one book behind the other."""
    bits = tuple(book.bits for book in books)
    theta = keep_probability(epsilon, sum(bits))
    slope = np.zeros((books[-1].end, books[-1].end))
    spread = np.zeros_like(slope)
    for book in books:
        own = slice(book.first, book.end)
        slope[own, own] = theta * book.power
        spread[own, own] = book.spread
        others = book.points.mean(axis=0)
        for other in books:
            if other is not book:
                spread[own, other.first : other.end] = np.outer(others, other.points.mean(axis=0))
    residual = slope + (1 - theta) * spread - slope @ slope.T
    return Code(np.arange(books[-1].end), bits, slope, residual, tuple(books))


def choose_code(worth: Array, epsilon: float, others: Sequence[Code] = ()) -> Code:
    """The code that removes most of uncorrelated unit-variance scores, best first, worth (d,) each: the error that
    perfect knowledge of one would remove. Of `others`, if one of them removes more than quantisers do.

    One bit after the other goes where it removes most; of all totals the one is kept that removes most after the noise
    of the response,

        sum_i worth_i slope_i^2 / (slope_i^2 + residual_i),   slope = theta (1 - D),   slope^2 + residual = theta (1 -
        D) + (1 - theta) U,

    theta the probability of keeping, D the quantiser's distortion, U the mean square of a uniform point.
    """
    power = np.array([0.0] + [quantiser(b).power for b in range(1, MOST_BITS + 1)])
    spread = np.array([0.0] + [quantiser(b).spread for b in range(1, MOST_BITS + 1)])
    gains = np.append(np.diff(power), 0.0)
    bits = np.zeros(len(worth), dtype=np.intp)
    best, chosen = 0.0, bits.copy()
    while bits.sum() * math.log(2) < epsilon + 5 and bits.min() < MOST_BITS:
        bits[np.argmax(worth * gains[bits])] += 1
        theta = keep_probability(epsilon, int(bits.sum()))
        slope = theta * power[bits]
        removed = float((worth * slope**2 / np.maximum(slope + (1 - theta) * spread[bits], 1e-12)).sum())
        if removed > best:
            best, chosen = removed, bits.copy()
    better = max(others, key=lambda code: code.removed(worth), default=None)
    if better is not None and better.removed(worth) > best:
        return better
    scores = np.flatnonzero(chosen)
    theta = keep_probability(epsilon, int(chosen.sum()))
    slope = theta * power[chosen[scores]]
    residual = slope + (1 - theta) * spread[chosen[scores]] - slope**2
    return Code(scores, tuple(int(b) for b in chosen[scores]), np.diag(slope), np.diag(residual))
