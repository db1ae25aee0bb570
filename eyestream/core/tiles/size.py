"""Closed forms: how many bits a word should have, and how many slots a window of time touches."""

from decimal import Decimal, localcontext

from eyestream.core.charge import spendable
from eyestream.errors import ConfigError

MOST_BITS = 5
"""More tiles than 32 would be finer than the eye keeps to within a slot."""

LEAST_EPSILON, MOST_EPSILON = 0.01, 100.0


def word_bits(epsilon: float) -> int:
    """Bits of a slot's word, 2 to `MOST_BITS`: those that let the released word tell most of the true one.

    Of K = 2^b words, all equally likely, the response lets p = E / (E + K - 1) through, E = e^epsilon, and else makes
    any of the others. The mutual information of both words is

        I(K) = log K + p log p + (1 - p) log((1 - p) / (K - 1)).

    Tilings make the words nearly equally likely, given what was released. One of the words says "lost", so one bit
    would leave a single tile. Decimal arithmetic decides, which every machine rounds alike.

    Raises
    ------
    ConfigError
        when epsilon is not within `LEAST_EPSILON` and `MOST_EPSILON`.
    """
    if not spendable(LEAST_EPSILON) <= epsilon <= MOST_EPSILON:  # a mechanism has its epsilon rounded down so
        raise ConfigError(f"epsilon of a slot: expected {LEAST_EPSILON:g} to {MOST_EPSILON:g}, not {epsilon:g}")
    with localcontext() as context:
        context.prec = 60
        power = Decimal(epsilon).exp()
        told = {bits: _information(power, Decimal(2**bits)) for bits in range(2, MOST_BITS + 1)}
    return max(told, key=lambda bits: told[bits])


def _information(power: Decimal, words: Decimal) -> Decimal:
    """I(K) in natural units; to be asked for with many digits."""
    kept, other = power / (power + words - 1), 1 / (power + words - 1)
    return words.ln() + kept * kept.ln() + (words - 1) * other * other.ln()


def slots_touched(seconds: float, slot_us: int) -> int:
    """Most slots that a window of `seconds`, in whole microseconds, has a moment of, wherever it begins: ceil(seconds /
    slot) + 1.

    A window [a, a + t) begins somewhere inside a slot. It ends in one that is at most ceil(t / slot) further. The form
    floor(t / slot) + 1 agrees where t is a whole number of slots, and is one too few everywhere else: 2 s touch four
    slots of 0.7 s.
    """
    return -(-round(seconds * 1_000_000) // slot_us) + 1
