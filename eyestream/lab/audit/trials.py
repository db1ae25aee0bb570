"""What the audit tries: worst-case neighbours, and cells for what comes out.

One release of a synthetic calibration of a thousand equal features is a thousand independent releases of one feature at
epsilon; half of them get the first neighbour, half the second. The neighbours lie far outside the ball, so that the
projection is part of what is tried. A mechanism joins with an entry in `TRIALS`.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from eyestream.lab.audit.estimate import Counts, safe_bound
from eyestream.lab.audit.synthetic import synthetic, synthetic_joint
from eyestream.privacy.joint.core import JointCore
from eyestream.privacy.mechanisms import build
from eyestream.privacy.mechanisms.klt import KLT
from eyestream.privacy.noise import Noise
from eyestream.spectrum.difference import difference, integrate
from eyestream.spectrum.fourier import coordinate_weights

__all__ = [
    "EPSILONS",
    "FAR",
    "SHARP",
    "TRIALS",
    "Case",
    "Trial",
    "cases",
    "count",
    "worst_signal",
]

Array = NDArray[np.float64]
Cells = Mapping[str, NDArray[np.int64]]

EPSILONS = (0.1, 1.0, 5.0)
FAR = 1000.0
"""Neighbours are so many radii away from the centre."""

SHARP = 0.9
"""Share of epsilon that the lower bound must reach; below it the audit is blind."""

_TOGETHER, _LEVELS, _PHASES = 1000, 40, 16


@dataclass(frozen=True)
class Case:
    """One thing tried: a mechanism at `epsilon`, and how many draws under each neighbour it gets."""

    mechanism: str
    n: int
    k: int | None
    epsilon: float
    draws: int

    def __str__(self) -> str:
        return f"{self.mechanism} n={self.n} k={self.k or '-'} eps={self.epsilon:g}"


class Trial(Protocol):
    """One case at work."""

    @property
    def partitions(self) -> Mapping[str, int]:
        """Number of cells of each partition."""
        ...

    def sharp(self, draws: int) -> bool:
        """Whether the bound from `draws` draws must reach `SHARP` of epsilon when all is well; else it may be blind."""
        ...

    def observe(self) -> tuple[Cells, Cells]:
        """Cells of some independent releases of either neighbour, for each partition."""
        ...


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


class _Laplace:
    """What the trials of this module share: coordinates of either neighbour to cells.

    *level*: the log-likelihood ratio under the law that is claimed. *step 2^m*: where the first coordinate's integer
    lies inside steps of 2^m, for the 2^m next to the shift; a law that is a staircase has its edges there. *pair*: how
    far apart the first two coordinates are; noise that they share falls out of it.
    """

    def __init__(self, case: Case, plus: Array, scale: float, noise: Noise | None) -> None:
        calibration = synthetic(case.mechanism, case.n, _TOGETHER)
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


class LpaTrial(_Laplace):
    """LPA: the whole L1 radius in the first row."""

    def __init__(self, case: Case, noise: Noise | None = None) -> None:
        plus = np.zeros(case.n)
        plus[0] = 1.0
        super().__init__(case, plus, 2 / case.epsilon, noise)

    def _coordinates(self, released: Array) -> Array:
        return released[:, :1]


class FourierTrial(_Laplace):
    """CFPA and DCFPA: the signal whose kept coefficients have the largest sum."""

    def __init__(self, case: Case, noise: Noise | None = None) -> None:
        assert case.k is not None
        self._differences = case.mechanism == "dcfpa"
        self._count = len(coordinate_weights(case.n, case.k))
        _, plus = worst_signal(case.n, case.k)
        plus = integrate(plus) if self._differences else plus
        super().__init__(case, plus, 2 * math.sqrt(case.n * case.k) / case.epsilon, noise)

    def _coordinates(self, released: Array) -> Array:
        signals = difference(released) if self._differences else released
        reals = np.fft.rfft(signals, axis=1).view(np.float64)
        return np.delete(reals, 1, axis=1)[:, : self._count]


class KltTrial:
    """KLT: chunks at the two ends of the range, as the first of a session; a cell for each code word."""

    def __init__(self, case: Case, noise: Noise | None = None) -> None:
        self.mechanism = KLT(synthetic_joint(case.n), case.epsilon, noise=noise)
        self._epsilon = case.epsilon
        core = self.mechanism.core
        assert isinstance(core, JointCore)
        self._words = math.prod(len(points) for points in core.schedule.steps[0].points)
        self._chunk = np.full((self.mechanism.features, case.n), FAR)
        self._known: dict[bytes, int] = {}
        self.partitions = {"word": self._words + 1}

    def sharp(self, draws: int) -> bool:
        """By the own word, and by one other."""
        other = 1 / (math.exp(self._epsilon) + self._words - 1)
        p = np.array([other * math.exp(self._epsilon), 1 - other])
        return safe_bound(p, np.array([other, 1 - p[0]]), draws // 2) >= SHARP * self._epsilon

    def observe(self) -> tuple[Cells, Cells]:
        """Cells of five hundred releases of either neighbour."""
        return self._cells(self._chunk), self._cells(-self._chunk)

    def _cells(self, chunk: Array) -> Cells:
        known, release = self._known, self.mechanism.release
        return {"word": np.array([known.setdefault(release(chunk).tobytes(), len(known)) for _ in range(500)])}


TRIALS: dict[str, type[LpaTrial | FourierTrial | KltTrial]] = {
    "lpa": LpaTrial,
    "cfpa": FourierTrial,
    "dcfpa": FourierTrial,
    "klt": KltTrial,
}
"""How each mechanism is tried."""


def count(trial: Trial, draws: int) -> tuple[Counts, Counts]:
    """Counts of two halves of `draws` draws under either neighbour."""
    halves = tuple({name: np.zeros((2, size), np.int64) for name, size in trial.partitions.items()} for _ in (0, 1))
    for half in halves:
        done = 0
        while done < draws / 2:
            observed = trial.observe()
            done += len(next(iter(observed[0].values())))
            for neighbour, cells in enumerate(observed):
                for name, where in cells.items():
                    half[name][neighbour] += np.bincount(where, minlength=trial.partitions[name])
    return halves[0], halves[1]


def cases(quick: bool) -> list[Case]:
    """Everything that is tried: k = 1 .. 4 and every epsilon, with the shortest chunk that has k; and longer chunks.

    A small epsilon takes many draws to be seen, and so does a large k, whose most telling event has probability
    2^-(2k-1). The short form draws what a sharp bound takes, where that is done in seconds, and elsewhere enough to see
    a gross fault; the long form ten times a million and more.
    """
    fourier = [(name, n, k) for name in ("cfpa", "dcfpa") for k, n in ((1, 2), (2, 4), (3, 4), (4, 8))]
    shapes: list[tuple[str, int, int | None]] = [("lpa", 2, None), *fourier, ("klt", 4, None)]
    draws = _short if quick else _long
    found = [Case(name, n, k, epsilon, draws(name, k, epsilon)) for epsilon in EPSILONS for name, n, k in shapes]
    if not quick:
        found += [Case(name, n, k, 1.0, 10_000_000) for name, _, k in fourier for n in (16, 32)]
    return found


def _short(name: str, k: int | None, epsilon: float) -> int:
    if name == "klt":
        return {1.0: 70_000, 5.0: 100_000}.get(epsilon, 10_000)
    if epsilon < 1:
        return 5_000_000 if k in (None, 1) else 200_000
    return {None: 250_000, 1: 250_000, 2: 800_000, 3: 1_400_000}.get(k, 200_000)


def _long(name: str, k: int | None, epsilon: float) -> int:
    if name == "klt":
        return 1_000_000
    return 40_000_000 if k == 2 and epsilon < 1 else 10_000_000
