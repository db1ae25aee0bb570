"""The laboratory's part of mechanisms that add noise to signals: their trials, their law, what the study knows.

One release of a synthetic calibration of a thousand equal features is a thousand independent releases of one feature at
epsilon; half of them get the first neighbour, half the second. The neighbours lie far outside the ball, so that the
projection is part of what is tried.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from eyestream.core.additive.core import AdditiveCore
from eyestream.core.additive.signals import Signals
from eyestream.core.calibration import Calibration, PerFeatureTables
from eyestream.core.mechanism import Mechanism
from eyestream.core.mechanisms import build
from eyestream.core.noise import Noise
from eyestream.core.spectrum import coordinate_weights, most_coefficients
from eyestream_lab.audit.estimate import safe_bound
from eyestream_lab.audit.trials import FAR, SHARP, Case, Cells, made_by_hand
from eyestream_lab.correlation.emissions import Emission, laplace

Array = NDArray[np.float64]

_TOGETHER, _LEVELS, _PHASES = 1000, 40, 16


def synthetic_additive(mechanism: str, signals: Signals, n: int, features: int, width: float = 1e9) -> Calibration:
    """A calibration made by hand: equal features, the ball of radius 1 around 0, and a range that does not bind."""
    count = most_coefficients(n) if signals.truncates else 1
    table, column, row = np.zeros((features, n)), np.zeros(features), np.zeros((features, count))
    tables = PerFeatureTables(
        centre=table,
        radius=np.ones(features),
        mean=table,
        spread=column,
        truncation=row,
        overlap=row,
        energy=row,
        diameter=np.full(features, 2.0),
        stable_variance=column,
        transient_variance=column,
        detail=column,
        between_people=column,
    )
    return made_by_hand(mechanism, n, features, width, tables)


def worst_signal(n: int, k: int) -> tuple[Array, Array]:
    """The coordinates (M,) and the signal (n,) of norm 1 whose coordinates have the largest sum: a_i ~ 1 / w_i."""
    weights = coordinate_weights(n, k)
    a = 1.0 / weights
    a *= math.sqrt(n / (weights * a**2).sum())
    spectrum = np.zeros(n // 2 + 1, dtype=np.complex128)
    reals = np.zeros(2 * k)
    reals[0], reals[2 : len(a) + 1] = a[0], a[1:]
    spectrum[:k] = reals[0::2] + 1j * reals[1::2]
    return a, np.fft.irfft(spectrum, n)


class LaplaceTrial:
    """Common part of the trials of this module: coordinates of either neighbour to cells.

    *level*: the log-likelihood ratio under the law that is claimed. *step 2^m*: where the first coordinate's integer
    lies inside steps of 2^m, for the 2^m next to the shift; a law that is a staircase has its edges there. *pair*: how
    far apart the first two coordinates are; noise that they share falls out of it.
    """

    def __init__(self, case: Case, signals: Signals, plus: Array, scale: float, noise: Noise | None) -> None:
        calibration = synthetic_additive(case.mechanism, signals, case.n, _TOGETHER)
        self.mechanism = build(calibration, _TOGETHER * case.epsilon, k=case.k, noise=noise)
        self._chunk = np.repeat(FAR * plus[None], _TOGETHER, axis=0)
        self._chunk[1::2] *= -1
        self._scale = scale
        self._epsilon = case.epsilon
        self._step = 2.0 ** math.floor(math.log2(scale) - 20)
        self._shift = self._coordinates(plus[None])[0]
        self._far = round(abs(self._shift[0]) / self._step)
        middle = max(self._far, 1).bit_length()
        self._bits = range(max(middle - 2, 4), middle + 2)
        self.partitions = {"level": _LEVELS + 2} | {f"step 2^{m}": 3 * _PHASES for m in self._bits}
        if len(self._shift) > 1:
            self.partitions["pair"] = _LEVELS

    def sharp(self, draws: int) -> bool:
        """By the events that the law which is claimed would give, each a threshold on the likelihood ratio."""
        rng = np.random.default_rng(0)  # an integral, no noise
        ratios = self._ratio(self._shift + rng.laplace(scale=self._scale, size=(200_000, len(self._shift))))
        events = [ratios >= level * self._epsilon for level in (-0.5, 0.0, 0.5, 0.8, 0.9, 0.95, 1 - 1e-9)]
        p = np.array([event.mean() for event in events])
        q = np.array([np.where(event, np.exp(-ratios), 0.0).mean() for event in events])
        return safe_bound(p, q, draws // 2) >= SHARP * self._epsilon

    def _ratio(self, y: Array) -> Array:
        """(draws,) log-likelihood ratio of coordinates (draws, M) under the law that is claimed."""
        ratio: Array = (np.abs(y + self._shift) - np.abs(y - self._shift)).sum(axis=1) / self._scale
        return ratio

    def _coordinates(self, released: Array) -> Array:
        """(draws, M) coordinates of released chunks (draws, n)."""
        raise NotImplementedError

    def observe(self) -> tuple[Cells, Cells]:
        """Cells of half a thousand releases of either neighbour."""
        coordinates = self._coordinates(self.mechanism.release(self._chunk))
        return self._cells(coordinates[0::2]), self._cells(coordinates[1::2])

    def _cells(self, y: Array) -> Cells:
        share = self._ratio(y) / (2 * self._epsilon) + 0.5
        level = np.clip(np.floor(share * _LEVELS).astype(np.int64) + 1, 1, _LEVELS)
        level[share > 1 - 1e-9], level[share < 1e-9] = _LEVELS + 1, 0
        cells = {"level": level}
        integers = np.rint(y[:, 0] / self._step - 0.5).astype(np.int64)
        side = (integers > self._far).astype(np.int64) + (integers >= -self._far)
        for m in self._bits:
            cells[f"step 2^{m}"] = side * _PHASES + ((integers & (2**m - 1)) >> (m - 4))
        if "pair" in self.partitions:
            apart = (y[:, 0] - y[:, 1]) / (self._shift[0] - self._shift[1])
            cells["pair"] = np.clip(np.floor(2 * apart).astype(np.int64) + _LEVELS // 2, 0, _LEVELS - 1)
        return cells


class ValueTrial(LaplaceTrial):
    """Noise on every value: the whole L1 radius in the first row."""

    def __init__(self, signals: Signals, case: Case, noise: Noise | None) -> None:
        plus = np.zeros(case.n)
        plus[0] = 1.0
        super().__init__(case, signals, plus, 2 / case.epsilon, noise)

    def _coordinates(self, released: Array) -> Array:
        return released[:, :1]


class FourierTrial(LaplaceTrial):
    """Noise on coefficients: the signal whose kept coefficients have the largest sum."""

    def __init__(self, signals: Signals, case: Case, noise: Noise | None) -> None:
        assert case.k is not None
        self._there = signals.there
        self._count = len(coordinate_weights(case.n, case.k))
        _, plus = worst_signal(case.n, case.k)
        super().__init__(case, signals, signals.back(plus), 2 * math.sqrt(case.n * case.k) / case.epsilon, noise)

    def _coordinates(self, released: Array) -> Array:
        reals = np.fft.rfft(self._there(released), axis=1).view(np.float64)
        return np.delete(reals, 1, axis=1)[:, : self._count]


def short_draws(k: int | None, epsilon: float) -> int:
    """Draws of the quick audit."""
    if epsilon < 1:
        return 5_000_000 if k in (None, 1) else 200_000
    return {None: 250_000, 1: 250_000, 2: 800_000, 3: 1_400_000}.get(k, 200_000)


def long_draws(k: int | None, epsilon: float) -> int:
    """Draws of the long audit."""
    return 40_000_000 if k == 2 and epsilon < 1 else 10_000_000


def emission(mechanism: Mechanism, admitted: Sequence[Array]) -> Emission:
    """One release of one of the admitted chunks (A, n): `eyestream_lab.correlation.emissions` has the derivation."""
    core = mechanism.core
    assert isinstance(core, AdditiveCore)
    transform, private = core.private.transform(), core.private
    places = []
    for chunk in admitted:
        residual = transform.residual(chunk)
        factor = private.factor(residual, private.radius)
        places.append(private.lattice.snap(transform.coordinates(residual), factor).astype(np.float64))
    rates = np.broadcast_to(private.law.rates[:, None], private.law.shape)
    return laplace((np.array(places) * rates).reshape(len(admitted), -1), 1.0)
