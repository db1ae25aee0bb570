"""A published class of Markov chains on S public states, and its chains run backward.

The class is made of intervals: one for every transition probability and one for every state's probability at the first
chunk. A chain is in the class when each of its steps has rows inside the intervals; the rows may differ from step to
step. Intervals of width zero make it one chain. What is proved for the class holds for each of its members, so margins
are how an uncertain fit is made into a claim.

Backward. P(s_t = y | s_{t+1} = s) = pi_t(y) P(y, s) / pi_{t+1}(s): the law of the first chunk matters here and only
here. For one chain it is computed; for a class it is enclosed, entry by entry, from the enclosure of pi_t.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eyestream.errors import ConfigError

Array = NDArray[np.float64]

_SUM = 1e-9  # by how much a given row may miss the sum 1; it is divided by its sum
_SETTLED = 1e-14
_MOST_STEPS = 5000
_WIDE = 2.0**-42  # covers the rounding of extreme rows
_OUTWARD = 2.0**-45  # relative widening of an enclosure after each step


@dataclass(frozen=True, eq=False)
class TransitionRows:
    """Rows of probabilities inside intervals, one row for each state that the adversary may suppose.

    Attributes
    ----------
    lowest, highest : (S, S) bounds of the entries.
    possible : (S,) states that can be the secret one; the rows of the others mean nothing.
    error : relative error of a row that is computed from them.
    """

    lowest: Array
    highest: Array
    possible: NDArray[np.bool_]
    error: float


@dataclass(frozen=True, eq=False)
class MarkovClass:
    """Markov chains with transition rows and first law inside intervals.

    Made by `exact` or `within`; the constructor takes what these have checked.

    Attributes
    ----------
    lowest, highest : (S, S) bounds of P(y, s), from y to s.
    first_lowest, first_highest : (S,) bounds of the law of the first chunk.
    steady : whether these bounds hold at every chunk.
    """

    lowest: Array
    highest: Array
    first_lowest: Array
    first_highest: Array
    steady: bool

    @staticmethod
    def exact(transitions: Array, first: Array | None = None) -> "MarkovClass":
        """The class of one chain.

        Parameters
        ----------
        transitions
            (S, S), rows of sum 1, from row to column.
        first
            (S,) law of the first chunk; None for the stationary law.

        Raises
        ------
        ConfigError
            when rows are not probabilities, shapes do not fit, or there is no one stationary law.
        """
        rows = _stochastic("transitions", _square(transitions))
        law = _stationary(rows) if first is None else _stochastic("first", _vector(first, len(rows)))[0]
        return MarkovClass(rows, rows, law, law, first is None)

    @staticmethod
    def within(
        lowest: Array, highest: Array, first_lowest: Array | None = None, first_highest: Array | None = None
    ) -> "MarkovClass":
        """All chains whose rows lie inside intervals.

        Parameters
        ----------
        lowest, highest
            (S, S) bounds of the transition probabilities.
        first_lowest, first_highest
            (S,) bounds of the law of the first chunk; None for every law that any chain of the class keeps.

        Raises
        ------
        ConfigError
            when bounds are negative, cross, do not fit in shape, or hold no row of probabilities.
        """
        low, high = _intervals("transitions", _square(lowest), _square(highest))
        if (first_lowest is None) != (first_highest is None):
            raise ConfigError("first: both bounds are needed, or none")
        if first_lowest is None or first_highest is None:
            law_low, law_high = _kept(low, high)
        else:
            pair = _vector(first_lowest, len(low)), _vector(first_highest, len(low))
            law_low, law_high = (bound[0] for bound in _intervals("first", *pair))
        return MarkovClass(low, high, law_low, law_high, first_lowest is None)

    @property
    def states(self) -> int:
        """S."""
        return len(self.lowest)

    @property
    def is_exact(self) -> bool:
        """Whether it holds one chain only."""
        rows_equal = np.array_equal(self.lowest, self.highest)
        return bool(rows_equal and np.array_equal(self.first_lowest, self.first_highest))

    def forward(self) -> TransitionRows:
        """Rows of the next chunk given this one."""
        return TransitionRows(
            self.lowest, self.highest, np.ones(self.states, dtype=bool), 2.0**-50 if self.is_exact else _WIDE
        )

    def backward(self, length: int) -> list[TransitionRows]:
        """Rows of chunk t given chunk t + 1, for t = 0 .. length - 2; equal ones are one object."""
        low, high = self.first_lowest, self.first_highest
        if self.steady:
            return [self._reversed(low, high, high, self.states**2)] * (length - 1)
        result: list[TransitionRows] = []
        for t in range(length - 1):
            next_low, next_high = self._next(low, high)
            result.append(self._reversed(low, high, next_high, t))
            if np.array_equal(next_low, low) and np.array_equal(next_high, high):
                result += [result[-1]] * (length - 2 - t)
                break
            low, high = next_low, next_high
        return result

    def _next(self, low: Array, high: Array) -> tuple[Array, Array]:
        """Law of the next chunk, enclosed."""
        if self.is_exact:
            following = low @ self.lowest
            return following, following
        return _following(self.lowest, self.highest, low, high)

    def _reversed(self, low: Array, high: Array, following: Array, t: int) -> TransitionRows:
        """Backward rows from bounds of the law before and the upper one of the law after, rounded `t` times."""
        possible = following > 0
        joint_low, joint_high = (low[:, None] * self.lowest).T, (high[:, None] * self.highest).T
        if self.is_exact:
            rows = joint_low / np.where(possible, joint_low.sum(axis=1), 1.0)[:, None]
            return TransitionRows(rows, rows, possible, 2.0**-51 * (self.states + 2) * (t + 4))
        others_high = joint_high.sum(axis=1, keepdims=True) - joint_high
        others_low = joint_low.sum(axis=1, keepdims=True) - joint_low
        with np.errstate(invalid="ignore"):
            rows_low = np.nan_to_num(joint_low / (joint_low + others_high)) * (1 - _OUTWARD)
            rows_high = np.where(joint_high > 0, joint_high / (joint_high + others_low), 0.0) * (1 + _OUTWARD)
        return TransitionRows(rows_low, np.minimum(rows_high, 1.0), possible, _WIDE)


def _following(lowest: Array, highest: Array, low: Array, high: Array) -> tuple[Array, Array]:
    """Bounds of the law after one step of any chain of the class from any law inside [low, high]."""
    smallest = -_largest_mean(-lowest, low, high) * (1 - _OUTWARD)
    largest = np.minimum(_largest_mean(highest, low, high) * (1 + _OUTWARD), 1.0)
    return np.maximum(smallest, 0.0), largest


def _largest_mean(values: Array, low: Array, high: Array) -> Array:
    """(m,) largest mean of each column of values (S, m) under laws inside [low, high]."""
    # all free mass goes to the largest values
    order = np.argsort(-values, axis=0, kind="stable")
    width = (high - low)[order]
    before = np.cumsum(width, axis=0) - width
    extra = np.clip(max(0.0, 1.0 - float(low.sum())) - before, 0.0, width)
    mean: Array = low @ values + (extra * np.take_along_axis(values, order, axis=0)).sum(axis=0)
    return mean


def _kept(lowest: Array, highest: Array) -> tuple[Array, Array]:
    """Bounds of every law that some chain of the class keeps: what the whole simplex shrinks to."""
    low, high = np.zeros(len(lowest)), np.ones(len(lowest))
    for _ in range(_MOST_STEPS):
        next_low, next_high = _following(lowest, highest, low, high)
        next_low, next_high = np.maximum(next_low, low), np.minimum(next_high, high)
        moved = max(float((next_low - low).max()), float((high - next_high).max()))
        low, high = next_low, next_high
        if moved < _SETTLED:
            break
    return low, high


def _stationary(rows: Array) -> Array:
    """The stationary law by state reduction (Grassmann, Taksar, Heyman, Operations Research 33, 1985).

    It subtracts nothing, so every entry is right to a few units of the last place times S^2.
    """
    work = rows.copy()
    for last in range(len(rows) - 1, 0, -1):
        leaving = work[last, :last].sum()
        if leaving <= 0:
            raise ConfigError(f"transitions: state {last} cannot be left toward earlier ones; give the first law")
        work[:last, last] /= leaving
        work[:last, :last] += work[:last, [last]] * work[[last], :last]
    law = np.zeros(len(rows))
    law[0] = 1.0
    for state in range(1, len(rows)):
        law[state] = law[:state] @ work[:state, state]
    result: Array = law / law.sum()
    return result


def _square(matrix: Array) -> Array:
    matrix = np.array(matrix, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or len(matrix) < 2:
        raise ConfigError(f"transitions: shape {matrix.shape}, needs (S, S) with S >= 2")
    return matrix


def _vector(law: Array, states: int) -> Array:
    law = np.array(law, dtype=np.float64)
    if law.shape != (states,):
        raise ConfigError(f"first: shape {law.shape}, needs ({states},), one probability for each state")
    return law[None]


def _checked(name: str, rows: Array) -> Array:
    if not np.isfinite(rows).all():
        raise ConfigError(f"{name}: not finite")
    if (rows < 0).any():
        raise ConfigError(f"{name}: negative probability {rows.min():g} in row {int(rows.min(axis=1).argmin())}")
    return rows


def _stochastic(name: str, rows: Array) -> Array:
    sums = _checked(name, rows).sum(axis=1)
    worst = int(np.abs(sums - 1).argmax())
    if abs(sums[worst] - 1) > _SUM:
        raise ConfigError(f"{name}: not stochastic, row {worst} sums to {sums[worst]:.9g} and not to 1")
    result: Array = rows / sums[:, None]
    return result


def _intervals(name: str, low: Array, high: Array) -> tuple[Array, Array]:
    if low.shape != high.shape:
        raise ConfigError(f"{name}: lowest has shape {low.shape}, highest {high.shape}")
    _checked(f"lowest {name}", low)
    high = np.minimum(_checked(f"highest {name}", high), 1.0)
    if (low > high).any():
        row = int((low > high).any(axis=1).argmax())
        raise ConfigError(f"{name}: in row {row} a lowest bound is above the highest one")
    for row, (least, most) in enumerate(zip(low.sum(axis=1), high.sum(axis=1), strict=True)):
        if least > 1 or most < 1:
            raise ConfigError(
                f"{name}: the margins of row {row} hold no row of probabilities: their sums are {least:g} and {most:g}"
            )
    return low, high
