"""Uniform random words for the samplers, from entropy that the operating system gives at the moment of each draw.

A copy of this process - a native fork, a restored checkpoint - starts with the same memory, so nothing that is in
memory may decide the words. Every draw therefore asks the operating system: a short one takes its words from there, a
long one takes AES-256 in counter mode at a counter that is drawn anew, uniformly from 2^128, under a key that the
operating system gave at the start.

Why a copy cannot share words: two copies hold the same key and draw different counters. One counter serves at most 2^20
blocks, so those of q draws, in all copies together, meet with probability at most q^2 2^21 / 2^128; blocks that do not
meet are independent to whoever cannot break AES-256. Copies of a whole virtual machine rest on the kernel inside, which
takes new entropy when it is told of the copy (vmgenid); a kernel that is not told repeats itself.

A source is never seeded: no configuration, environment variable or command can choose its words.
"""

import os
from collections import deque
from typing import Protocol

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext
from cryptography.hazmat.primitives.ciphers.algorithms import AES256
from cryptography.hazmat.primitives.ciphers.modes import CTR
from numpy.typing import NDArray

__all__ = ["DIRECT_WORDS", "SPARE_WORDS", "Bits", "SystemBits"]

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
        self._free = deque([_cipher()])
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


def _cipher() -> CipherContext:
    return Cipher(AES256(os.urandom(32)), CTR(bytes(16))).encryptor()
