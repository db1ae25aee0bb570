"""Epsilons of the chunks of a session such that epsilon' of every chunk stays below a target.

A bound of epsilon' is a function from the epsilons (T,) of the releases to (T,) totals that does not fall when an
epsilon grows. All schedules here end with a check of that function: what is returned is below the target by its own
bound. Three shapes:

- `constant`: the same epsilon for every chunk, as large as possible.
- `spaced`: every gap-th chunk is released, the others are withheld. Chunks further apart know less of each other; for
  small epsilons, where what a release is worth grows with the square of its epsilon, that may be worth more.
- `balanced`: the chunks at both ends, known from one side alone, get more until every chunk is at the target. For the
  coupling bound sum_s epsilon_s a^|s - t| the answer is in closed form: target (1 - a) / (1 + a) inside and target /
  (1 + a) at both ends.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from eyestream.errors import ConfigError
from eyestream.lab.correlation.chains import MarkovClass
from eyestream.lab.correlation.emissions import Emission, withheld
from eyestream.lab.correlation.profile import profile

__all__ = ["Bound", "balanced", "constant", "markov_bound", "spaced"]

Array = NDArray[np.float64]

Bound = Callable[[Array], Array]

_HALVINGS = 60


def markov_bound(process: MarkovClass, law: Callable[[float], Emission]) -> Bound:
    """The bound of `profile` as a function of the epsilons; `law` makes the emission of one epsilon."""

    def bound(epsilons: Array) -> Array:
        made = {float(e): law(float(e)) if e > 0 else withheld(process.states) for e in epsilons}
        return profile(process, [made[float(e)] for e in epsilons]).total

    return bound


def constant(target: float, length: int, bound: Bound, *, precision: float = 1e-4) -> Array:
    """(T,) the largest equal epsilons with every total at most `target`, to a relative `precision`.

    Raises
    ------
    ConfigError
        when the target is not positive or there is no chunk.
    """
    return _largest(target, np.ones(_positive(target, length)), bound, precision)


def spaced(target: float, length: int, gap: int, bound: Bound, *, precision: float = 1e-4) -> Array:
    """(T,) the largest equal epsilons on the chunks 0, gap, 2 gap, .. and zero on the others."""
    if gap < 1:
        raise ConfigError(f"gap: must be at least 1, not {gap}")
    shape = np.zeros(_positive(target, length))
    shape[::gap] = 1.0
    return _largest(target, shape, bound, precision)


def balanced(target: float, length: int, bound: Bound, *, rounds: int = 30, precision: float = 1e-4) -> Array:
    """(T,) epsilons whose totals are all near `target`, none above it; no smaller sum than `constant`."""
    equal = constant(target, length, bound, precision=precision)
    shape = equal.copy()
    for _ in range(rounds):
        totals = bound(shape)
        if np.abs(totals / target - 1).max() < precision:
            break
        shape = shape * np.sqrt(target / totals)
    found = _largest(target, shape / shape.max(), bound, precision)
    return found if found.sum() > equal.sum() else equal


def _positive(target: float, length: int) -> int:
    if not (np.isfinite(target) and target > 0):
        raise ConfigError(f"target: must be positive and finite, not {target}")
    if length < 1:
        raise ConfigError(f"length: a session has at least one chunk, not {length}")
    return length


def _largest(target: float, shape: Array, bound: Bound, precision: float) -> Array:
    """The largest multiple of `shape` that the bound allows; target over the plain sum is always allowed."""
    low = target / float(shape.sum()) * (1 - 1e-9)
    high = target / float(shape.max())
    for _ in range(_HALVINGS):
        if high - low <= precision * low:
            break
        middle = (low * high) ** 0.5
        if bound(middle * shape).max() <= target:
            low = middle
        else:
            high = middle
    result: Array = low * shape
    return result
