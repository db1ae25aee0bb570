"""How much better than e^A bounded likelihoods tell two shifted normal laws apart: the best half-space.

Let P = N(delta, 1) and Q = N(0, 1), and L a positive function whose largest value is at most e^A times its smallest.
Then log (E_P L / E_Q L) is largest for an L of two values, e^A on a set S and 1 elsewhere, and by the lemma of Neyman
and Pearson on a half-space:

    advantage(delta, A) = max over z of log (1 + c Phi(z + delta)) / (1 + c Phi(z)),   c = e^A - 1.

In more dimensions delta is the length of the shift in the metric of the inverse covariance: nothing else enters, since
the ratio of the densities depends on one direction alone.

A proof for each answer. R is an upper bound of the ratio when 1 + c Phi(z + delta) - R (1 + c Phi(z)) <= 0 for every z.
The left side has the derivative c phi(z) (e^(-z delta - delta^2 / 2) - R), which changes its sign once, from plus to
minus, at z = -log(R) / delta - delta / 2. So one z decides. R is found by bisection; what is returned has passed. log
Phi comes from erfc where that has digits, and below -8 from phi(z) / -z (1 - 1 / z^2) and phi(z) / -z, which enclose
it.
"""

import math

import numpy as np
from numpy.typing import NDArray

__all__ = ["advantage", "log_tail"]

Array = NDArray[np.float64]

_TAIL = -8.0
_OUTWARD = 1e-12
_PRECISION = 1e-4


def advantage(shift: float, exponent: float) -> float:
    """Upper bound of the log-ratio, in nats; above the maximum by at most a ten-thousandth of it.

    Parameters
    ----------
    shift
        delta, not negative, in standard deviations.
    exponent
        A, not negative and finite.
    """
    if shift <= 0 or exponent <= 0:
        return 0.0
    scale = exponent + math.log(-math.expm1(-exponent))
    low, high = 0.0, exponent
    while high - low > _PRECISION * high:
        middle = (low + high) / 2
        z = -middle / shift - shift / 2
        told = _log_sum(scale + _log_normal(z + shift)[1]) + _OUTWARD * (1 + exponent)
        if told <= middle + _log_sum(scale + _log_normal(z)[0]):
            high = middle
        else:
            low = middle
    return high


def log_tail(points: Array) -> Array:
    """Upper bound of log Phi(-v) at v > 0: phi(v) / v, or 1/2 where that is less."""
    bound: Array = np.minimum(-(points**2) / 2 - np.log(points * math.sqrt(2 * math.pi)), math.log(0.5))
    return bound


def _log_sum(x: float) -> float:
    """log(1 + e^x)."""
    return x + math.log1p(math.exp(-x)) if x > 0 else math.log1p(math.exp(x))


def _log_normal(z: float) -> tuple[float, float]:
    """Bounds of log Phi(z), from below and from above."""
    if z >= _TAIL:
        exact = math.log(0.5 * math.erfc(-z / math.sqrt(2)))
        return exact - _OUTWARD, exact + _OUTWARD
    upper = -z * z / 2 - math.log(-z * math.sqrt(2 * math.pi))
    return upper + math.log1p(-1 / (z * z)) - _OUTWARD * abs(upper), upper * (1 - _OUTWARD)
