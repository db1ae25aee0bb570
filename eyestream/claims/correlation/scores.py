"""Loss across releases of code words of scores under a published class; `CORRELATION.md` has the proofs.

Scores are Gaussian and autoregressive. Two bounds hold of what later chunks tell of two contents of one: coupling, and
a window. `advantage` is the best half-space; `forward_bound` improves both bounds in place until they stand still.
"""

import math

import numpy as np
from numpy.typing import NDArray

from eyestream.claims.correlation.published import OUTWARD, PublishedClass
from eyestream.core.mechanism import Mechanism
from eyestream.core.mechanisms.klt.core import JointCore

Array = NDArray[np.float64]

_TAIL = -8.0
_OUTWARD = 1e-12
_PRECISION = 1e-4


def advantage(shift: float, exponent: float) -> float:
    """How much better than e^A bounded likelihoods tell two normal laws apart, at most, in nats.

    The best likelihood has two values, e^A on a half-space and 1 elsewhere. What is returned is above the maximum by at
    most a ten-thousandth of it.

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


_FINE = 2
_NEAREST = 2e-3
_MOST_ENTRIES = 160
_SWEEPS = 4
_LARGEST = 1e6  # nats
_SLOWEST = 0.98  # beyond it the table would be long, and little is won
_SETTLED = 0.02
_WINDOWS = (2.5, 4.0, 7.0, 12.0)


def forward_bound(most: float, epsilon: float, chunks: int, distance: float, first: float | None = None) -> float:
    """Upper bound of what `chunks` later chunks tell of two scores, in nats.

    Parameters
    ----------
    most
        a, between 0 and 1.
    epsilon
        Of one chunk.
    chunks
        N.
    distance
        Of the two scores, in stationary standard deviations.
    first
        a from the secret to the first of them, where that is another one.
    """
    plain = chunks * epsilon
    if chunks == 0 or (most == 0 and not first):
        return 0.0
    if most == 0:  # only the nearest one knows of the secret
        return min(epsilon, plain)
    if not 0 < most <= _SLOWEST or plain > _LARGEST:
        return plain
    table = _Table(most, epsilon, plain, distance)
    before = math.inf
    for _ in range(_SWEEPS):
        found = table.sweep()
        if before - found < _SETTLED * found:
            break
        before = found
    return found if first is None else min(plain, table.nearer(first))


class _Table:
    """G at the distances of a geometric grid, from far to near."""

    def __init__(self, most: float, epsilon: float, plain: float, distance: float) -> None:
        self._sigma = math.sqrt(-math.expm1(2 * math.log(most)))
        windows = (*_WINDOWS, math.sqrt(2 * plain) + 5)
        farthest = distance + 3 * self._sigma * max(windows)
        ratio = most ** (1 / _FINE)
        self._secret = _FINE * math.ceil(math.log(farthest / distance) / -math.log(most))
        self._log_first = math.log(distance) - self._secret * math.log(ratio)
        self._log_ratio = math.log(ratio)
        wanted = self._secret + math.ceil(math.log(_NEAREST / distance) / self._log_ratio)
        count = min(wanted, self._secret + _MOST_ENTRIES)
        self._far = np.exp(self._log_first + self._log_ratio * np.arange(count)) * (1 + 2.0**-40)
        self._bounds = np.full(count, float(plain))
        self._epsilon, self._plain, self._windows = epsilon, plain, windows

    def sweep(self) -> float:
        """Improve every entry, the nearest ones first; the bound at the distance of the secret."""
        for entry in range(len(self._bounds) - 1, -1, -1):
            coupled = entry + _FINE
            nearer = self._bounds[min(coupled, len(self._bounds) - 1)]
            shift = float(self._far[entry]) * math.exp(_FINE * self._log_ratio) / self._sigma * (1 + 2.0**-40)
            told = min(self._bounds[entry], self._epsilon + nearer)
            for window in self._windows:
                told = min(told, self._window(shift, window))
            self._bounds[entry] = told
        return float(self._bounds[self._secret])

    def nearer(self, first: float) -> float:
        """The bound at the distance of the secret where the first chunk lies nearer to it than the others do."""
        distance, own = math.exp(self._log_first + self._secret * self._log_ratio) * (1 + 2.0**-40), self._sigma
        told = float(self._apart(np.array([first * distance / own]))[0])
        self._sigma = math.sqrt(-math.expm1(2 * math.log(first)))
        told = min([told, *(self._window(first * distance / self._sigma, window) for window in self._windows)])
        self._sigma = own
        return told

    def _apart(self, distances: Array) -> Array:
        """B at distances in units of sigma; `plain` beyond the table."""
        place = np.floor((np.log(distances * self._sigma) - self._log_first) / self._log_ratio - 1e-9).astype(int)
        known = self._bounds[np.clip(place, 0, len(self._bounds) - 1)]
        return np.minimum(np.where(place < 0, self._plain, self._epsilon + known), self._plain)

    def _window(self, shift: float, window: float) -> float:
        inside = float(self._apart(np.array([shift + 2 * window]))[0])
        if inside <= 0:
            return 0.0
        steps: Array = window + np.arange(
            math.ceil(max(0.0, math.sqrt(2 * self._plain) + 8 - window)) + 1, dtype=np.float64
        )
        outside = log_tail(steps) + self._apart(shift + window + steps + 1)
        outside[-1] = log_tail(steps[-1:])[0] + self._plain
        tail = math.log(2) + float(np.logaddexp.reduce(outside))
        lost = math.log1p(-2 * math.exp(float(log_tail(np.array([window]))[0])))
        return float(np.logaddexp(advantage(shift, inside), tail)) - lost


class ScoreBound:
    """A `CrossChunkBound` of released scores."""

    saturates = True

    def time_constant_s(self, process: PublishedClass) -> float:
        """Time constant of the scores."""
        return process.score_time_constant_s

    def within(self, process: PublishedClass) -> str:
        """The range of the two contents, in words."""
        return f"each uncorrelated score of them within {process.range_sd:g} standard deviations of the level"

    def side(
        self, mechanism: Mechanism, process: PublishedClass, most: float, chunks: int, *, first: int, every: int
    ) -> float:
        """Loss by `chunks` chunks on one side, in nats."""
        core, epsilon = mechanism.core, float(mechanism.loss.epsilon)
        assert isinstance(core, JointCore)
        distance = 2 * process.range_sd * math.sqrt(core.tables.basis.shape[1])
        nearest = None if first == every else most**first
        return forward_bound(most**every, epsilon, chunks, distance, nearest) * OUTWARD


SCORES = ScoreBound()
