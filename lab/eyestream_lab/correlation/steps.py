"""One step of the recursion: from what later (or earlier) releases tell of a state to what they tell of the one before.

Let G(y, y') bound the log-ratio of the likelihoods f(y) = P(releases beyond | y). One chunk nearer to the secret,

    f'(x) = sum_y P(x, y) p(o | y) f(y),

so log f'(x) / f'(x') is at most the largest ratio of two averages of one vector whose entries obey G, with the rows
P(x, .) p(o | .) and P(x', .) p(o | .), over the outputs o and the rows that the class holds. `transport` bounds it.

Interval rows. For a fixed vector the average is linear in the row, so the extreme rows suffice: all free mass on the
largest entries, one of them partly. Rows for x and x' are chosen apart, which allows more than the class does.
"""

from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from eyestream.errors import ConfigError
from eyestream_lab.correlation.chains import TransitionRows
from eyestream_lab.correlation.emissions import Emission
from eyestream_lab.correlation.transport import closure, largest_log_ratio, single_assignment

__all__ = ["ChainStep", "extreme_rows", "interval_step"]

Array = NDArray[np.float64]

_MOST_PAIRS = 200
_MOST_PRODUCT = 1_000_000
_TIE = 2.0**-45
_MOST_FREE = 12


@dataclass(frozen=True, eq=False)
class ChainStep:
    """The pairs of rows whose ratio of averages is to be bounded.

    Attributes
    ----------
    states : S.
    above, below : (N, S) logarithms of the rows for the state `first` and the state `second`.
    first, second : (N,) states that the adversary compares.
    possible : (S,) states that can be compared.
    loss : (S, S) of one output, where outputs are not listed; zero else.
    error : of every bound, from the rows, in nats.
    most : bound of what one release adds.
    """

    states: int
    above: Array
    below: Array
    first: NDArray[np.intp]
    second: NDArray[np.intp]
    possible: NDArray[np.bool_]
    loss: Array
    error: float
    most: float

    def apply(self, beyond: Array) -> tuple[Array, float]:
        """Bounds of the log-ratios one chunk nearer to the secret, and the largest width of their numerical brackets.

        Parameters
        ----------
        beyond
            (S, S) bounds G of the log-ratios given what lies beyond.
        """
        exponents = closure(beyond + self.loss)
        compared = np.logical_and.outer(self.possible, self.possible)
        result = np.where(compared, 0.0, beyond.max() + self.most)
        pair = self.first * self.states + self.second
        at_most = single_assignment(self.above, self.below, exponents) + self.error
        order = np.lexsort((-at_most, pair))
        starts = np.searchsorted(pair[order], pair[order])
        rank = np.empty(len(pair), dtype=np.intp)
        rank[order] = np.arange(len(pair)) - starts
        width, done = 0.0, 0
        while done < len(pair):  # the most promising rows of each pair first; rows that cannot be worse are left out
            here = (rank >= done) & (rank < 2 * done + 1) & (at_most > result[self.first, self.second])
            done = 2 * done + 1
            if here.any():
                upper, lower = largest_log_ratio(self.above[here], self.below[here], exponents)
                np.maximum.at(result, (self.first[here], self.second[here]), upper + self.error)
                width = max(width, float((upper - lower).max()))
        return result, width


def interval_step(rows: TransitionRows, emission: Emission) -> ChainStep:
    """Step through rows inside intervals into states that are released by `emission`."""
    states = len(rows.lowest)
    if emission.log_ratio.shape != (states, states):
        raise ConfigError(f"emission: of {len(emission.log_ratio)} states, the chains have {states}")
    outputs = emission.outputs if emission.complete else np.zeros((1, states))
    loss = np.zeros((states, states)) if emission.complete else emission.log_ratio
    above, below, first, second = [], [], [], []
    for x, z in product(np.flatnonzero(rows.possible), repeat=2):
        if x != z:
            upper, lower = _pairs(rows.lowest[[x, z]], rows.highest[[x, z]])
            above.append((upper[:, None, :] + outputs).reshape(-1, states))
            below.append((lower[:, None, :] + outputs).reshape(-1, states))
            first.append(np.full(len(above[-1]), x))
            second.append(np.full(len(above[-1]), z))
    return ChainStep(
        states,
        np.concatenate(above),
        np.concatenate(below),
        np.concatenate(first),
        np.concatenate(second),
        rows.possible,
        loss,
        2 * rows.error,
        emission.loss,
    )


def _pairs(low: Array, high: Array) -> tuple[Array, Array]:
    """(N, S) logarithms of the pairs of extreme rows that can be worst together; low, high (2, S).

    The first row has its free mass where the vector is large, the second where it is small: pairs that need two states
    in opposite orders are left out. Where too many remain, the wider class stands in that keeps only lower bounds.
    """
    if max((high > low).sum(axis=1)) <= _MOST_FREE:
        upper, lower = extreme_rows(low[0], high[0]), extreme_rows(low[1], high[1])
        if len(upper) * len(lower) <= _MOST_PRODUCT:
            over = _prefers(upper, low[0], high[0])
            under = _prefers(lower, low[1], high[1])
            i, j = np.nonzero(np.einsum("iab,jab->ij", over, under, optimize=True) == 0)
            if len(i) <= _MOST_PAIRS:
                return _log(upper[i]), _log(lower[j])
    upper, lower = (bound + max(0.0, 1 - bound.sum()) * np.eye(len(bound)) for bound in low)
    i, j = np.nonzero(~np.eye(len(upper), dtype=bool))
    return _log(upper[i]), _log(lower[j])


def _prefers(rows: Array, low: Array, high: Array) -> Array:
    """(V, S, S) 1 where a row puts free mass on a state while another one is not full."""
    has, wants = rows > low + _TIE, rows < high - _TIE
    return (has[:, :, None] & wants[:, None, :] & ~np.eye(len(low), dtype=bool)).astype(np.float64)


def _log(rows: Array) -> Array:
    with np.errstate(divide="ignore"):
        return np.log(rows)


def extreme_rows(low: Array, high: Array) -> Array:
    """(V, S) extreme points of the rows of probabilities inside [low, high]: at most one entry is not at a bound."""
    free = np.flatnonzero(high > low)
    if not len(free):
        return low[None].copy()
    width = (high - low)[free]
    chosen = np.array(list(product((False, True), repeat=len(free))))
    left = max(0.0, 1.0 - float(low.sum())) - chosen @ width
    rows = []
    for pivot in range(len(free)):
        fits = ~chosen[:, pivot] & (left >= -_TIE) & (left <= width[pivot] + _TIE)
        found = np.tile(low, (int(fits.sum()), 1))
        found[:, free] += chosen[fits] * width
        found[:, free[pivot]] += np.maximum(left[fits], 0.0)
        rows.append(found)
    return np.unique(np.concatenate(rows), axis=0)
