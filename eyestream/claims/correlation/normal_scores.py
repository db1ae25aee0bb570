"""What later releases tell of Gaussian autoregressive scores, whatever each release is, as long as it costs epsilon.

Scores are whitened by their stationary covariance: x_{t+1} = a x_t + w_t, w_t of covariance sigma^2 = 1 - a^2 in every
direction. Let G(r) bound log f(x) / f(x') for |x - x'| <= r, f the likelihood of all later outputs, of at most N chunks
of loss epsilon. Then h(y) = p(o | y) f(y) has log h(y) / h(y') <= B(|y - y'|), B(r) = min(epsilon + G(r), N epsilon),
and one chunk nearer to the secret f(x) is the mean of h under a normal law about a x. Two bounds of the log-ratio of
two such means, their centres a r apart:

- Coupling. The same w in both: B(a r).
- A window. Along the direction of the shift (the other ones are coupled), in units of sigma, let delta = a r / sigma
  and I = [-Z, delta + Z]. Inside I, h varies by at most e^A, A = B(delta + 2 Z), so what it tells is at most
  `advantage(delta, A)` if outside it were no larger; what lies outside adds no more than 2 sum_v Phi(-v)
  e^B(delta + Z + v + 1) over v = Z, Z + 1, .. times the least value in I, and takes from the other mean no more than
  2 Phi(-Z) of it.

Both hold with any G that holds. So bounds are improved in place until they stand still; where to stop is free. They
begin with N epsilon. The table has the distances `farthest` a^(i/2): a step of coupling is two entries.
"""

import math

import numpy as np
from numpy.typing import NDArray

from eyestream.claims.correlation.half_spaces import advantage, log_tail

__all__ = ["forward_bound"]

Array = NDArray[np.float64]

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
