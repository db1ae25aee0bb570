"""Laws of the noise: integers on a grid, sampled from biased binary digits.

**Discrete Laplace.** For a rate alpha > 0 the law on the integers P(z) ~ exp(-alpha |z + 1/2|) has a log-probability
that changes by at most alpha |d| when z moves by d. It is one geometric variable G and a fair sign: z = G or -(G + 1).
Its binary digits are independent: `eyestream.core.noise.digits` draws them.

**Deviation.** A sampled integer's probability is a product over digits of p' or 1 - p', so its log deviates from the
law's by at most D = sum_i max(|log p'_i/p_i|, |log (1-p'_i)/(1-p_i)|). Two neighbours can use it in opposite
directions: 2 D a coordinate, accounted *multiplicatively*, in epsilon. (A total-variation argument would put delta = (1
+ e^epsilon) tau in its place, vacuous for a chunk at epsilon 48.)

When a law is made, each threshold is verified against the rate in exact arithmetic (`eyestream.core.noise.digits`),
and so is the margin of the support. All figures of a law come from operations that every machine rounds alike.

**Support.** The noisy integer a + z is clamped to a public interval [-u, u]. With |a| <= A for every input, the digits
reach T = 2^t >= 2 A + 64 / alpha and u = T - A - ceil(32 / alpha) >= A + 32 / alpha - 1: every value of the interval is
reachable from every input, inside it the law is the ideal one, and at its ends the tail that is missing beyond the
reach changes a probability by a factor of at most 1 + 2 e^-32.
"""

import copy
import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from eyestream.core.noise import Bits
from eyestream.core.noise.digits import Buffers, Digits, digits_within

DIGIT_DEVIATION = 2.0**-31  # of log p and of log(1 - p): |p' - p| <= 2^-33 2^-e, and p > 2^-1 2^-e (or p >= 1/4, e = 0)
_MARGIN = 64.0  # in units of 1 / rate, on both sides of the interval together
_LARGEST_DIGITS = 34
_HALF = 2**31 - 1  # threshold of a word that hits as often as not
_LEAST_TAIL = Fraction(63, 2)  # of 1 / rate beyond each end: 1 / (1 - e^-31.5) is below 1 + 2 e^-32

_TAIL = 1.2664165549094176e-14  # e^-32 to the last bit
COORDINATE_DEVIATION = 2 * _LARGEST_DIGITS * Fraction(DIGIT_DEVIATION) + 4 * Fraction(_TAIL * (1 + 2.0**-50))
"""Cost of one integer of a release beyond its law: its digits and both ends of its interval, both neighbours."""


def digits_for(rate: float, largest: int) -> int:
    """Binary digits t of the geometric variable: the least with 2^t >= 2 `largest` + 64 / `rate`.

    Raises
    ------
    OverflowError
        when more than 34 digits would be needed.
    """
    share, power = math.frexp(2 * largest + _MARGIN / rate + 2)
    digits = power - (share == 0.5)
    if digits > _LARGEST_DIGITS:
        raise OverflowError("the noise does not fit into the integers of the sampler")
    return digits


def ideal_rate(epsilon: float, sensitivity: float, coordinates: int) -> float:
    """Largest rate that keeps a release of `coordinates` integers at `epsilon`, the sampler's deviation included.

    Parameters
    ----------
    epsilon
        Of the whole release.
    sensitivity
        Largest change of the integers between neighbours, in the norm in which the law is Lipschitz.
    coordinates
        Integers released together.

    Raises
    ------
    OverflowError
        when the deviation alone would use more than a hundredth of `epsilon`.
    """
    deviation = coordinates * (2 * _LARGEST_DIGITS * DIGIT_DEVIATION + 4 * _TAIL) + 2.0**-33
    if deviation > epsilon / 100:
        raise OverflowError("epsilon is too small for the precision of the sampler")
    return (epsilon - deviation) / sensitivity * (1 - 2.0**-40)  # the last factor covers this line's own rounding


class LaplaceLaw:
    """Independent discrete Laplace integers, the same rate along a row.

    Parameters
    ----------
    rates
        (rows,) alpha of each row, per unit of the integers.
    count
        Integers a row.
    largest
        Bound on the absolute value of the integers that the noise is added to.

    Attributes
    ----------
    shape : (rows, count) of a draw.
    rates : as given.
    limit : the public interval of the noisy integers is [-limit, limit].
    sd : (rows,) standard deviation of the noise, in units of the integers.

    digits : the thresholds of the sampler.

    Raises
    ------
    OverflowError
        when the noise does not fit into the integers of the sampler, or the sampler's integers deviate from the law by
        more than is accounted for.
    """

    def __init__(self, rates: NDArray[np.float64], count: int, largest: int) -> None:
        slowest = float(rates.min())
        digits = digits_for(slowest, largest)
        self.shape, self.rates = (len(rates), count), rates
        self.limit = 2**digits - largest - math.ceil(_MARGIN / 2 / slowest)
        self._lowest, self._highest = np.array(-self.limit), np.array(self.limit)
        self.sd = math.sqrt(2.0) / rates
        self.digits = Digits(rates, digits, count)
        self._buffers: Buffers | None = None
        self._check_thresholds(rates, largest)

    def _check_thresholds(self, rates: NDArray[np.float64], largest: int) -> None:
        """Raise OverflowError unless the integers of the sampler, as they are, keep to what is accounted for."""
        thresholds, words = self.digits.thresholds, self.digits.words
        tail = 2 ** len(words) - largest - self.limit
        fine = tail * Fraction(float(rates.min())) >= _LEAST_TAIL
        fine = fine and bool((thresholds[..., self.digits.sign] == _HALF).all())
        fine = fine and bool((thresholds == thresholds[:, :1]).all())
        own = {rate: row[0].tolist() for rate, row in zip(rates.tolist(), thresholds, strict=True)}
        for rate, row in own.items():
            fine = fine and digits_within(rate, [[row[word] for word in one] for one in words], DIGIT_DEVIATION)
        if not fine:
            raise OverflowError("the sampler's thresholds are not those of its law")

    def own(self) -> "LaplaceLaw":
        """The same law with buffers of its own, for draws beside those of others."""
        law = copy.copy(self)
        law._buffers = Buffers(self.digits)
        return law

    def sample(self, bits: Bits) -> NDArray[np.int64]:
        """One draw, (rows, count); not for two threads at once, see `own`."""
        if self._buffers is None:
            self._buffers = Buffers(self.digits)
        return self._buffers.draw(bits)

    def clamp(self, noisy: NDArray[np.int64]) -> NDArray[np.int64]:
        """Noisy integers (rows, count) held to the public interval, in place."""
        np.maximum(noisy, self._lowest, out=noisy)
        np.minimum(noisy, self._highest, out=noisy)
        return noisy
