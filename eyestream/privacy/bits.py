"""Uniform random words for the samplers.

The production source is AES-256 in counter mode, keyed with 32 bytes from the operating system. A source is never
seeded: no configuration, environment variable or command can choose its key. It takes a new key when it is asked to
(`renew`, once for every block of reserved budget) and by itself in a forked child, so that two processes that come out
of one never share a word.
"""

import os
import weakref
from typing import Protocol

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext
from cryptography.hazmat.primitives.ciphers.algorithms import AES256
from cryptography.hazmat.primitives.ciphers.modes import CTR
from numpy.typing import NDArray

__all__ = ["AesBits", "Bits"]


class Bits(Protocol):
    """A source of independent, uniform 32-bit words."""

    def words(self, count: int) -> NDArray[np.uint32]:
        """(count,) uniform words; may be an internal buffer that the next call overwrites."""
        ...


class AesBits:
    """Uniform words from AES-256-CTR under a key of the operating system.

    Attributes
    ----------
    era : counts the keys; whoever keeps what was drawn compares it.
    """

    def __init__(self) -> None:
        self._zeros = np.zeros(0, dtype=np.uint8)
        self._buffer = np.zeros(0, dtype=np.uint8)
        self._stream: CipherContext
        self.era = 0
        self.renew()
        _alive.add(self)

    def renew(self) -> None:
        """Take a fresh key; nothing drawn later is related to what was drawn before."""
        self._stream = Cipher(AES256(os.urandom(32)), CTR(os.urandom(16))).encryptor()
        self.era += 1

    def words(self, count: int) -> NDArray[np.uint32]:
        """(count,) uniform words in an internal buffer that the next call overwrites."""
        size = 4 * count
        if size > len(self._zeros):
            self._zeros = np.zeros(size, dtype=np.uint8)
            self._buffer = np.empty(size + 16, dtype=np.uint8)  # the library asks for one spare block
        self._stream.update_into(self._zeros[:size].data, self._buffer.data)
        return self._buffer[:size].view(np.uint32)


_alive: "weakref.WeakSet[AesBits]" = weakref.WeakSet()


def _renew_all() -> None:
    for bits in tuple(_alive):
        bits.renew()


os.register_at_fork(after_in_child=_renew_all)
