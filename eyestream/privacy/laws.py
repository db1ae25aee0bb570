"""Laws of the noise: integers on a grid, sampled from biased binary digits.

**Discrete Laplace.** For a rate alpha > 0 the law on the integers P(z) ~ exp(-alpha |z + 1/2|) has a log-probability
that changes by at most alpha |d| when z moves by d. It is one geometric variable G and a fair sign: z = G or -(G + 1).
The binary digits of a geometric variable on 0 .. 2^t - 1 are *independent*, the i-th being one with probability
p_i = 1 / (1 + exp(alpha 2^i)): every digit is biased, the low ones slightly; uniform low digits would cost extra
epsilon.

**Sampling a digit.** With p = 2^-e q, 1/2 < q <= 1, a digit is one when e random bits are all zero (exact) and one
32-bit word is below round(2^32 q); for p >= 1/4 the word alone decides, with q = p. Each digit's probability p' is thus
within a factor 1 +- 2^-31 of p, however small p is. The number of words, comparisons and memory accesses is fixed: it
depends on nothing that is drawn.

**Deviation.** A sampled integer's probability is a product over digits of p' or 1 - p', so its log deviates from the
law's by at most D = sum_i max(|log p'_i/p_i|, |log (1-p'_i)/(1-p_i)|). Two neighbours can use it in opposite
directions: 2 D a coordinate, accounted *multiplicatively*, in epsilon. (A total-variation argument would put delta = (1
+ e^epsilon) tau in its place, vacuous for a chunk at epsilon 48.)

**Support.** The noisy integer a + z is clamped to a public interval [-u, u]. With |a| <= A for every input, the digits
reach T = 2^t >= 2 A + 64 / alpha and u = T - A - ceil(32 / alpha) >= A + 32 / alpha - 1: every value of the interval is
reachable from every input, inside it the law is the ideal one, and at its ends the tail that is missing beyond the
reach changes a probability by a factor of at most 1 + 2 e^-32.
"""

import math
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from eyestream.privacy.bits import Bits

__all__ = ["DIGIT_DEVIATION", "LaplaceLaw", "Law", "digits_for", "ideal_rate"]

_WORD = 2.0**32
_LN2 = math.log(2.0)
DIGIT_DEVIATION = 2.0**-31  # of log p and of log(1 - p): |p' - p| <= 2^-33 2^-e, and p > 2^-1 2^-e (or p >= 1/4, e = 0)
_MARGIN = 64.0  # in units of 1 / rate, on both sides of the interval together
_LARGEST_DIGITS = 34


def digits_for(rate: float, largest: int) -> int:
    """Binary digits t of the geometric variable: the least with 2^t >= 2 `largest` + 64 / `rate`.

    Raises
    ------
    OverflowError
        when more than 34 digits would be needed.
    """
    digits = math.ceil(math.log2(2 * largest + _MARGIN / rate + 2))
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
    deviation = coordinates * (2 * _LARGEST_DIGITS * DIGIT_DEVIATION + 4 * math.exp(-_MARGIN / 2)) + 2.0**-33
    if deviation > epsilon / 100:
        raise OverflowError("epsilon is too small for the precision of the sampler")
    return (epsilon - deviation) / sensitivity * (1 - 2.0**-40)  # the last factor covers this line's own rounding


class _Digits:
    """Draws discrete Laplace variables of some rates, `repeat` of each, from words that are compared with thresholds.

    All words of all variables are drawn, compared and packed to bits at once; a variable's bits are its digits' last
    words, the sign, and then, level by level, the further words of the rare digits, which are the highest ones. Draws
    share buffers: not for two threads at once.

    Attributes
    ----------
    thresholds : (rates, repeat, words), uint32; a word hits when word <= threshold.
    words : which words decide each digit: it is one when all of them hit.
    sign : which word is the sign.
    """

    def __init__(self, rates: NDArray[np.float64], count: int, repeat: int) -> None:
        own = [_thresholds(-np.logaddexp(0.0, rates * 2.0**digit)) for digit in range(count)]
        columns = [thresholds[0] for thresholds in own]
        columns.append(np.full(len(rates), 2**31 - 1, dtype=np.uint32))
        self.words = [[digit] for digit in range(count)]
        self.sign = count
        levels = []  # by how many bits to shift a level's words to their digits, and the other digits
        for level in range(1, len(own[-1])):
            first = next(digit for digit in range(count) if len(own[digit]) > level)
            levels.append((len(columns) - first, 2**first - 1))
            for digit in range(first, count):
                self.words[digit].append(len(columns))
                columns.append(own[digit][level])
        columns += [np.zeros(len(rates), dtype=np.uint32)] * (-len(columns) % 8)  # whole bytes
        self.thresholds = np.repeat(np.stack(columns, axis=1)[:, None, :], repeat, axis=1)
        self._shape, self._flat = self.thresholds.shape[:2], self.thresholds.reshape(-1)
        hits = np.zeros(self._flat.size + 64, dtype=np.bool_)
        self._hits, self._own_hits = hits, hits[:-64]
        self._packed = np.zeros(len(hits) // 8, dtype=np.uint8)
        self._live = self._bits_from(0)
        self._first, self._scratch = np.empty((2, len(self._live)), dtype=np.int64)
        # Arrays without dimensions: as arguments of numpy's functions they cost a third of its scalars.
        self._ones, self._to_top, self._from_top = np.array(2**count - 1), np.array(63 - count), np.array(63)
        self._levels = [
            (self._first, np.array(shift), np.array(others))
            if shift + count <= 64
            else (self._bits_from(shift), np.array(shift % 8), np.array(others))
            for shift, others in levels
        ]

    def _bits_from(self, bit: int) -> NDArray[np.int64]:
        """Every variable's bits from the byte of `bit` on, 64 of them, live."""
        rates, repeat, words = self.thresholds.shape
        return np.ndarray((rates * repeat,), "<i8", self._packed.data, bit // 8, (words // 8,))

    def draw(self, bits: Bits) -> NDArray[np.int64]:
        """(rates, repeat) independent discrete Laplace integers."""
        np.less_equal(bits.words(self._flat.size), self._flat, out=self._own_hits)
        self._packed[:] = np.packbits(self._hits, bitorder="little")
        np.copyto(self._first, self._live)
        geometric: NDArray[np.int64] = self._first & self._ones
        for words, shift, others in self._levels:
            np.right_shift(words, shift, out=self._scratch)
            np.bitwise_or(self._scratch, others, out=self._scratch)
            np.bitwise_and(geometric, self._scratch, out=geometric)
        np.left_shift(self._first, self._to_top, out=self._scratch)
        np.right_shift(self._scratch, self._from_top, out=self._scratch)  # 0 or -1
        geometric ^= self._scratch  # -(G + 1) is the bitwise complement of G
        return geometric.reshape(self._shape)


def _thresholds(log_p: NDArray[np.float64]) -> list[NDArray[np.uint32]]:
    """Thresholds of the words of one digit, for every rate, from the log of its probability of being one."""
    words = []
    zeros = np.floor(-log_p / _LN2).astype(np.int64)  # e, with 2^-(e+1) < p <= 2^-e
    if zeros.max() <= 1:
        zeros[:] = 0
    q = np.exp(log_p + zeros * _LN2)
    words.append(np.clip(np.rint(q * _WORD) - 1, 0, _WORD - 1).astype(np.uint32))
    while zeros.any():
        here = np.minimum(zeros, 32)
        words.append((2 ** (32 - here) - 1).astype(np.uint32))
        zeros = zeros - here
    return words


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
    limit : the public interval of the noisy integers is [-limit, limit].
    sd : (rows,) standard deviation of the noise, in units of the integers.

    Raises
    ------
    OverflowError
        when the noise does not fit into the integers of the sampler.
    """

    def __init__(self, rates: NDArray[np.float64], count: int, largest: int) -> None:
        slowest = float(rates.min())
        digits = digits_for(slowest, largest)
        self.shape = (len(rates), count)
        self.limit = 2**digits - largest - math.ceil(_MARGIN / 2 / slowest)
        self._lowest, self._highest = np.array(-self.limit), np.array(self.limit)
        self.sd = math.sqrt(2.0) / rates
        self._digits = _Digits(rates, digits, count)

    def sample(self, bits: Bits) -> NDArray[np.int64]:
        """One draw, (rows, count)."""
        return self._digits.draw(bits)

    def clamp(self, noisy: NDArray[np.int64]) -> NDArray[np.int64]:
        """Noisy integers (rows, count) held to the public interval, in place."""
        np.maximum(noisy, self._lowest, out=noisy)
        np.minimum(noisy, self._highest, out=noisy)
        return noisy


class Law(Protocol):
    """What a noise source needs of a law."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one draw."""
        ...

    def sample(self, bits: Bits) -> NDArray[np.int64]:
        """One draw."""
        ...
