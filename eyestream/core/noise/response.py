"""k-ary randomised response: the exact release of one of K = 2^b code words.

With probability rho the index is replaced by one drawn uniformly from all K, else it is kept. For two inputs with any
two indices, and any output j, the probabilities differ at most by the factor

    ((1 - rho) + rho / K) / (rho / K) = 1 + K (1 - rho) / rho,

which is at most e^epsilon if and only if rho >= K / (e^epsilon + K - 1). (Warner, JASA 60, 1965; Kairouz, Oh,
Viswanath, JMLR 17, 2016, show that the response with equality is optimal at large epsilon.)

Nothing else enters the proof: *whatever* function takes the input to its index, for whatever input, changing the input
changes nothing but the index. So there is no sensitivity to enforce, and no floating-point argument. rho is held as an
integer multiple of 2^-128, rounded up from an exact decimal computation; K is a power of two, so that a uniform index
is a matter of taking bits. The law is exactly epsilon-DP, and the work does not depend on what is drawn or released.
"""

import math
from collections.abc import Sequence
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from eyestream.core.leakage import response_gain
from eyestream.core.noise import Bits

__all__ = ["ResponseLaw", "keep_probability"]

_DENOMINATOR = 2**128
_CONTEXT = Context(prec=120, Emin=MIN_EMIN, Emax=MAX_EMAX)
_OUTWARD = _CONTEXT.add(1, Decimal(10) ** -100)


@lru_cache(maxsize=64)
def _shrunk(epsilon: float) -> Decimal:
    """e^-epsilon of the number that the float is, correctly rounded (a property of Python's `decimal`)."""
    return (-Decimal(epsilon)).exp(_CONTEXT)


def _replace_numerator(epsilon: float, bits: int) -> int:
    """rho times 2^128, rounded up; at least 1.

    The exponential is taken of -epsilon, so that a large epsilon cannot overflow; the last factor is far above the
    rounding errors of 120 decimal places. Nothing of it is floating point: each machine finds the same integer.
    """
    with localcontext(_CONTEXT):
        shrunk, words = _shrunk(epsilon), Decimal(2**bits)
        rho = words * shrunk / (1 + (words - 1) * shrunk) * _OUTWARD
        return max(1, min(_DENOMINATOR, math.ceil(rho * _DENOMINATOR)))


def keep_probability(epsilon: float, bits: int) -> float:
    """1 - rho of words of so many `bits`: with what probability a word is certainly kept; rounded once."""
    return (_DENOMINATOR - _replace_numerator(epsilon, bits)) / _DENOMINATOR


class ResponseLaw:
    """Randomised response over code words of several coordinates, the j-th with 2^bits[j] values.

    Parameters
    ----------
    bits
        Bits of every coordinate, each 0 to 31.
    epsilon
        Loss of one release, replace-one, for every possible input.

    Attributes
    ----------
    shape : (1 + d,) of a draw: whether the index is replaced (0 or 1), and by which coordinates.
    words : 32-bit words that a draw takes.
    replace : rho, as a float for figures.
    gain : factor by which a draw raises the chance of guessing the code word (`eyestream.core.leakage`), exact.
    """

    def __init__(self, bits: Sequence[int], epsilon: float) -> None:
        self.shape = (1 + len(bits),)
        self.words = 4 + len(bits)
        self._threshold = _replace_numerator(epsilon, sum(bits))
        self._masks = np.array([2**b - 1 for b in bits], dtype=np.uint32)
        self.replace = self._threshold / _DENOMINATOR
        self.gain = response_gain(self._threshold, sum(bits))

    def sample(self, bits: Bits) -> NDArray[np.int64]:
        """One draw, (1 + d,)."""
        words = bits.words(self.words)
        uniform = int.from_bytes(words[:4].tobytes(), "little")
        drawn = np.empty(self.shape, dtype=np.int64)
        drawn[0] = uniform < self._threshold
        drawn[1:] = words[4:] & self._masks
        return drawn
