"""Gaussian noise on integers, with (epsilon, delta) calibrated for every epsilon.

**Calibration.** For a query whose value moves by at most Delta in L2 between neighbours, noise N(0, sigma^2) on each
coordinate has the exact profile (Balle, Wang, ICML 2018, theorem 8)

    delta(epsilon) = Phi(Delta / (2 sigma) - epsilon sigma / Delta)
                     - e^epsilon Phi(-Delta / (2 sigma) - epsilon sigma / Delta).

The textbook sigma = Delta sqrt(2 ln(1.25 / delta)) / epsilon is proved for epsilon < 1 alone.

**Integers.** The query is rounded to whole steps of sigma / 4096 before noise is added. For an integer x,
round(x + N) = x + round(N), so adding integers of the law

    P(z) = Phi((z + 1/2) / 4096) - Phi((z - 1/2) / 4096)

is the Gaussian mechanism followed by rounding, which is post-processing. The profile above holds for it as it is: no
theory of discrete noise is needed, and no floating point is in what is added.

**Sampler.** P is a table of whole numbers of sum 2^128, cut at 12.5 sigma. It is less than 2^-110 from P in total
variation, which adds 2^-110 (1 + e^epsilon) a coordinate to delta; a thousandth of delta is kept for it.
"""

import functools
import math
from bisect import bisect_right
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import accumulate
from math import factorial

import numpy as np
from numpy.typing import NDArray

from eyestream.core.noise import Bits
from eyestream.errors import ConfigError

SIGMA = 4096
"""Standard deviation in steps."""

_REACH = 51_200
_TERMS = 6
_WHOLE = 2**128
_APART = 2.0**-110
_KEPT = 1e-3
_PI = Decimal("3.1415926535897932384626433832795028841971693993751058209749445923078164062862089986280348253")


def gaussian_delta(epsilon: float, ratio: float) -> float:
    """Exact delta of the Gaussian mechanism at `epsilon`, for `ratio` = sigma / Delta."""
    near, far = 0.5 / ratio - epsilon * ratio, -0.5 / ratio - epsilon * ratio
    tail = _phi(far)
    return _phi(near) - (math.exp(epsilon + math.log(tail)) if tail > 0 else 0.0)


def gaussian_sigma(epsilon: float, delta: float, sensitivity: float, coordinates: int) -> float:
    """Least sigma that keeps a release of `coordinates` numbers at (epsilon, delta), the sampler included.

    Raises
    ------
    ConfigError
        when epsilon or delta cannot be used.
    """
    if not (0.0 < epsilon <= 50.0 and 1e-12 <= delta < 1.0):
        raise ConfigError(f"epsilon must lie in (0, 50] and delta in [1e-12, 1), not {epsilon:g} and {delta:g}")
    if coordinates * _APART * (1.0 + math.exp(epsilon)) > _KEPT * delta:
        raise ConfigError(f"{coordinates} numbers at epsilon {epsilon:g} are too many for the sampler")
    wanted, low, high = delta * (1.0 - _KEPT), 1e-3, 1.0
    while gaussian_delta(epsilon, high) > wanted:
        low, high = high, 2.0 * high
    while high / low > 1.0 + 1e-12:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if gaussian_delta(epsilon, middle) <= wanted else (middle, high)
    return high * (1.0 + 1e-9) * sensitivity  # above what these lines round


def gaussian_epsilon(delta: float, ratio: float) -> float:
    """Least epsilon at `delta` for `ratio` = sigma / Delta; infinite above 600, where floats end."""
    low, high = 0.0, 1.0
    if gaussian_delta(0.0, ratio) <= delta:
        return 0.0
    while gaussian_delta(high, ratio) > delta:
        if high > 600.0:
            return math.inf
        low, high = high, 2.0 * high
    while high - low > 1e-9 * high:
        middle = (low + high) / 2.0
        low, high = (low, middle) if gaussian_delta(middle, ratio) <= delta else (middle, high)
    return high


class RoundedGaussian:
    """A law of `count` integers of standard deviation `SIGMA`; the same words are taken whatever is drawn."""

    def __init__(self, count: int) -> None:
        self.shape = (count,)

    def sample(self, bits: Bits) -> NDArray[np.int64]:
        """One draw, (count,)."""
        below = _cumulated()
        data = bits.words(4 * self.shape[0]).tobytes()
        uniform = (int.from_bytes(data[i : i + 16], "little") for i in range(0, len(data), 16))
        return np.fromiter((bisect_right(below, u) - _REACH for u in uniform), np.int64, self.shape[0])


@functools.cache
def table() -> tuple[int, ...]:
    """Weights of the integers from -12.5 to 12.5 sigma, symmetric, of sum 2^128; the centre takes what rounding leaves.

    With x = z / sigma and h = 1 / (2 sigma), P(z) = 2 h phi(x) sum_j He_2j(x) h^2j / (2 j + 1)!, the Taylor series of
    phi around x, integrated over the cell; He are Hermite's polynomials. Seven terms leave less than 10^-40 of it.
    """
    with localcontext() as context:
        context.prec = 70
        series = [Decimal(one.numerator) / one.denominator for one in reversed(_series())]
        square, whole = Decimal(SIGMA) ** 2, Decimal(_WHOLE)
        bell, fall, steeper = Decimal(1), (-1 / (2 * square)).exp(), (-1 / square).exp()
        height = whole / ((2 * _PI).sqrt() * SIGMA)
        side = []
        for z in range(1, _REACH + 1):
            bell, fall = bell * fall, fall * steeper
            x2, total = z * z / square, Decimal(0)
            for coefficient in series:
                total = total * x2 + coefficient
            side.append(int(height * bell * total))
    return (*reversed(side), _WHOLE - 2 * sum(side), *side)


def _series() -> list[Fraction]:
    """Coefficients of 1, x^2, x^4 .. x^12 in sum_j He_2j(x) h^2j / (2 j + 1)!, j from 0 to 6."""
    found = [Fraction(0)] * (_TERMS + 1)
    for j in range(_TERMS + 1):
        for m in range(j + 1):
            hermite = Fraction((-1) ** m * factorial(2 * j), factorial(m) * factorial(2 * j - 2 * m) * 2**m)
            found[j - m] += hermite / ((2 * SIGMA) ** (2 * j) * factorial(2 * j + 1))
    return found


@functools.cache
def _cumulated() -> list[int]:
    return list(accumulate(table()))


def _phi(x: float) -> float:
    return 0.5 * math.erfc(-x / math.sqrt(2.0))
