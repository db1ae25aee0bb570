"""Biased binary digits: how a discrete Laplace integer is made of uniform words.

The integer is made of independent digits. The number of words, comparisons and memory accesses is fixed: it depends on
nothing that is drawn. `digits_within` verifies the thresholds in exact arithmetic. `NOISE.md` has the arguments.
"""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from eyestream.core.noise import Bits

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


_WORD = 2**32


class Digits:
    """How discrete Laplace variables of some rates, `repeat` of each, are made of words; never changed.

    A word hits when word <= threshold. A variable's hits, packed, are its digits' last words, the sign, and then, level
    by level, the further words of the rare digits, which are the highest ones.

    Attributes
    ----------
    thresholds : (rates, repeat, words), uint32.
    words : which words decide each digit: it is one when all of them hit.
    sign : which word is the sign.
    levels : by how many bits to shift a level's words to their digits, and a mask of the other digits.
    """

    def __init__(self, rates: NDArray[np.float64], count: int, repeat: int) -> None:
        with exactly():
            odds = [list(islice(digit_odds(rate), count)) for rate in rates.tolist()]
            own = [digit_thresholds(digit) for digit in zip(*odds, strict=True)]
        columns = [thresholds[0] for thresholds in own]
        columns.append(np.full(len(rates), 2**31 - 1, dtype=np.uint32))
        self.words = [[digit] for digit in range(count)]
        self.sign = count
        self.levels: list[tuple[int, int]] = []
        for level in range(1, len(own[-1])):
            first = next(digit for digit in range(count) if len(own[digit]) > level)
            self.levels.append((len(columns) - first, 2**first - 1))
            for digit in range(first, count):
                self.words[digit].append(len(columns))
                columns.append(own[digit][level])
        columns += [np.zeros(len(rates), dtype=np.uint32)] * (-len(columns) % 8)  # whole bytes
        self.thresholds = np.repeat(np.stack(columns, axis=1)[:, None, :], repeat, axis=1)


class Buffers:
    """The arrays of one draw at a time."""

    def __init__(self, digits: Digits) -> None:
        count, thresholds = len(digits.words), digits.thresholds
        self._shape, self._words = thresholds.shape[:2], thresholds.shape[2]
        self._flat = thresholds.reshape(-1)
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
            for shift, others in digits.levels
        ]

    def _bits_from(self, bit: int) -> NDArray[np.int64]:
        """Every variable's bits from the byte of `bit` on, 64 of them, live."""
        variables = self._shape[0] * self._shape[1]
        return np.ndarray((variables,), "<i8", self._packed.data, bit // 8, (self._words // 8,))

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


def digit_thresholds(odds: Sequence[Decimal]) -> list[NDArray[np.uint32]]:
    """Thresholds of the words of one digit, for every rate, from the odds E against its being one: p = 1 / (1 + E)."""
    zeros = [int(1 + one).bit_length() - 1 for one in odds]  # e, with 2^-(e+1) < p <= 2^-e
    if max(zeros) <= 1:
        zeros = [0] * len(zeros)
    last = [round(Decimal(_WORD << e) / (1 + one)) - 1 for e, one in zip(zeros, odds, strict=True)]
    words = [np.array([min(max(one, 0), _WORD - 1) for one in last], dtype=np.uint32)]
    left = np.array(zeros)
    while left.any():
        here = np.minimum(left, 32)
        words.append((2 ** (32 - here) - 1).astype(np.uint32))
        left = left - here
    return words
