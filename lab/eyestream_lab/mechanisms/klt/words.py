"""Code words read off the published chunks of joint transform coding, by the public schedule.

What is published is a public function of the released code words: the filter's estimate, in features, clipped and
rounded to float32. The attacker runs the same filter beside it. Each chunk then gives the state after it (a linear
equation for every value that was not clipped), the state gives the points of the code word, and the word is proved by
making the chunk from it again: it must agree to the last bit of float32, or nearly so. Output weights are part of the
equation: with one score they are a factor, and dividing by it undoes them.

From the word follows what it says about the scores: `keep` is the chance that the scores s truly lay in the cell
low <= H s < high, or that the nearest points of the books to H s - expected were these, and with the rest the word was
uniform.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eyestream.core.mechanism import Mechanism
from eyestream.core.mechanisms.klt.core import JointCore
from eyestream.core.mechanisms.klt.schedule import ScheduleStep
from eyestream.errors import ConfigError

Array = NDArray[np.float64]

_ROUNDING = 4e-7
"""Deviation of a right word by float32, relative to a feature's standard deviation and to its largest value."""


@dataclass(frozen=True, eq=False)
class Evidence:
    """Evidence of one published chunk about its scores s.

    Attributes
    ----------
    word : index of each coordinate of the code word; -1 where nothing could be decoded.
    low, high : (m,) cell of H s, H the directions of the schedule at this turn, in absolute scores; without end where
        books were used, whose cells are no boxes.
    expected : (m,) what the schedule predicted of H s.
    """

    word: NDArray[np.intp]
    low: Array
    high: Array
    expected: Array

    @property
    def decoded(self) -> bool:
        """Whether the word was found."""
        return bool((self.word >= 0).all())


def schedule_step(core: JointCore, turn: int) -> ScheduleStep:
    """The mechanism's step at a session's chunk number `turn`."""
    steps = core.schedule.steps
    return steps[min(turn, len(steps) - 1)]


def decode(mechanism: Mechanism, published: Iterable[NDArray[np.float32]]) -> list[Evidence]:
    """Code words of the published chunks (F, n) of one session, in order.

    Raises
    ------
    ConfigError
        when the mechanism is not a joint transform coder.
    """
    core = mechanism.core
    if not isinstance(core, JointCore):
        raise ConfigError(f"{mechanism.name} releases no code words")
    reader = _Reader(core, mechanism)
    return [reader.read(np.asarray(chunk)) for chunk in published]


class _Reader:
    """The mechanism's filter, run by somebody who sees what is published."""

    def __init__(self, core: JointCore, mechanism: Mechanism) -> None:
        self._core, self._active = core, mechanism.frame.active
        self._step, self._out = core.step(), np.empty((len(self._active), mechanism.n))
        self._state, self._turn = core.start.copy(), 0
        tables = core.tables
        self._weights = np.kron(tables.weights, np.eye(len(tables.basis.T)))
        blocks = core.expand.reshape(len(core.expand), len(self._active), -1)
        lo, hi = core.range
        self._spread = core.sd if core.map is None else (hi - lo) / 8
        self._to_chunk = (blocks @ tables.modes * core.sd).reshape(len(blocks), -1)  # (d, A n)

    def read(self, chunk: NDArray[np.float32]) -> Evidence:
        """Evidence of the next chunk; the filter goes on with what was found, or with no word at all."""
        core, step = self._core, schedule_step(self._core, self._turn)
        published = chunk[self._active]
        predicted = core.schedule.motion.forward(self._state) if self._turn else self._state
        expected = step.directions @ predicted.reshape(len(core.tables.poles), -1).sum(axis=0)
        word = self._word(published, predicted, step)
        self._turn += 1
        if word is None:
            self._state = predicted
            return Evidence(np.full(len(step.points), -1), *self._anywhere(expected), expected)
        self._state = predicted + step.gain @ step.value(word)
        if step.books:
            return Evidence(word, *self._anywhere(expected), expected)
        borders = [np.concatenate([[-np.inf], b, [np.inf]]) for b in step.borders]
        low = np.array([b[i] for b, i in zip(borders, word, strict=True)])
        high = np.array([b[i + 1] for b, i in zip(borders, word, strict=True)])
        return Evidence(word, low + expected, high + expected, expected)

    def _word(self, published: NDArray[np.float32], predicted: Array, step: ScheduleStep) -> NDArray[np.intp] | None:
        """(m,) the word whose chunk is the published one; None when none is."""
        lo, hi = self._core.range
        inside = ((published > lo.astype(np.float32)) & (published < hi.astype(np.float32))).reshape(-1)
        basis = (self._weights @ step.gain).T @ self._to_chunk  # (r, A n)
        levels, scale = self._levels(published.astype(np.float64))
        plain = self._weights @ predicted @ self._to_chunk + np.repeat(self._core.mean[:, 0], published.shape[1])
        rest = (levels - plain) / scale
        seen = _least_squares((basis / scale)[:, inside], rest[inside])
        word = np.array(_nearest(step, seen), dtype=np.intp)
        self._step.chunk(self._weights @ (predicted + step.gain @ step.value(word)), self._out)
        error = np.abs(self._out.astype(np.float32) - published)
        allowed = _ROUNDING * (self._spread + np.abs(published).max(axis=1, keepdims=True))
        return word if (error <= allowed).all() else None

    def _levels(self, published: Array) -> tuple[Array, Array]:
        """(A n,) what the coder's linear estimate was, and how far rounding may have moved it, in whatever unit."""
        core = self._core
        if core.map is None:
            return published.reshape(-1), np.repeat(core.sd[:, 0], published.shape[1])
        off = _ROUNDING * (self._spread + np.abs(published))
        moved = core.map.there(published + off) - core.map.there(published - off)
        return core.map.there(published).reshape(-1), (moved + 1e-9 * core.sd).reshape(-1)

    @staticmethod
    def _anywhere(expected: Array) -> tuple[Array, Array]:
        return np.full(len(expected), -np.inf), np.full(len(expected), np.inf)


def _nearest(step: ScheduleStep, seen: Array) -> list[int]:
    """The code word whose points lie nearest to (r,) points."""
    if step.books:
        ends = np.cumsum([points.shape[1] for points in step.points])
        apart = [points - own for points, own in zip(step.points, np.split(seen, ends[:-1]), strict=True)]
        return [int((one**2).sum(axis=1).argmin()) for one in apart]
    return [int(np.abs(p - z).argmin()) for p, z in zip(step.points, seen, strict=True)]


def _least_squares(rows: Array, values: Array) -> Array:
    """(m,) weights of `rows` (m, N) that come nearest to `values` (N,)."""
    gram = rows @ rows.T
    solved = np.linalg.lstsq(gram, rows @ values, rcond=None)[0]  # lstsq: where all is clipped, gram is 0
    return np.asarray(solved, np.float64)
