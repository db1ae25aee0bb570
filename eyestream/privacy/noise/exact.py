"""Exact checks of a sampler's integers against its law: no claim rests on the floating point that made them.

A digit with threshold integers t_1 .. t_m is one with probability p' = prod (t_j + 1) / 2^32, a rational number. Its
law wants p = 1 / (1 + E), E = exp(alpha 2^i) > 1, alpha the rate as the rational number that its float is. With

    x = p' / p - 1 = p' (1 + E) - 1      we have      (1 - p') / (1 - p) - 1 = -x / E,

so |x| <= D - D^2 is enough, D the accounted deviation: then both logarithms lie within +- D, because log(1 + x) <= x
and log(1 - x) >= -x / (1 - x), and (D - D^2) / (1 - D + D^2) <= D.

E is computed with 60 decimal digits: exp(alpha) is correctly rounded (a property of Python's `decimal`), and every
squaring at most doubles the relative error and adds a rounding, so after 34 of them it is below 2^35 10^-59 < 10^-48;
the tolerance is narrowed by `_SLACK` = 10^-40 for that and for the few products that follow.
"""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext

__all__ = ["digit_odds", "digits_within", "exactly"]

_CONTEXT = Context(prec=60, Emin=MIN_EMIN, Emax=MAX_EMAX)
_SLACK = Decimal(10) ** -40


def digit_odds(rate: float) -> Iterator[Decimal]:
    """E of the digits, from the lowest one on: the odds against each being one. To be asked for inside `exactly()`."""
    power = Decimal(rate).exp()
    while True:
        yield power
        power *= power


def exactly() -> AbstractContextManager[Context]:
    """Decimal arithmetic with 60 digits, whatever the program has set."""
    return localcontext(_CONTEXT)


def digits_within(rate: float, digits: Sequence[Sequence[int]], deviation: float) -> bool:
    """Whether every digit deviates from its law by at most `deviation`, in the logarithms of p and of 1 - p.

    Parameters
    ----------
    rate
        alpha, above 0.
    digits
        For the i-th digit, i = 0, 1, ..., at most 34 of them, the thresholds of all words that decide it; a word hits
        when it is at most its threshold.
    deviation
        D, 0 < D < 1/2.
    """
    with exactly():
        allowed = Decimal(deviation) - Decimal(deviation) ** 2 - _SLACK
        for thresholds, power in zip(digits, digit_odds(rate), strict=False):
            hit, words = 1, 0
            for threshold in thresholds:
                hit *= threshold + 1
                words += 32
            if abs(Decimal(hit) / (1 << words) * (1 + power) - 1) > allowed:
                return False
    return True
