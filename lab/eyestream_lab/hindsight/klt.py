"""Hindsight of KLT: the Rauch-Tung-Striebel smoother of its schedule."""

from collections.abc import Sequence
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from eyestream.core.mechanisms.klt.core import JointCore
from eyestream.core.mechanisms.klt.schedule import Schedule
from eyestream.core.portable import solved, transposed

Array = NDArray[np.float64]


def look_back(core: JointCore, states: Sequence[Array], out: Sequence[Array]) -> None:
    """Write the chunks (A, n) of a whole session, given all its releases, to `out`; `states` after each of them."""
    step, weights, components = core.step(), core.tables.weights, len(core.tables.poles)
    for state, chunk in zip(backward(core.schedule, states), out, strict=True):
        step.chunk(weights @ state.reshape(components, -1), chunk)


def backward(schedule: Schedule, states: Sequence[Array]) -> list[Array]:
    """The states of a whole session, given all its releases, from what was known after each of them.

    x_t + gain_t (x_(t+1) smoothed - F x_t), from the last chunk backward (Rauch, Tung and Striebel, AIAA Journal 3(8),
    1965). A function of released values and public figures alone.
    """
    gains = backward_gains(schedule, max(len(states) - 1, 0))
    smoothed = [np.asarray(state, np.float64) for state in states]
    for turn in range(len(smoothed) - 2, -1, -1):
        gain = gains[min(turn, len(gains) - 1)]
        smoothed[turn] = smoothed[turn] + gain @ (smoothed[turn + 1] - schedule.motion.forward(smoothed[turn]))
    return smoothed


def backward_gains(schedule: Schedule, count: int) -> list[Array]:
    """(J d, J d) P_t F' (P_(t+1) before)^-1 of the first `count` chunks, but for those after the last step."""
    turns = list(islice(schedule.turns(), count + 1))
    pairs = zip(turns, [*turns[1:], turns[-1]], strict=True)
    return [
        transposed(solved(before, schedule.motion.onward(after)))
        for (_, _, after), (_, before, _) in islice(pairs, count)
    ]
