"""k-ary randomised response: the exact release of one of K code words.

With probability rho the index is replaced by one drawn from all, of which the j-th has the probability q_j, else it is
kept. For two inputs with any two indices, and any output j, the probabilities differ at most by the factor

    ((1 - rho) + rho q_j) / (rho q_j) = 1 + (1 - rho) / (rho q_j) <= 1 + M (1 - rho) / rho,  M = 1 / min q_j,

which is at most e^epsilon if and only if rho >= M / (e^epsilon + M - 1). (Warner, JASA 60, 1965; Kairouz, Oh,
Viswanath, JMLR 17, 2016, show that the response with equality is optimal at large epsilon.)

A coordinate of c cells is drawn as a uniform 32-bit integer modulo c. Its rarest cell has the probability
floor(2^32 / c) / 2^32, and M is the product of the inverses: K where each c is a power of two, else a little more. So
it is counted, exactly, that such a draw is not quite uniform.

Nothing else enters the proof: *whatever* function takes the input to its index, for whatever input, changing the input
changes nothing but the index. So there is no sensitivity to enforce, and no floating-point argument. rho is held as an
integer multiple of 2^-128, rounded up from an exact decimal computation, and M is a fraction. The law is exactly
epsilon-DP, and the work does not depend on what is released.
"""

import math
from collections.abc import Sequence
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from eyestream.core.leakage import response_gain
from eyestream.core.noise import Bits

_DENOMINATOR = 2**128
_CONTEXT = Context(prec=120, Emin=MIN_EMIN, Emax=MAX_EMAX)
_OUTWARD = _CONTEXT.add(1, Decimal(10) ** -100)


@lru_cache(maxsize=64)
def _shrunk(epsilon: float) -> Decimal:
    """e^-epsilon of the number that the float is, correctly rounded (a property of Python's `decimal`)."""
    return (-Decimal(epsilon)).exp(_CONTEXT)


def _replace_numerator(epsilon: float, rarest: Fraction) -> int:
    """rho times 2^128 where one word in `rarest` drawn is the rarest, rounded up; at least 1.

    The exponential is taken of -epsilon, so that a large epsilon cannot overflow; the last factor is far above the
    rounding errors of 120 decimal places. Nothing of it is floating point: each machine finds the same integer.
    """
    with localcontext(_CONTEXT):
        shrunk, words = _shrunk(epsilon), Decimal(rarest.numerator) / Decimal(rarest.denominator)
        rho = words * shrunk / (1 + (words - 1) * shrunk) * _OUTWARD
        return max(1, min(_DENOMINATOR, math.ceil(rho * _DENOMINATOR)))


def keep_probability(epsilon: float, bits: int) -> float:
    """1 - rho of words of so many `bits`: with what probability a word is certainly kept; rounded once."""
    return (_DENOMINATOR - _replace_numerator(epsilon, Fraction(2**bits))) / _DENOMINATOR


class ResponseLaw:
    """Randomised response over code words of several coordinates, the j-th with cells[j] values.

    Parameters
    ----------
    cells
        Of every coordinate, each 1 to 2^31.
    epsilon
        Loss of one release, replace-one, for every possible input.

    Attributes
    ----------
    shape : (1 + d,) of a draw: whether the index is replaced (0 or 1), and by which coordinates.
    words : 32-bit words that a draw takes.
    replace : rho, as a float for figures.
    gain : factor by which a draw raises the chance of guessing the code word (`eyestream.core.leakage`), exact.
    """

    def __init__(self, cells: Sequence[int], epsilon: float) -> None:
        self.shape = (1 + len(cells),)
        self.words = 4 + len(cells)
        rarest = math.prod((Fraction(2**32, 2**32 // own) for own in cells), start=Fraction(1))
        self._threshold = _replace_numerator(epsilon, rarest)
        self._cells = np.array(cells, dtype=np.uint32)
        self.replace = self._threshold / _DENOMINATOR
        self.gain = response_gain(self._threshold, math.prod(cells))

    def sample(self, bits: Bits) -> NDArray[np.int64]:
        """One draw, (1 + d,)."""
        words = bits.words(self.words)
        uniform = int.from_bytes(words[:4].tobytes(), "little")
        drawn = np.empty(self.shape, dtype=np.int64)
        drawn[0] = uniform < self._threshold
        drawn[1:] = words[4:] % self._cells
        return drawn
