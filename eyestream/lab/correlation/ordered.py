"""The exact supremum where states and outputs are ordered: O(T S^2), however many states.

Let the chain be totally positive of order 2 (TP2): P(i, k) P(j, l) >= P(i, l) P(j, k) for i < j, k < l, that is, a
higher state makes higher states likelier. Let one output, the highest, be such that its likelihood over that of any
other output does not fall with the state. Then for x > x' the ratio f(x) / f(x') is largest when *every* later output
is the highest one.

Proof. Write g for the likelihoods of outputs beyond a chunk as a function of its state, g* for the all-highest ones;
claim: g* / g does not fall with the state. For the next vector, h = p(o | .) g and h* = p(o* | .) g*: h* / h = (p* / p)
(g* / g) does not fall. A TP2 kernel keeps that: (P h*)(x) / (P h)(x) is the average of h* / h under the law
proportional to P(x, .) h, which moves upward with x (Karlin, Total Positivity, 1968). By induction the claim holds;
hence g*(x) / g*(x') >= g(x) / g(x') for x > x'. The backward rows are TP2 too: pi(y) P(y, s) / pi(s) has minors of the
same sign. For x < x' take the lowest output. QED

Scalar Laplace noise on increasing values and Gaussian autoregressive chains with a >= 0 on a grid are such.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from eyestream.errors import ConfigError
from eyestream.lab.correlation.chains import MarkovClass
from eyestream.lab.correlation.emissions import Emission
from eyestream.lab.correlation.profile import Profile, combine
from eyestream.lab.correlation.transport import rounding

__all__ = ["is_totally_positive", "ordered_profile"]

Array = NDArray[np.float64]

_TIE = 1e-12


def is_totally_positive(rows: Array) -> bool:
    """Whether all 2 x 2 minors of (S, S) rows are not negative, up to 1e-12 of their products."""
    for gap in range(1, len(rows)):
        down = rows[:-gap, :, None] * rows[gap:, None, :]  # P(i, k) P(j, l)
        up = np.swapaxes(down, 1, 2)
        minor = np.triu(down - up * (1 - _TIE), 1)
        if (minor < 0).any():
            return False
    return True


def ordered_profile(process: MarkovClass, emissions: Sequence[Emission]) -> Profile:
    """epsilon' of each chunk, exact up to rounding, for one chain of ordered states.

    Raises
    ------
    ConfigError
        when the class holds more than one chain, the chain is not TP2, or an emission has no highest and lowest output.
    """
    if not process.is_exact:
        raise ConfigError("process: the ordered bound is of one chain, not of margins")
    if not is_totally_positive(process.lowest):
        raise ConfigError("process: the chain is not totally positive of order 2")
    ends = {id(e): _ends(e) for e in emissions}
    rows = process.backward(len(emissions))
    with np.errstate(divide="ignore"):
        ahead = _recursion([(np.log(process.lowest), ends[id(e)]) for e in reversed(emissions[1:])], process.states)
        logs = {id(r): np.log(r.lowest) for r in rows}
        behind = _recursion([(logs[id(r)], ends[id(e)]) for r, e in zip(rows, emissions, strict=False)], process.states)
    reached = [process.first_highest > 0, *(r.possible for r in rows)]
    pairs = np.array([np.logical_and.outer(here, here) for here in reached])
    error = 2 * sum((r.error for r in rows[-1:]), 2.0**-50)
    outward = (rounding(process.states, sum(e.loss for e in emissions)) + error) * np.arange(len(emissions))
    return combine(
        emissions,
        behind + outward[:, None, None],
        (ahead + outward[:, None, None])[::-1],
        pairs,
        float(outward[-1]) / max(len(emissions), 1),
    )


def _ends(emission: Emission) -> Array:
    """(2, S) log-likelihoods of the highest and the lowest output."""
    if not emission.complete:
        raise ConfigError("emission: its extreme outputs are not all listed")
    found = []
    for sign in (1.0, -1.0):
        slopes = sign * np.diff(emission.outputs, axis=1)
        at = int(slopes.sum(axis=1).argmax())
        if (slopes > slopes[at] + _TIE).any():
            raise ConfigError("emission: no one output speaks for high states, or for low ones, more than all others")
        found.append(emission.outputs[at])
    return np.array(found)


def _recursion(steps: Sequence[tuple[Array, Array]], states: int) -> Array:
    """(len(steps) + 1, S, S) exact log-ratios after 0, 1, .. steps from the end, from (log rows, ends) of each."""
    upper = np.tri(states, k=-1, dtype=bool)  # x > x'
    high, low = np.zeros(states), np.zeros(states)
    result = np.zeros((len(steps) + 1, states, states))
    for at, (rows, ends) in enumerate(steps):
        high = np.logaddexp.reduce(rows + ends[0] + high, axis=1)
        low = np.logaddexp.reduce(rows + ends[1] + low, axis=1)
        with np.errstate(invalid="ignore"):
            ratio = np.where(upper, high[:, None] - high, low[:, None] - low)
        result[at + 1] = np.nan_to_num(ratio, nan=0.0)
    return result
