"""How scores become one code word that randomised response releases: by books, or each by a scalar quantiser.

Quantisers are of `klt.quantisers`, books of `klt.books`. Quantising and
choosing bits decides how *useful* a release is; privacy does not rest on it.

A word is read as marks z: the points of its quantisers or books, or, of a book with no more points than scores, which
of them it is. Scores y have the standard normal law, and the response keeps the word with probability theta, else
draws it uniformly. A point q is the mean of its cell, so with expectations over the truth (E) and over all words alike
(U),

    E z y' = theta E[z q'],   E z z' = theta E[z z'] + (1 - theta) U[z z'],

and of all linear estimates of the scores the best is read z, read = E y z' (E z z')^-1, which explains the part
known = read E z y' of their covariance.

What is compared and chosen here is computed as `eyestream.core.portable` says, so that a configuration has one code
on every processor.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from eyestream.core.mechanisms.klt.books import Book
from eyestream.core.mechanisms.klt.quantisers import MOST_BITS, quantiser
from eyestream.core.noise.response import keep_probability
from eyestream.core.portable import product, solved, total, transposed

__all__ = ["Code", "Codes", "coded_by"]

Array = NDArray[np.float64]

_LN2 = 0.6931471805599453
_POWER = np.array([0.0] + [quantiser(bits).power for bits in range(1, MOST_BITS + 1)])
_SPREAD = np.array([0.0] + [quantiser(bits).spread for bits in range(1, MOST_BITS + 1)])
_GAINS = np.diff(_POWER)


@dataclass(frozen=True, eq=False)
class Code:
    """How some scores are released together.

    Attributes
    ----------
    scores : (m,) which scores, of those offered.
    bits : of each coordinate of the code word: a score's quantiser, or a book.
    read : (m, r) takes the marks of a released word to the best linear estimate of the scores.
    known : (m, m) covariance of that estimate, and with the scores.
    books : that give the scores points, one after the other; none: each has a quantiser.
    """

    scores: NDArray[np.intp]
    bits: tuple[int, ...]
    read: Array
    known: Array
    books: tuple[Book, ...] = ()


def coded_by(books: Sequence[Book], epsilon: float) -> Code:
    """The code of books that give the scores from 0 on their points, one book after the other."""
    bits = tuple(book.bits for book in books)
    theta = keep_probability(epsilon, sum(bits))
    ends = np.cumsum([0, *(book.marks.shape[1] for book in books)])
    places = [slice(*pair) for pair in pairwise(ends)]
    whole, toward = np.zeros((ends[-1], ends[-1])), np.zeros((ends[-1], books[-1].end))
    for book, own in zip(books, places, strict=True):
        toward[own, book.first : book.end] = theta * book.toward
        for other, theirs in zip(books, places, strict=True):
            kept = book.power if other is book else np.multiply.outer(book.mean, other.mean)
            drawn = book.spread if other is book else np.multiply.outer(book.middle, other.middle)
            whole[own, theirs] = theta * kept + (1 - theta) * drawn
    read = transposed(solved(whole, toward))
    return Code(np.arange(books[-1].end), bits, read, product(read, toward), tuple(books))


class Codes:
    """The codes that one epsilon pays for: quantisers of any bits, and rows of books.

    Parameters
    ----------
    epsilon
        Of one chunk.
    rows
        Books that give the scores from 0 on their points, one after the other in each row.
    """

    def __init__(self, epsilon: float, rows: Iterable[Sequence[Book]] = ()) -> None:
        self._epsilon = epsilon
        self._coded = [coded_by(row, epsilon) for row in rows]
        self._explained = np.zeros((len(self._coded), max((len(code.scores) for code in self._coded), default=1)))
        for row, code in zip(self._explained, self._coded, strict=True):
            row[: len(code.scores)] = np.diagonal(code.known)

    def best(self, worth: Array) -> Code:
        """The code that removes most of uncorrelated unit-variance scores, best first, worth (d,) each: the error that
        perfect knowledge of one would remove. That of a row of books, if one removes more than quantisers do.

        One bit after the other goes where it removes most; of all totals the one is kept that removes most after the
        noise of the response,

            sum_i worth_i slope_i^2 / (slope_i + (1 - theta) U_i),   slope = theta (1 - D),

        theta the probability of keeping, D the quantiser's distortion, U the mean square of a uniform point.
        """
        each = np.argsort(-(worth[:, None] * _GAINS).ravel(), kind="stable")  # a score's next bit is worth less
        most = min(len(each), math.ceil((self._epsilon + 5) / _LN2))
        bits = np.cumsum(each[:most, None] // MOST_BITS == np.arange(len(worth)), axis=0)
        theta = _kept(self._epsilon, most)[:, None]
        slope = theta * _POWER[bits]
        explained = slope * slope / np.maximum(slope + (1 - theta) * _SPREAD[bits], 1e-12)
        removed = total(transposed(worth * explained))
        best = int(np.argmax(removed))
        if self._coded:
            by_books = total(transposed(worth[: self._explained.shape[1]] * self._explained))
            first = int(np.argmax(by_books))
            if by_books[first] > removed[best]:
                return self._coded[first]
        scores = np.flatnonzero(bits[best])
        known = explained[best, scores]
        read = known / slope[best, scores]
        return Code(scores, tuple(bits[best, scores].tolist()), np.diag(read), np.diag(known))


@lru_cache(maxsize=64)
def _kept(epsilon: float, most: int) -> Array:
    """(most,) probability of keeping a word of 1, 2, .. bits."""
    return np.array([keep_probability(epsilon, bits) for bits in range(1, most + 1)])
