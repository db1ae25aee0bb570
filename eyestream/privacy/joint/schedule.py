"""What the KLT mechanism does at its t-th chunk of a session: a public function of calibration and epsilon.

Model. The d scores of chunk t are s_t = sum_j x_jt with independent components x_j of stationary covariance C_j: a
stable part and a transient one, which move as `eyestream.privacy.joint.motion` says. P is the covariance of what is not
yet known of the stacked x, given all releases so far. Everything here is second-order: it decides usefulness alone.

One chunk. With S the covariance of the innovation (s_t minus its prediction), h whitens it; the directions of h are
rotated so that they are ordered by their worth, the squared error that knowing them would remove from the released
target sum_j g_j x_j, measured in standardised features (metric G = expand expand'): the eigenvalues of
h Cov(s, target) G Cov(target, s) h'. `choose_code` says how many bits each gets, or which books code the leading ones.
The released points z of unit-variance scores y act like z = slope y + e, e uncorrelated of covariance R, `residual`
(Bussgang: the best linear description of points and response together); so the Kalman gain is P o' (o P o' + R)^-1
with o = slope h (1 1 .. 1).

The recursion does not depend on any release: it is run once, for the first chunks of a session, and its last step is
used from then on.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from eyestream.privacy.calibration import JointTables
from eyestream.privacy.joint.books import Book, books_of
from eyestream.privacy.joint.codebook import choose_code, coded_by, quantiser
from eyestream.privacy.joint.motion import Motion
from eyestream.privacy.noise.response import ResponseLaw

__all__ = ["STEPS", "Schedule", "Step", "inverse_root"]

Array = NDArray[np.float64]

STEPS = 64
"""Chunks of a session after which the schedule stands still."""


@dataclass(frozen=True, eq=False)
class Step:
    """One chunk of the schedule.

    Attributes
    ----------
    directions : (m, d) from the scores' innovation to unit-variance coordinates.
    borders : of each coordinate's quantiser; none where there are books.
    points : of each coordinate of the code word: (L,) of its quantiser, or (K, q) of its book.
    law : of the response.
    gain : (J d, m) from released points to the state.
    books : that give the coordinates points, one behind the other; none: each has a quantiser.
    """

    directions: Array
    borders: tuple[Array, ...]
    points: tuple[Array, ...]
    law: ResponseLaw
    gain: Array
    books: tuple[Book, ...] = ()

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
        """(m,) the points that a code word stands for."""
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
        components, d = tables.covariances.shape[:2]
        self.motion = Motion(tables)
        self._total = np.tile(np.eye(d), components)
        self._target = np.kron(tables.weights, np.eye(d))
        self._metric = (tables.expand if importance is None else tables.expand * importance) @ tables.expand.T
        self._epsilon = epsilon
        self._books = [coded_by(row, epsilon) for row in _rows(books_of(tables))]
        turns = list(self._turns())
        self.steps = tuple(step for step, _, _ in turns)
        self.unknown = self._total @ turns[-1][2] @ self._total.T

    def _turns(self) -> Iterator[tuple[Step, Array, Array]]:
        """The steps of a session, and what is unknown of the state, (J d, J d), before and after each."""
        state = self.motion.stationary
        for turn in range(STEPS):
            before = self.motion.spread(state) if turn else state
            step, state = self._step(before, self._epsilon)
            yield step, before, state

    def backward(self, states: Sequence[Array]) -> list[Array]:
        """The states of a whole session, given all its releases, from what was known after each of them.

        x_t + P_t F (P_(t+1) before)^-1 (x_(t+1) smoothed - F x_t), from the last chunk backward (Rauch, Tung and
        Striebel, AIAA Journal 3(8), 1965). A function of released values and public figures alone.
        """
        turns = list(self._turns())
        gains = [
            np.linalg.solve(before, self.motion.forward(after).T).T
            for (_, _, after), (_, before, _) in zip(turns, [*turns[1:], turns[-1]], strict=True)
        ]
        smoothed = [np.asarray(state, np.float64) for state in states]
        for turn in range(len(smoothed) - 2, -1, -1):
            gain = gains[min(turn, len(gains) - 1)]
            smoothed[turn] = smoothed[turn] + gain @ (smoothed[turn + 1] - self.motion.forward(smoothed[turn]))
        return smoothed

    def _step(self, state: Array, epsilon: float) -> tuple[Step, Array]:
        """The step for what is unknown before it, (J d, J d), and what is unknown after it."""
        innovation = self._total @ state @ self._total.T
        white = inverse_root(innovation)
        toward = white @ self._total @ state @ self._target.T
        worth, rotation = np.linalg.eigh(toward @ self._metric @ toward.T)
        code = choose_code(np.maximum(worth[::-1], 1e-12), epsilon, self._books)
        directions = (rotation[:, ::-1].T @ white)[code.scores]
        seen = (code.slope @ directions) @ self._total
        gain = np.asarray(np.linalg.solve(seen @ state @ seen.T + code.residual, seen @ state).T, np.float64)
        after = state - gain @ seen @ state
        quantisers = () if code.books else tuple(quantiser(bits) for bits in code.bits)
        step = Step(
            directions=directions,
            borders=tuple(q.borders for q in quantisers),
            points=tuple(one.points for one in code.books or quantisers),
            law=ResponseLaw(code.bits, epsilon),
            gain=gain,
            books=code.books,
        )
        return step, (after + after.T) / 2


def _rows(books: Sequence[Book]) -> Iterator[tuple[Book, ...]]:
    """Books that give the scores from 0 on their points: each by itself, and two behind each other."""
    for one in books:
        if one.first == 0:
            yield (one,)
            yield from ((one, other) for other in books if other.first == one.end)


def inverse_root(covariance: Array) -> Array:
    """Symmetric inverse square root, directions of no variance held finite."""
    values, vectors = np.linalg.eigh((covariance + covariance.T) / 2)
    root: Array = (vectors * np.maximum(values, 1e-9 * values.max()) ** -0.5) @ vectors.T
    return root
