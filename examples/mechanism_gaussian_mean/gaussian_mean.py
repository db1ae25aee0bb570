"""A mechanism to copy from: discrete Gaussian noise on the mean of a chunk, (epsilon, delta)-differential privacy.

Neighbours are two chunks that differ in any way (replace-one), so the mean of a feature can move over its whole range.
The range is cut into LEVELS steps; the mean becomes an integer 0 .. LEVELS and moves by at most LEVELS. Each of the A
features gets an equal share, epsilon_1 = epsilon / A and delta_1 = delta / A; by basic composition that is the whole.

The law is a table of whole numbers w(z) of sum 2^128, next to exp(-z^2 / 2 sigma^2) (Canonne, Kamath, Steinke, The
discrete Gaussian for differential privacy, NeurIPS 2020). What is drawn has exactly the law of the table: a uniform
128-bit number falls on z with probability w(z) / 2^128. Delta is summed from the table, over the outputs on which one
input is more than e^epsilon_1 times as likely as the other, for every shift s up to LEVELS:

    delta_1 = max_s sum_z max(0, w(z) - e^epsilon_1 w(z + s)) / 2^128.

The table is symmetric. e^epsilon_1 is a rational number below the true one: delta is rounded up, without floats.
"""

import math
from bisect import bisect_right
from dataclasses import dataclass
from decimal import ROUND_DOWN, Decimal, localcontext
from fractions import Fraction
from itertools import accumulate

import msgspec
import numpy as np
from numpy.typing import NDArray

from eyestream.core.calibration import Calibration
from eyestream.core.mechanisms import Entry, Frame, Mechanism, register
from eyestream.core.noise import Bits, Noise
from eyestream.core.protection import Protection
from eyestream.errors import CalibrationError, ConfigError

Array = NDArray[np.float64]
LEVELS, WHOLE = 16, 2**128


def table(sigma: int) -> list[int]:
    """Weights w(-R) .. w(R), symmetric, of sum 2^128; the centre takes what rounding leaves."""
    ideal = [math.exp(-z * z / (2 * sigma * sigma)) for z in range(1, 13 * sigma)]
    total = 1 + 2 * math.fsum(ideal)
    side = [int(g / total * WHOLE) for g in ideal]
    return [*reversed(side), WHOLE - 2 * sum(side), *side]


def loss_delta(weights: list[int], epsilon: Fraction, shift: int) -> Fraction:
    """Smallest delta for two inputs that lie `shift` apart, rounded up by less than 10^-40 of it."""
    with localcontext() as context:
        context.prec, context.rounding = 60, ROUND_DOWN
        power = (Decimal(epsilon.numerator) / epsilon.denominator).exp() * (1 - Decimal(10) ** -50)
    up, down = Fraction(power).as_integer_ratio()
    more = (w * down - up * other for w, other in zip(weights, [*weights[shift:], *[0] * shift], strict=True))
    return Fraction(sum(one for one in more if one > 0), down * WHOLE)


def table_for(epsilon: Fraction, delta: Fraction) -> tuple[int, list[int]]:
    """Smallest whole sigma whose table keeps one feature at (epsilon, delta), and the table."""
    low, high = 0, 1
    while loss_delta(table(high), epsilon, LEVELS) > delta:
        low, high = high, 2 * high
        if high > 2**14:
            raise ConfigError(f"epsilon {float(epsilon):g} and delta {float(delta):g} of a feature are too small")
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if loss_delta(table(middle), epsilon, LEVELS) <= delta else (middle, high)
    weights = table(high)
    if any(loss_delta(weights, epsilon, shift) > delta for shift in range(1, LEVELS)):
        raise ConfigError("a smaller shift costs more than the largest one")
    return high, weights


class GaussianLaw:
    """A draw is one integer for each of `count` features; the same words are taken whatever is drawn."""

    def __init__(self, weights: list[int], count: int) -> None:
        self.shape = (count,)
        self._below, self._reach = list(accumulate(weights)), len(weights) // 2

    def sample(self, bits: Bits) -> NDArray[np.int64]:
        """One draw, (count,)."""
        data = bits.words(4 * self.shape[0]).tobytes()
        uniform = [int.from_bytes(data[i : i + 16], "little") for i in range(0, len(data), 16)]
        return np.array([bisect_right(self._below, u) - self._reach for u in uniform], dtype=np.int64)


class _Core:
    """Public figures; it needs no arrays of its own to work."""

    k, start = (), None

    def __init__(self, frame: Frame, delta: float) -> None:
        count, self.delta = len(frame.active), Fraction(delta)
        sigma, weights = table_for(Fraction(frame.epsilon) / count, self.delta / count)
        self.law, (self._lo, hi) = GaussianLaw(weights, count), frame.range
        self._step = (hi - self._lo) / LEVELS
        self.noise_sd: Array = sigma * self._step[:, 0]

    def step(self) -> "_Core":
        return self

    def release(self, admitted: Array, noise: Noise, turn: int, state: Array | None, out: Array) -> Array | None:
        mean = admitted.mean(axis=1, keepdims=True)
        levels = np.clip(np.rint((mean - self._lo) / self._step).astype(np.int64), 0, LEVELS)  # whatever the mean is
        out[:] = self._lo + self._step * (levels + noise.draw(self.law)[:, None])
        return state


class GaussianMean(Mechanism):
    """Every row of a released chunk is its noisy mean; 0 < `delta` < 1 of one chunk."""

    name = "gaussian-mean"
    protection = Protection(
        law="discrete Gaussian noise on the mean of every released feature, in 16 steps of its range",
        exact="delta is summed from the integer table that the noise is drawn from; no floating point in the proof",
        sampler="nothing is charged for the sampler: what is drawn has the law of the table",
        floating_point="integers",
    )

    def __init__(self, calibration: Calibration, epsilon: float, *, delta: float = 1e-6, noise: Noise | None = None):
        if not 0 < delta < 1:
            raise ConfigError(f"delta must lie between 0 and 1, not {delta}")
        frame = Frame.of(self.name, calibration, epsilon)
        super().__init__(frame, _Core(frame, delta), noise, {"delta": delta})


@dataclass(frozen=True, eq=False, repr=False)
class Widths:
    """The one figure of this mechanism, (F,): the width of the range."""

    scale: Array

    def check(self, features: int, n: int) -> None:
        """Refuse figures of another size."""
        if self.scale.shape != (features,):
            raise CalibrationError(f"scale of the calibration is not of {features} features")


OPTIONS = msgspec.defstruct("Options", [("delta", float | None, None)], frozen=True, kw_only=True)
ENTRY = register(Entry(GaussianMean, OPTIONS, Widths))
