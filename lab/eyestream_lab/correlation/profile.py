"""epsilon' of a session: what all releases together tell about the value of one chunk.

The secret is the state x or x' of chunk t. Given it, the releases before, of and after t are independent, so

    log P(all | x) / P(all | x') = backward_t(x, x') + own_t(x, x') + forward_t(x, x'),

and so are the outputs over which the supremum of each term is taken. By Bayes' theorem the left side is posterior odds
over prior odds, whatever the prior of x. (Cao, Yoshikawa, Xiao, Xiong, ICDE 2017, take the worst pair of each term
apart and, in place of an output law, all that epsilon allows.) If words depend on released values, the sums remain an
upper bound: a step takes the worst past at every chunk.

With one chain and two states the bound is the supremum. With more states it lets vectors be anything that pairwise
ratios allow; `attack` says how far above the attained value it is.

One step of the recursion: from what later (or earlier) releases tell of a state to what they tell of the one before.

Let G(y, y') bound the log-ratio of the likelihoods f(y) = P(releases beyond | y). One chunk nearer to the secret,

    f'(x) = sum_y P(x, y) p(o | y) f(y),

so log f'(x) / f'(x') is at most the largest ratio of two averages of one vector whose entries obey G, with the rows
P(x, .) p(o | .) and P(x', .) p(o | .), over the outputs o and the rows that the class holds. `transport` bounds it.

Interval rows. For a fixed vector the average is linear in the row, so the extreme rows suffice: all free mass on the
largest entries, one of them partly. Rows for x and x' are chosen apart, which allows more than the class does.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from eyestream.errors import ConfigError
from eyestream_lab.correlation.chains import MarkovClass, TransitionRows
from eyestream_lab.correlation.emissions import Emission
from eyestream_lab.correlation.transport import closure, largest_log_ratio, single_assignment

Array = NDArray[np.float64]

_MARGIN = 1e-9
_REMEMBERED = 32

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


@dataclass(frozen=True, eq=False)
class Profile:
    """epsilon' of every chunk of a session, in nats.

    Attributes
    ----------
    total : (T,) upper bounds of what the session tells about chunk t.
    backward, forward : (T, S, S) bounds of what releases before, and after, tell of a pair of states of chunk t.
    plain_sum : sum of the losses of all releases, which holds outside the class too.
    width : largest width of a numerical bracket of one step. Arithmetic raises a total by at most 2 T (width + 3e-9)
        above what exact steps would give, and never lowers it.
    """

    total: Array
    backward: Array
    forward: Array
    plain_sum: float
    width: float

    @property
    def epsilon(self) -> float:
        """epsilon': the largest of `total`."""
        return float(self.total.max())


def profile(process: MarkovClass, emissions: Sequence[Emission]) -> Profile:
    """epsilon' of each chunk of a session of len(emissions) releases, when the states follow a chain of `process`.

    Parameters
    ----------
    process
        The published class.
    emissions
        What is released of each chunk; a chunk that is withheld has an emission of zeros. The same object may stand
        for many chunks, which is faster than equal ones.

    Raises
    ------
    ConfigError
        when there is no chunk, or an emission is of another number of states.
    """
    length = len(emissions)
    if not length:
        raise ConfigError("emissions: a session has at least one chunk")
    made: dict[tuple[int, int], ChainStep] = {}
    forward_rows, backward_rows = process.forward(), process.backward(length)

    def step(rows: TransitionRows, emission: Emission) -> ChainStep:
        key = id(rows), id(emission)
        if key not in made:
            made[key] = interval_step(rows, emission)
        return made[key]

    ahead, ahead_width = _recursion([step(forward_rows, e) for e in reversed(emissions[1:])], process.states)
    behind, behind_width = _recursion(
        [step(rows, e) for rows, e in zip(backward_rows, emissions[:-1], strict=True)], process.states
    )
    reached = [process.first_highest > 0, *(rows.possible for rows in backward_rows)]
    pairs = np.array([np.logical_and.outer(here, here) for here in reached])
    return _combine(emissions, behind, ahead[::-1], pairs, max(ahead_width, behind_width))


def _combine(
    emissions: Sequence[Emission], backward: Array, forward: Array, possible: NDArray[np.bool_], width: float
) -> Profile:
    """Profile from what lies on both sides of each chunk, (T, S, S) each, over the `possible` pairs (T, S, S)."""
    plain = float(sum(e.loss for e in emissions)) * (1 + 2.0**-50)
    own = np.array([e.log_ratio for e in emissions])
    total = np.where(possible, own + backward + forward, 0.0).max(axis=(1, 2)) * (1 + 2.0**-50)
    return Profile(np.minimum(total, plain), backward, forward, plain, width)


def _recursion(steps: Sequence[ChainStep], states: int) -> tuple[Array, float]:
    """Bounds after 0, 1, .. steps from the end of a session, (len(steps) + 1, S, S), and the widest bracket.

    Repeated steps converge. A step does not fall when what it is given grows, so where it is given no more than once
    before, its earlier result holds. It is used again if little is lost by it; and what is given is rounded up by 1e-9
    where it was nearly the same before, for that to happen.
    """
    bounds = np.zeros((len(steps) + 1, states, states))
    known: dict[int, deque[tuple[Array, Array]]] = {}
    width, most = 0.0, 0.0
    for at, step in enumerate(steps):
        given, found = bounds[at], None
        seen = known.setdefault(id(step), deque(maxlen=_REMEMBERED))
        for before, result in seen:
            if np.abs(given - before).max() < 2 * _MARGIN:
                if (given <= before).all():
                    found = result
                    break
                given = np.maximum(given, before) + _MARGIN * ~np.eye(states, dtype=bool)
        if found is None:
            found, bracket = step.apply(given)
            seen.appendleft((given, found))
            width = max(width, bracket)
        most += step.most
        bounds[at + 1] = np.minimum(found, most * (1 + 2.0**-50))
    return bounds, width
