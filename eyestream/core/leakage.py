"""Maximal leakage: by what factor releases raise the chance to guess anything about what they were made from.

The gain is the largest ratio of the chance of a right guess with the release to the chance without, over all things to
guess, priors and rules; for discrete outputs sum over y of max over x of P(y | x). The unit is one chunk of one device.
It is an average over releases and stands beside epsilon. Gains of chunks multiply. `LEAKAGE.md` has the proofs, for
randomised response, discrete Laplace noise and a ball of integers. (Issa, Wagner, Kamath, IEEE Trans. Inf. Theory 66,
2020.)
"""

import math
from collections.abc import Iterable
from decimal import Decimal, localcontext
from fractions import Fraction

_DENOMINATOR = 2**128
PRECISION = 70
"""Significant digits of exponentials and logarithms."""


def response_gain(threshold: int, words: int) -> Fraction:
    """Gain of the randomised response of one chunk, exact.

    Parameters
    ----------
    threshold
        Chance of a replacement times 2^128, as the sampler holds it: 0 to 2^128.
    words
        How many there are, the product over the coordinates. They may be drawn with unlike probabilities.

    Raises
    ------
    ValueError
        when one of them is out of range.

    >>> response_gain(0, 8), response_gain(2**128, 8)  # never replaced, always replaced
    (Fraction(8, 1), Fraction(1, 1))
    """
    if not 0 <= threshold <= _DENOMINATOR:
        raise ValueError("threshold must lie between 0 and 2^128")
    if words < 1:
        raise ValueError(f"words must be at least 1, not {words}")
    return Fraction(words * (_DENOMINATOR - threshold) + threshold, _DENOMINATOR)


def composed_gain(gains: Iterable[Fraction]) -> Fraction:
    """Gain of releases together: of the chunks of a session, or of blocks with noise of their own."""
    return math.prod(gains, start=Fraction(1))


def leakage(gain: Fraction) -> float:
    """Maximal leakage in nats: the logarithm of a gain, for figures; rounded once, the same on every machine.

    Raises
    ------
    ValueError
        when `gain` is below 1, which no mechanism's is.
    """
    if gain < 1:
        raise ValueError("a gain is at least 1")
    with localcontext() as context:
        context.prec = PRECISION
        return float((Decimal(gain.numerator) / Decimal(gain.denominator)).ln())
