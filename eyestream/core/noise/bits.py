"""Uniform random words, from entropy that the operating system gives at each draw.

A copy of this process starts with the same memory, so nothing in memory may decide the words. A short draw takes the
system's own words. A long one takes AES-256 in counter mode, at a counter that is drawn uniformly from 2^128, under a
key that the operating system gave when the cipher was made. No configuration, variable or command can choose the words.

`NOISE.md` has the arguments.
"""

import os
from collections import deque
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers import CipherContext

__all__ = ["DIRECT_WORDS", "SPARE_WORDS", "Bits", "SystemBits", "load_cipher"]

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
            stream = load_cipher()
        stream.reset_nonce(os.urandom(16))
        if out is None:
            words = np.frombuffer(stream.update(zeros), np.uint32)
        else:
            stream.update_into(zeros, out.data.cast("B"))
            words = out[:count]
        self._free.append(stream)
        return words


def load_cipher() -> "CipherContext":
    """A cipher under a new key; its library is loaded with the first one."""
    from cryptography.hazmat.primitives import ciphers  # noqa: PLC0415  a short draw needs no cipher
    from cryptography.hazmat.primitives.ciphers import algorithms, modes  # noqa: PLC0415

    return ciphers.Cipher(algorithms.AES256(os.urandom(32)), modes.CTR(bytes(16))).encryptor()
