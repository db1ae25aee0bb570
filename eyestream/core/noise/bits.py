"""Uniform random words, from entropy that the operating system gives at each draw; biased binary digits made of them.

A copy of this process starts with the same memory, so nothing in memory may decide the words. A short draw takes the
system's own words. A long one takes AES-256 in counter mode, at a counter that is drawn uniformly from 2^128, under a
key that the operating system gave when the cipher was made. No configuration, variable or command can choose the words.

A discrete Laplace integer is made of independent, biased binary digits. The number of words, comparisons and memory
accesses is fixed: it depends on nothing that is drawn. `digits_within` verifies the thresholds in exact arithmetic.
`NOISE.md` has the arguments.
"""

import os
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext
from itertools import islice
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers import CipherContext

__all__ = [
    "DIRECT_WORDS",
    "SPARE_WORDS",
    "Bits",
    "Buffers",
    "Digits",
    "SystemBits",
    "digit_odds",
    "digit_thresholds",
    "digits_within",
    "exactly",
]

DIRECT_WORDS = 256
"""Up to here the operating system's own words cost less than a new counter, by measurement."""

SPARE_WORDS = 4
"""The cipher asks for room for one block more than it writes."""

_MOST_BYTES = 16 * 2**20


class Bits(Protocol):
    """A source of independent, uniform 32-bit words."""

    def words(self, count: int, out: NDArray[np.uint32] | None = None) -> NDArray[np.uint32]:
        """(count,) uniform words; `out`, of at least count + `SPARE_WORDS`, is where they may be written to."""
        ...


class SystemBits:
    """Uniform words of the operating system, or of AES-256-CTR at a counter that it gives for each draw.

    Draws of several threads at once have a cipher each, with a key of its own: nobody waits, also not a copy of the
    process that was made while another thread was drawing.
    """

    def __init__(self) -> None:
        self._free: deque[CipherContext] = deque()
        self._zeros = bytes(0)

    def words(self, count: int, out: NDArray[np.uint32] | None = None) -> NDArray[np.uint32]:
        """(count,) uniform words that no other draw, of this process or of a copy of it, shares."""
        size = 4 * count
        if count <= DIRECT_WORDS:
            return np.frombuffer(os.urandom(size), np.uint32)
        if size > _MOST_BYTES:
            return np.concatenate([self.words(_MOST_BYTES // 4), self.words(count - _MOST_BYTES // 4)])
        zeros = self._zeros
        if len(zeros) != size:
            self._zeros = zeros = bytes(size)
        try:
            stream = self._free.pop()
        except IndexError:
            stream = _cipher()
        stream.reset_nonce(os.urandom(16))
        if out is None:
            words = np.frombuffer(stream.update(zeros), np.uint32)
        else:
            stream.update_into(zeros, out.data.cast("B"))
            words = out[:count]
        self._free.append(stream)
        return words


def _cipher() -> "CipherContext":
    from cryptography.hazmat.primitives import ciphers  # noqa: PLC0415  a short draw needs no cipher
    from cryptography.hazmat.primitives.ciphers import algorithms, modes  # noqa: PLC0415

    return ciphers.Cipher(algorithms.AES256(os.urandom(32)), modes.CTR(bytes(16))).encryptor()


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
        if self._flat.size > DIRECT_WORDS:
            _cipher()  # loads its library now, when a mechanism is built, and not after a chunk's budget was reserved
        self._uniform = np.empty(self._flat.size + SPARE_WORDS, dtype=np.uint32)
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
        np.less_equal(bits.words(self._flat.size, self._uniform), self._flat, out=self._own_hits)
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
