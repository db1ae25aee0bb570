"""epsilon' of a session: what all releases together tell about the value of one chunk.

The secret is the state x or x' of chunk t. Given it, the releases before, of and after t are independent, so

    log P(all | x) / P(all | x') = backward_t(x, x') + own_t(x, x') + forward_t(x, x'),

and so are the outputs over which the supremum of each term is taken. By Bayes' theorem the left side is posterior odds
over prior odds, whatever the prior of x. (Cao, Yoshikawa, Xiao, Xiong, ICDE 2017, take the worst pair of each term
apart and, in place of an output law, all that epsilon allows.) If words depend on released values, the sums remain an
upper bound: `steps` takes the worst past at every chunk.

With one chain and two states the bound is the supremum. With more states it lets vectors be anything that pairwise
ratios allow; `attack` says how far above the attained value it is.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eyestream.errors import ConfigError
from eyestream_lab.correlation.chains import MarkovClass, TransitionRows
from eyestream_lab.correlation.emissions import Emission
from eyestream_lab.correlation.steps import ChainStep, interval_step

__all__ = ["Profile", "profile"]

Array = NDArray[np.float64]

_MARGIN = 1e-9
_REMEMBERED = 32


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
