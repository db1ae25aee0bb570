"""How scores become one code word that randomised response releases: by books, or each by a scalar quantiser.

Books are of `klt.books`. Quantising and
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
from functools import cache, lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from eyestream.core.mechanisms.klt.books import ScoreBook
from eyestream.core.noise.response import keep_probability
from eyestream.core.portable import product, solved, total, transposed

Array = NDArray[np.float64]


MOST_BITS = 6

# fmt: off
_ABOVE: dict[int, tuple[float, ...]] = {
    1: (0.797884560803,),
    2: (0.452780034636, 1.510417608499),
    3: (0.245094178944, 0.756005281206, 1.343909278505, 2.151945704537),
    4: (0.128395029851, 0.388048299490, 0.656759118532, 0.942340456487, 1.256231197347, 1.618046386022,
        2.069017226531, 2.732589570995),
    5: (0.065889659771, 0.198051829669, 0.331378305760, 0.466699522977, 0.604933624009, 0.747135703688,
        0.894565117388, 1.048783319923, 1.211804380609, 1.386340339587, 1.576228078612, 1.787233217703,
        2.028728399395, 2.317739404195, 2.691119577377, 3.260732493401),
    6: (0.033409506370, 0.100278289304, 0.167296903369, 0.234566985336, 0.302192846372, 0.370282645259,
        0.438949671659, 0.508313780898, 0.578503030519, 0.649655581064, 0.721921940570, 0.795467655841,
        0.870476586544, 0.947154944743, 1.025736349077, 1.106488239537, 1.189720141861, 1.275794486434,
        1.365141019810, 1.458276374698, 1.555831224705, 1.658588900424, 1.767541882991, 1.883977240522,
        2.009611042594, 2.146810217056, 2.298981209760, 2.471304797618, 2.672273835255, 2.917406790723,
        3.240437055012, 3.744101270895),
}
"""The points above 0, by the number of bits; the others lie opposite."""
# fmt: on

_POWERS = {
    1: 0.636619772368,
    2: 0.882518152171,
    3: 0.965452239211,
    4: 0.990498991992,
    5: 0.997495331644,
    6: 0.999355760335,
}


@dataclass(frozen=True, eq=False)
class Quantiser:
    """2^b points for a standard normal score, each the mean of its cell: a Lloyd-Max quantiser.

    Max, IRE Trans. Inf. Theory 6(1), 1960; Lloyd, IEEE Trans. Inf. Theory 28(2), 1982. They are written down
    above: points that each machine found by itself would differ in last bits.

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
    """With 2^`bits` points, 1 to MOST_BITS."""
    above = _ABOVE[bits]
    points = np.array([*(-point for point in reversed(above)), *above])
    spread = math.fsum(point * point for point in above) / len(above)  # fsum rounds once, after the last
    return Quantiser(points, (points[1:] + points[:-1]) / 2, _POWERS[bits], spread)


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
    books: tuple[ScoreBook, ...] = ()


def coded_by(books: Sequence[ScoreBook], epsilon: float) -> Code:
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

    def __init__(self, epsilon: float, rows: Iterable[Sequence[ScoreBook]] = ()) -> None:
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
