"""Steps of the KLT mechanism at the t-th chunk of a session: a public function of calibration and epsilon.

Model. The d scores of chunk t are s_t = sum_j x_jt with independent components x_j of stationary covariance C_j: a
stable part and a transient one, which move as `ComponentMotion` says. P is the covariance of what is not
yet known of the stacked x, given all releases so far. Everything here is second-order: it decides usefulness alone.

One chunk. With S = L L' the covariance of the innovation (s_t minus its prediction), h = L^-1 whitens it; the
directions of h are rotated so that they are ordered by their worth, the squared error that knowing them would remove
from the released target sum_j g_j x_j, measured in standardised features (metric G = expand expand'): the eigenvalues
of h Cov(s, target) G Cov(target, s) h'. `Codes` says how many bits each gets, or which books code the leading
ones. Of the coded scores y = h (s_t minus its prediction), of unit variance, a released word tells the linear estimate
read z, of covariance `known` with itself and with y. So with C = P (1 1 .. 1)' h' = Cov(x, y) the gain is C read, and
P - C known C' is left.

The recursion does not depend on any release: it is run once, for the first chunks of a session, and its last step is
used from then on. It is computed as `eyestream.core.portable` says: two machines with one configuration have the
same directions, codes, laws and gains, to the last bit. Each chunk's rotation begins at the one before, from which it
is never far.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from eyestream.core.calibration import JointTables
from eyestream.core.mechanisms.klt.books import ScoreBook, books_of
from eyestream.core.mechanisms.klt.codebook import Codes, quantiser
from eyestream.core.noise.response import ResponseLaw
from eyestream.core.portable import eliminated, principal, product, total, transposed

Array = NDArray[np.float64]

STEPS = 64
"""Chunks of a session after which the schedule stands still."""


class ComponentMotion:
    """How the components behind the scores, stacked to D = J d numbers x, move from one chunk to the next.

    x_j(t+1) = p_j x_j(t) + w_j(t): each component by itself, its scores alike; or, where the calibration has a matrix
    for each component, x_j(t+1) = A_j x_j(t) + w_j(t): the end of a chunk tells more of the next one than its start
    does. The covariance of w is what keeps that of x_j as it is.

    Attributes
    ----------
    stationary : (D, D) covariance of x before anything is known.
    drive : (D, D) covariance of w.
    stays : (D,) which numbers do not change within a person.
    """

    def __init__(self, tables: JointTables) -> None:
        self._components, self._scores = tables.covariances.shape[:2]
        self.stays = np.repeat(tables.poles == 1.0, self._scores)
        self.stationary = _blocks(tables.covariances)
        self._poles = np.repeat(tables.poles, self._scores)
        self._moves = tables.moves
        self._matrix = None if tables.moves is None else _blocks(tables.moves)
        self.drive = self.stationary - self._carried(self.stationary)

    def forward(self, states: Array) -> Array:
        """(..., D) what is expected of x a chunk later."""
        return states * self._poles if self._matrix is None else states @ self._matrix.T

    def spread(self, covariance: Array) -> Array:
        """(..., D, D) of what is unknown of x a chunk later; the same bits on every processor."""
        later: Array = self._carried(covariance) + self.drive
        return later

    def onward(self, covariance: Array) -> Array:
        """(..., D, D) covariance of x a chunk later with x now, from that of x now; the same bits everywhere."""
        if self._moves is None:
            return covariance * self._poles[:, None]
        parts = covariance.reshape(*covariance.shape[:-2], self._components, self._scores, -1)
        return product(self._moves, parts).reshape(covariance.shape)

    def _carried(self, covariance: Array) -> Array:
        return self.onward(transposed(self.onward(covariance)))


def _blocks(each: Array) -> Array:
    """(J d, J d) with the matrices (J, d, d) along the diagonal."""
    count, size = each.shape[:2]
    whole = np.zeros((count * size, count * size))
    for j, one in enumerate(each):
        whole[j * size : (j + 1) * size, j * size : (j + 1) * size] = one
    return whole


@dataclass(frozen=True, eq=False)
class ScheduleStep:
    """One chunk of the schedule.

    Attributes
    ----------
    directions : (m, d) from the scores' innovation to unit-variance coordinates.
    borders : of each coordinate's quantiser; none where there are books.
    points : of each coordinate of the code word: (L,) of its quantiser, or (K, r) the marks of its book.
    law : of the response.
    gain : (J d, r) from released points to the state, r of all books together.
    books : that give the coordinates points, one after the other; none: each has a quantiser.
    """

    directions: Array
    borders: tuple[Array, ...]
    points: tuple[Array, ...]
    law: ResponseLaw
    gain: Array
    books: tuple[ScoreBook, ...] = ()

    @cached_property
    def _edges(self) -> tuple[list[float], ...]:
        """The borders as lists, which are searched faster."""
        return tuple(one.tolist() for one in self.borders)

    def word(self, innovation: Array) -> list[int]:
        """The code word of unit-variance coordinates (m,)."""
        if self.books:
            return [book.nearest(innovation[book.first : book.end]) for book in self.books]
        return [bisect_left(b, y) for b, y in zip(self._edges, innovation.tolist(), strict=True)]

    def value(self, word: Iterable[int]) -> Array:
        """(r,) the points that a code word stands for."""
        points = [points[i] for points, i in zip(self.points, word, strict=True)]
        return np.concatenate(points) if self.books else np.array(points)


class Schedule:
    """The steps of a session, and what is unknown of the state after the last of them.

    Parameters
    ----------
    tables
        Of the calibration.
    epsilon
        Of one chunk.
    importance
        (A M,) what the squared error of every standardised mode counts; None: one each.

    Attributes
    ----------
    steps : one for each of the first chunks; the last one is repeated.
    motion : of the state, (J d,).
    unknown : (d, d) covariance of the error of sum_j x_j after the last step.
    """

    def __init__(self, tables: JointTables, epsilon: float, importance: Array | None = None) -> None:
        self.motion = ComponentMotion(tables)
        self._weights, self._scores = tables.weights[:, None, None], tables.covariances.shape[1]
        weighed = tables.expand if importance is None else tables.expand * importance
        metric = product(weighed, transposed(tables.expand))
        self._root = transposed(eliminated(metric, metric[:, :0])[0])
        self._epsilon, self._laws = epsilon, dict[tuple[int, ...], ResponseLaw]()
        self._codes = Codes(epsilon, _rows(books_of(tables)))
        turns = list(self.turns())
        self.steps = tuple(step for step, _, _ in turns)
        self.unknown = _together(self._toward(turns[-1][2]))

    def turns(self) -> Iterator[tuple[ScheduleStep, Array, Array]]:
        """The steps of a session, and what is unknown of the state, (J d, J d), before and after each."""
        state, rotation = self.motion.stationary, np.eye(self._scores)
        for turn in range(STEPS):
            before = self.motion.spread(state) if turn else state
            step, state, rotation = self._step(before, rotation)
            yield step, before, state

    def _step(self, state: Array, rotation: Array) -> tuple[ScheduleStep, Array, Array]:
        """The step for what is unknown before it, (J d, J d), what is unknown after it, and its rotation (d, d).

        `rotation` is that of the step before, where the turning begins.
        """
        toward = self._toward(state)
        _, white = eliminated(_together(toward), np.eye(self._scores))
        started = product(transposed(rotation), white)
        target = transposed(_together(self._weights * toward))
        worth, turned = principal(
            transposed(product(product(started, target), self._root)), np.concatenate([rotation, transposed(started)])
        )
        rotation, directions = turned[: self._scores], transposed(turned[self._scores :])
        code = self._codes.best(np.maximum(worth, 1e-12))
        crossed = product(toward.reshape(-1, self._scores), transposed(directions[code.scores]))
        after = state - product(product(crossed, code.known), transposed(crossed))
        quantisers = () if code.books else tuple(quantiser(bits) for bits in code.bits)
        step = ScheduleStep(
            directions=directions[code.scores],
            borders=tuple(q.borders for q in quantisers),
            points=tuple(book.marks for book in code.books) or tuple(q.points for q in quantisers),
            law=self._law(code.bits),
            gain=product(crossed, code.read),
            books=code.books,
        )
        return step, (after + transposed(after)) / 2, rotation

    def _law(self, bits: tuple[int, ...]) -> ResponseLaw:
        """The law of a response; many steps share one."""
        if bits not in self._laws:
            self._laws[bits] = ResponseLaw([2**own for own in bits], self._epsilon)
        return self._laws[bits]

    def _toward(self, state: Array) -> Array:
        """(J, d, d) covariance of each component with their sum, from that of the state (J d, J d)."""
        parts = state.reshape(len(self._weights), self._scores, -1, self._scores).swapaxes(1, 2)
        return total(parts.reshape(len(parts), len(parts), -1)).reshape(-1, self._scores, self._scores)


def _together(each: Array) -> Array:
    """(d, d) sum of (J, d, d)."""
    return total(each.reshape(len(each), -1)).reshape(each.shape[1:])


def _rows(books: Sequence[ScoreBook]) -> Iterator[tuple[ScoreBook, ...]]:
    """Books that give the scores from 0 on their points: each by itself, and two after each other."""
    for one in books:
        if one.first == 0:
            yield (one,)
            yield from ((one, other) for other in books if other.first == one.end)
