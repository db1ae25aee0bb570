"""Closed forms: how many bits a word should have, and how many slots a window of time touches."""

from decimal import Decimal, localcontext

from eyestream.errors import ConfigError

__all__ = ["LEAST_EPSILON", "MOST_BITS", "MOST_EPSILON", "slots_touched", "word_bits"]

MOST_BITS = 5
"""More tiles than 32 would be finer than the eye keeps to within a slot."""

LEAST_EPSILON, MOST_EPSILON = 0.01, 100.0


def word_bits(epsilon: float) -> int:
    """Bits of a slot's word, 2 to `MOST_BITS`: those that remove most of the expected squared error.

    One of the K = 2^b words says "lost". K - 1 tiles of equal weight leave about 1/(K - 1) of the variance of gaze in
    the plane. A word that the response keeps with probability theta = (E - 1) / (E + K - 1), E = e^epsilon, lets the
    best linear estimate remove theta^2 (1 - 1/(K - 1)) of it (`TILES.md`). Over real K that is largest at
    K = (7 + sqrt(9 + 8 E)) / 4. Of powers of two the best is taken. Decimal arithmetic decides, which every machine
    rounds alike.

    Raises
    ------
    ConfigError
        when epsilon is not within `LEAST_EPSILON` and `MOST_EPSILON`.
    """
    if not LEAST_EPSILON <= epsilon <= MOST_EPSILON:
        raise ConfigError(f"epsilon of a slot: expected {LEAST_EPSILON:g} to {MOST_EPSILON:g}, not {epsilon:g}")
    with localcontext() as context:
        context.prec = 60
        power = Decimal(epsilon).exp()
        worth = {
            bits: (1 - 1 / (words - 1)) * ((power - 1) / (power + words - 1)) ** 2
            for bits in range(2, MOST_BITS + 1)
            for words in [Decimal(2**bits)]
        }
    return max(worth, key=lambda bits: worth[bits])


def slots_touched(seconds: float, slot_us: int) -> int:
    """Most slots that a window of `seconds`, in whole microseconds, has a moment of, wherever it begins: ceil(seconds /
    slot) + 1.

    A window [a, a + t) begins somewhere inside a slot. It ends in one that is at most ceil(t / slot) further. The form
    floor(t / slot) + 1 agrees where t is a whole number of slots, and is one too few everywhere else: 2 s touch four
    slots of 0.7 s.
    """
    return -(-round(seconds * 1_000_000) // slot_us) + 1
