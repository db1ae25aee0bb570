"""Rows that can be recognised wherever they turn up, and the search for them.

Every value is a random number of full precision. What is looked for, at any alignment: two neighbouring values (of a
row, or of a feature) as a pair of float32, and each value as float64, both little- and big-endian; and each value in
decimal digits, six of them or more, rounded or cut. A pair has 64 bits, so that chance hits nothing in a gigabyte. A
float64 of such a value has 29 zeros at its end: four bytes of zero before any float32 from 2 to 8 could be mistaken for
one. So the last bit of every value is a one, and the byte before the zeros is none.
"""

import re
from collections import Counter

import numpy as np
from numpy.typing import NDArray

__all__ = ["FORMS", "Canary"]

FORMS = ("pair of float32", "float64", "decimal")
_PIECE = 1 << 24
_FILTER_BITS = 24
_NUMBER = re.compile(rb"[0-9][0-9.]{5,}(?:[eE][-+]?[0-9]{1,2})?")
_FEWEST_DIGITS = 6


class Canary:
    """`rows` (m, F) float32, between 2 and 99; sent again and again, the first row behind the last."""

    def __init__(self, rows: int, features: int, seed: int) -> None:
        self.rows = np.random.default_rng(seed).uniform(2.0, 99.0, (rows, features)).astype(np.float32)
        self.rows.view(np.uint32)[...] |= np.uint32(1)
        self._values = np.sort(self.rows.astype(np.float64).ravel())
        words = [*_pairs(self.rows), *_doubles(self.rows)]
        self._words = np.unique(np.concatenate([word.ravel() for word in words]))
        self._pair_words = np.unique(np.concatenate([word.ravel() for word in _pairs(self.rows)]))
        self._filter = np.zeros(1 << _FILTER_BITS, dtype=bool)
        self._filter[(self._words & np.uint64((1 << _FILTER_BITS) - 1)).astype(np.int64)] = True

    def hits(self, data: bytes) -> Counter[str]:
        """How often `data` has one of the values, by form."""
        found: Counter[str] = Counter()
        for start in range(0, len(data), _PIECE):
            piece = np.frombuffer(data, np.uint8)[start : start + _PIECE + 7]
            for offset in range(min(8, len(piece) - 7)):
                self._look(piece[offset : offset + (len(piece) - offset) // 8 * 8].view("<u8"), found)
        found["decimal"] = sum(self._is_value(number[0]) for number in _NUMBER.finditer(data))
        return +found

    def _look(self, words: NDArray[np.uint64], found: Counter[str]) -> None:
        likely = words[self._filter[(words & np.uint64((1 << _FILTER_BITS) - 1)).astype(np.int64)]]
        hits = likely[np.isin(likely, self._words)]
        pairs = int(np.isin(hits, self._pair_words).sum())
        found["pair of float32"] += pairs
        found["float64"] += len(hits) - pairs

    def _is_value(self, text: bytes) -> bool:
        digits, _, power = text.lower().partition(b"e")
        whole, _, decimals = digits.rstrip(b".").partition(b".")
        if b"." in decimals or len((whole + decimals).lstrip(b"0")) < _FEWEST_DIGITS:
            return False
        number = float(text.rstrip(b"."))
        unit = max(10.0 ** (int(power or 0) - len(decimals)), 1e-12 * number)
        first, last = np.searchsorted(self._values, (number - unit * 0.51, number + unit * 1.01))
        return bool(last > first)


def _pairs(rows: NDArray[np.float32]) -> list[NDArray[np.uint64]]:
    """Words of two neighbouring values, in both orders of bytes."""
    flat, columns = rows.ravel(), rows.T
    neighbours = [(flat, np.roll(flat, -1)), (columns, np.roll(columns, -1, axis=1))]
    found = []
    for first, second in neighbours:
        both = np.stack([first, second], axis=-1)
        found += [np.ascontiguousarray(both.astype(kind)).view("<u8") for kind in ("<f4", ">f4")]
    return found


def _doubles(rows: NDArray[np.float32]) -> list[NDArray[np.uint64]]:
    return [np.ascontiguousarray(rows.astype(kind)).view("<u8") for kind in ("<f8", ">f8")]
