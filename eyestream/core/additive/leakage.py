"""Maximal leakage of integer noise on the coordinates of a ball; `LEAKAGE.md` has the proofs."""

import math
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal, localcontext
from fractions import Fraction

from eyestream.core.leakage import PRECISION, composed_gain, leakage

_DENOMINATOR = 2**128
_UP = 1 + Fraction(1, 10**50)  # far above the rounding errors of 70 significant digits
_NOTHING = -1000  # e^-1000 is far below the margin of _UP


def laplace_gain(rate: float, largest: int, digits: int, *, deviation: float) -> Fraction:
    """Gain of discrete Laplace noise on one integer: exact but for `deviation`, and rounded up to 128 binary places.

    Parameters
    ----------
    rate
        Of the law, per unit of the integers.
    largest
        A, bound on the absolute value of the integer before the noise.
    digits
        Binary digits of the geometric variable.
    deviation
        Bound on how far the log-probability of a sampled integer lies from the law's: `digits` times
        `eyestream.core.noise.laws.DIGIT_DEVIATION`; 0 for the law itself.

    Raises
    ------
    ValueError
        when an argument is out of range.
    """
    if largest < 0:
        raise ValueError(f"largest must be at least 0, not {largest}")
    inside, reach = _complements(rate, digits)
    return _rounded_up((1 + largest * inside / reach) * _sampled(deviation))


def ball_gain(
    rate: float, largest: Sequence[int], taxicab_radius: Fraction | int, digits: int, *, deviation: float
) -> Fraction:
    """Upper bound on the gain of one block: independent noise of one rate on the integers of a ball.

    Parameters
    ----------
    rate, digits, deviation
        As for `laplace_gain`.
    largest
        (M,) bound on the absolute value of each released integer.
    taxicab_radius
        R, largest sum of the absolute values; half of the largest L1 distance in a ball about the origin.

    Returns
    -------
    :
        The smaller of the product over coordinates and e^(rate R). Blocks multiply (`composed_gain`).

    Raises
    ------
    ValueError
        as for `laplace_gain`.
    """
    if taxicab_radius < 0:
        raise ValueError(f"taxicab_radius must be at least 0, not {taxicab_radius}")
    alike = Counter(largest).items()
    box = composed_gain(laplace_gain(rate, bound, digits, deviation=deviation) ** count for bound, count in alike)
    exponent = Fraction(rate) * taxicab_radius
    if exponent > leakage(box) + 1:
        return box
    _, reach = _complements(rate, digits)
    return min(box, _rounded_up(_exponential(exponent) * (_sampled(deviation) / reach) ** len(largest)))


def _complements(rate: float, digits: int) -> tuple[Fraction, Fraction]:
    """1 - e^-rate and 1 - e^(-rate 2^digits)."""
    if not (rate > 0 and math.isfinite(rate)):
        raise ValueError(f"rate must be positive and finite, not {rate}")
    if digits < 0:
        raise ValueError(f"digits must be at least 0, not {digits}")
    return 1 - _exponential(-Fraction(rate)), 1 - _exponential(-Fraction(rate) * 2**digits)


def _sampled(deviation: float) -> Fraction:
    """At least e^deviation."""
    if not 0 <= deviation < 1:
        raise ValueError(f"deviation must be at least 0 and below 1, not {deviation}")
    return 1 / (1 - Fraction(deviation))


def _rounded_up(gain: Fraction) -> Fraction:
    """`gain` and the errors of its decimals, as a multiple of 2^-128."""
    return Fraction(math.ceil(gain * _UP * _DENOMINATOR), _DENOMINATOR)


def _exponential(x: Fraction) -> Fraction:
    """e^x to 70 significant digits, which are left of 1 - e^x too; 0 for less than e^-1000."""
    if x < _NOTHING:
        return Fraction(0)
    with localcontext() as context:
        context.prec = PRECISION
        value = Decimal(x.numerator) / Decimal(x.denominator)
        context.prec += max(0, -value.adjusted())
        return Fraction((Decimal(x.numerator) / Decimal(x.denominator)).exp())
