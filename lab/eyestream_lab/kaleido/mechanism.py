"""Kaleido on a stream of gaze samples, corrected (Li, Chowdhury, Fawaz, Kim, USENIX Security 2021, as given by
David-John, Butler, Jain, TVCG 2023, supplement).

**(epsilon, w, r).** Two streams that differ in at most w consecutive samples, each moved by at most r degrees, have
outputs within e^epsilon. **Each sample** either repeats the last output without a look (within `skip` samples of the
last test); or is *tested*: its distance from the last output, with Laplace noise, against a threshold, and repeats it
when near; or is *published*, with planar Laplace noise. Everything that decides is an output, so losses add up:

- Tests are at least `skip` samples apart, so w samples hold at most n = ceil(w / skip) of them. The distance moves by
  at most what the sample does, so noise of rate eps_test per r degrees, eps_test = epsilon / (h n), costs eps_test. All
  tests of a window cost at most epsilon / h.
- A publication takes half of what the last w - 1 samples left of epsilon - epsilon / h, hence the sum in any w samples
  stays below it. It takes whole parts of `PARTS`. Where not one is left, the last output is repeated.

**The charge of live use.** Movements beyond r cost more: every rate is per r degrees, and gaze is clamped to a field of
diagonal D, so *any* change of samples inside a window of w costs at most epsilon D / r. In a field of 60 x 40 degrees D
= 72.1, which is 36.06 epsilon at r = 2 (the grid takes a bit off). A ledger has to be charged that. A longer window of
m samples is covered by ceil(m / w) of w samples.

**What the printed text has wrong**, each a planted fault in the tests: the sum of line 24 over the whole stream (the
budget never comes back); test noise that is not scaled by r (tests then cost r epsilon / h); a skip that counts from
the last *published* sample (then every sample between is tested); windows and skips in seconds of the tracker's clock
(a clock that jumps makes more tests).

**Integers.** Gaze is clamped and rounded to a grid of 2^-12 degrees. Rounding moves two samples that are r apart to at
most r / grid + sqrt(2) steps, and the whole root of a squared distance moves by at most one more than the distance
does. Both are in the sensitivity. Noise is exact (`planar`, `eyestream.core.noise.laws`). A lost sample counts as
gaze at the last output, so that nothing of earlier gaze is kept. That it was lost is a change beyond r: the charge of
live use covers it, r does not.
"""

import math
from collections import deque
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from eyestream.core.kinds import Loss
from eyestream.core.noise import Noise, SecureNoise
from eyestream.core.noise.laws import LaplaceLaw, ideal_rate
from eyestream.errors import ConfigError
from eyestream_lab.kaleido.planar import PlanarLaw, planar_rate

Array = NDArray[np.float64]

PARTS = 256
"""A publication spends a whole number of such parts of epsilon."""

_STEPS_PER_DEG = 2**12


@dataclass(frozen=True, slots=True)
class Settings:
    """Public settings; the defaults are those of TVCG 2023 at 100 Hz.

    Attributes
    ----------
    w
        Samples of a window.
    r_deg
        Largest movement of a sample between neighbours of (epsilon, w, r).
    skip
        A sample is tested at the earliest so many samples after the last test.
    threshold_deg
        Nearer to the last output than this, it is repeated.
    h
        One part in h of epsilon is for tests.
    width_deg, height_deg
        The field, around straight ahead, that gaze is clamped to.

    Raises
    ------
    ConfigError
        when one of them is out of its range.
    """

    w: int = 50
    r_deg: float = 2.0
    skip: int = 5
    threshold_deg: float = 1.0
    h: int = 2
    width_deg: float = 60.0
    height_deg: float = 40.0

    def __post_init__(self) -> None:
        fine = {
            "w: 1 to 100000": 1 <= self.w <= 100_000,
            "skip: 1 to w": 1 <= self.skip <= self.w,
            "h: 2 to 100": 2 <= self.h <= 100,
            "r_deg: 0.1 to 180": 0.1 <= self.r_deg <= 180.0,
            "threshold_deg: 0 to 180": 0.0 <= self.threshold_deg <= 180.0,
            "a field of 1 to 360 degrees": min(self.width_deg, self.height_deg) >= 1.0 and self.diagonal_deg <= 510.0,
        }
        wrong = [expected for expected, holds in fine.items() if not holds]
        if wrong:
            raise ConfigError(f"kaleido: expected {'; '.join(wrong)}")

    @property
    def diagonal_deg(self) -> float:
        """The farthest that gaze can move inside the field."""
        return math.hypot(self.width_deg, self.height_deg)

    @property
    def tests(self) -> int:
        """Most tests in a window."""
        return -(-self.w // self.skip)


@dataclass(frozen=True, slots=True)
class Step:
    """Fate of one sample: a public value.

    Attributes
    ----------
    x_deg, y_deg
        The output.
    tested
        Whether a test was spent on it.
    parts
        Of epsilon, that its publication took; 0 where the output was repeated.
    """

    x_deg: float
    y_deg: float
    tested: bool
    parts: int


class Kaleido:
    """A mechanism that releases sessions of samples.

    Parameters
    ----------
    epsilon
        Of any w samples, for movements of at most r.
    settings
        Public.
    noise
        Source of noise; tests alone pass another than `SecureNoise`.

    Attributes
    ----------
    loss : of a window of w samples that move by at most r.
    worst : of the same whatever changes, which is what a ledger is charged.
    test_epsilon : of one test.

    Raises
    ------
    ConfigError
        when epsilon cannot be used.
    """

    def __init__(self, epsilon: float, settings: Settings | None = None, *, noise: Noise | None = None) -> None:
        own = settings if settings is not None else Settings()
        if not 0.01 <= epsilon <= 1000.0:
            raise ConfigError(f"kaleido: epsilon: expected 0.01 to 1000, not {epsilon:g}")
        self.epsilon, self.settings = epsilon, own
        self.noise: Noise = noise if noise is not None else SecureNoise()
        self.test_epsilon = Fraction(epsilon) / (own.h * own.tests)
        self.edge = (round(own.width_deg / 2 * _STEPS_PER_DEG), round(own.height_deg / 2 * _STEPS_PER_DEG))
        self.reach = math.ceil(own.r_deg * _STEPS_PER_DEG) + 2
        farthest = math.isqrt(4 * (self.edge[0] ** 2 + self.edge[1] ** 2)) + 1
        self.threshold = round(own.threshold_deg * _STEPS_PER_DEG)
        self.loss = Loss(f"{own.w} samples, each moved by at most {own.r_deg:g} degrees", Fraction(epsilon))
        self.worst = Loss(f"{own.w} samples", Fraction(epsilon) * max(Fraction(1), Fraction(farthest + 1, self.reach)))
        try:
            rate = ideal_rate(float(self.test_epsilon), self.reach + 1, 1)
            self.test_law = LaplaceLaw(np.array([rate]), 1, farthest + self.threshold)
            self.planar_law(1)
        except OverflowError:
            raise ConfigError(f"kaleido: epsilon {epsilon:g} is too small for {own.tests} tests a window") from None

    def planar_law(self, parts: int) -> PlanarLaw:
        """The noise of a publication that takes so many parts of epsilon."""
        return PlanarLaw(planar_rate(self.epsilon * parts / PARTS, self.reach), max(self.edge))

    def session(self) -> "KaleidoSession":
        """A session that releases its samples in order."""
        return KaleidoSession(self)


class KaleidoSession:
    """One session, sample by sample; for one thread at a time."""

    def __init__(self, mechanism: Kaleido) -> None:
        self.mechanism, self.noise = mechanism, mechanism.noise
        self._test_law = mechanism.test_law.own()
        self._planar_laws: dict[int, PlanarLaw] = {}
        self.output: tuple[int, int] = (0, 0)
        self.published = False
        self.since_test = mechanism.settings.skip
        self.spent: deque[int] = deque([0] * (mechanism.settings.w - 1), maxlen=max(0, mechanism.settings.w - 1))
        self.sum = 0

    def release(self, x: Array, y: Array, valid: NDArray[np.bool_]) -> list[Step]:
        """Release (n,) samples in degrees, in order; how they are handed over does not matter."""
        edge = self.mechanism.edge
        seen = valid & np.isfinite(x) & np.isfinite(y)
        columns = []
        for values, most in ((x, edge[0]), (y, edge[1])):
            inside = np.clip(np.where(seen, values, 0.0), -most / _STEPS_PER_DEG, most / _STEPS_PER_DEG)
            columns.append(np.rint(inside * _STEPS_PER_DEG).astype(np.int64).tolist())
        return [self._sample((a, b) if here else None) for a, b, here in zip(*columns, seen.tolist(), strict=True)]

    def state(self) -> Array:
        """Where the session stands, of public values alone: output, test and what the last w - 1 samples spent."""
        return np.array([*self.output, self.published, self.since_test, *self.spent], dtype=np.float64)

    def resume(self, state: Array) -> None:
        """Go on from a `state`."""
        across, upright, published, since_test, *spent = map(int, state.tolist())
        self.output, self.published, self.since_test = (across, upright), bool(published), since_test
        self.spent.clear()
        self.spent.extend(spent)
        self.sum = sum(spent)

    def due(self) -> bool:
        """Whether the next sample is to be looked at: by the number of samples since the last test."""
        return self.since_test >= self.mechanism.settings.skip

    def parts_for_one(self) -> int:
        """Parts of epsilon for a publication now: half of what the last w - 1 samples left."""
        left = PARTS - -(-PARTS // self.mechanism.settings.h) - self.sum
        return left // 2

    def _sample(self, gaze: tuple[int, int] | None) -> Step:
        tested, parts = self.due(), 0
        if tested:
            self.since_test = 0
            place = self.output if gaze is None else gaze
            if self._moved(place):
                parts = self.parts_for_one()
            if parts > 0:
                self._publish(place, parts)
        self.since_test += 1
        self._account(parts)
        x, y = (value / _STEPS_PER_DEG for value in self.output)
        return Step(x, y, tested, parts)

    def _moved(self, place: tuple[int, int]) -> bool:
        """The noisy test; before the first publication every sample passes."""
        if not self.published:
            return True
        across, upright = place[0] - self.output[0], place[1] - self.output[1]
        noise = int(self.noise.draw(self._test_law)[0, 0])
        return math.isqrt(across * across + upright * upright) > self.mechanism.threshold + noise

    def _publish(self, place: tuple[int, int], parts: int) -> None:
        if parts not in self._planar_laws:
            self._planar_laws[parts] = self.mechanism.planar_law(parts)
        noise = self.noise.draw(self._planar_laws[parts]).tolist()
        across, upright = (
            min(max(value + moved, -most), most)
            for value, moved, most in zip(place, noise, self.mechanism.edge, strict=True)
        )
        self.output, self.published = (across, upright), True

    def _account(self, parts: int) -> None:
        if self.spent.maxlen:
            self.sum += parts - self.spent[0]
            self.spent.append(parts)
