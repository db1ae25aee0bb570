"""A ledger that is sealed on its disk, with a key that the system keeps elsewhere. LEDGER.md, section 6, says why so.

A sealed file is a head of 64 bytes and then the bytes of a ledger, each 64 of them enciphered for themselves:

    head    magic, format (u32), four zeros, salt (32 random bytes), check (16 bytes)
    unit i  AES-256 in XTS mode, tweak i, under BLAKE2b(salt), keyed with the key: 64 bytes out for 64 bytes in

No file has the salt of another one, so each has a key of its own.
"""

import hashlib
import os
import secrets
import stat
from collections.abc import Generator, Iterable, Iterator
from pathlib import Path

from eyestream.errors import ConfigError, LedgerError
from eyestream.rim.ledger.records import RECORD_BYTES, SEALED

_MAGIC = SEALED + (1).to_bytes(8, "little")
_SALT, _CHECK = slice(16, 48), slice(48, 64)
_SHORTEST_KEY, _LONGEST_KEY = 32, 4096


class SealedFile:
    """The cipher of one file; `head` are its first bytes."""

    def __init__(self, key: bytes, head: bytes) -> None:
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes  # noqa: PLC0415  who seals has it

        own = hashlib.blake2b(head[_SALT], key=key, digest_size=64, person=b"ledger seal").digest()
        self.head, cipher = head, algorithms.AES(own)

        def at(unit: int) -> "Cipher[modes.XTS]":
            return Cipher(cipher, modes.XTS(unit.to_bytes(16, "little")))

        self._at = at

    def seal(self, data: bytes, place: int) -> bytes:
        """`data` as it is written at byte `place`. What fills up a unit that was torn stays as it is."""
        if place % RECORD_BYTES:
            return data
        return b"".join(self._at(unit).encryptor().update(one) for unit, one in _units(data, place))

    def open(self, data: bytes, place: int) -> bytes:
        """The whole units of `data`, read at byte `place`, as they were given to `seal`."""
        return b"".join(self._at(unit).decryptor().update(one) for unit, one in _units(data, place))


def _units(data: bytes, place: int) -> Iterator[tuple[int, bytes]]:
    """The units of `data`, which begins at byte `place`, with their numbers."""
    for start in range(0, len(data), RECORD_BYTES):
        yield (place + start) // RECORD_BYTES, data[start : start + RECORD_BYTES]


class Seal:
    """What seals the ledgers of one system, with its key of 32 bytes."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def _check(self, salt: bytes) -> bytes:
        return hashlib.blake2b(salt, key=self._key, digest_size=16, person=b"ledger check").digest()

    def new_file(self) -> SealedFile:
        """A file with a new salt."""
        salt = secrets.token_bytes(32)
        return SealedFile(self._key, _MAGIC + salt + self._check(salt))

    def file_of(self, head: bytes) -> SealedFile | None:
        """The file with this head; None: it was sealed with another key, or is damaged."""
        known = head[:16] == _MAGIC and secrets.compare_digest(head[_CHECK], self._check(head[_SALT]))
        return SealedFile(self._key, head) if known else None


def seal_by(path: Path | None) -> Seal | None:
    """The seal with the key in the file at `path`, at least 32 bytes; None: there is none.

    Raises
    ------
    ConfigError
        It cannot be read, is too short, or is open to others; or `cryptography` is not installed.
    """
    if path is None:
        return None
    try:
        import cryptography  # noqa: F401, PLC0415  an extra

        mode = path.stat().st_mode
        with open(path, "rb") as file:
            secret = file.read(_LONGEST_KEY)
    except ImportError:
        raise ConfigError("[sidecar] ledger_key: pip install eyestream[sealed]") from None
    except OSError as error:
        raise ConfigError(f"[sidecar] ledger_key: {path}: cannot be read: {error.strerror}") from None
    # systemd lets a service read a credential by a list of users (ACL), which shows in the bits of the group.
    credential = path.parent == Path(os.environ.get("CREDENTIALS_DIRECTORY", "/run/credentials/eyestream.service"))
    forbidden = stat.S_IRWXO | stat.S_IWGRP | (0 if credential else stat.S_IRWXG)
    if mode & forbidden and hasattr(os, "geteuid"):  # Windows shows no rights in a mode
        raise ConfigError(f"[sidecar] ledger_key: {path}: others can read or write this secret; chmod go= {path}")
    if len(secret) < _SHORTEST_KEY:
        raise ConfigError(f"[sidecar] ledger_key: {path}: expected at least {_SHORTEST_KEY} random bytes")
    return Seal(hashlib.blake2b(secret, digest_size=32, person=b"ledger key").digest())


def unsealed(path: Path, pieces: Iterable[bytes], seal: Seal | None) -> Generator[bytes, None, SealedFile | None]:
    """The bytes of the ledger whose file has `pieces`, cut anywhere; returns how it is sealed, None: it is not.

    A unit that was torn off comes as it is. Raises LedgerError: it is sealed, and not with this key.
    """
    held, sealed, place = b"", None, 0
    for piece in pieces:
        held += piece
        if place == 0:
            if len(held) < RECORD_BYTES:
                continue
            if held.startswith(SEALED):
                if seal is None:
                    raise LedgerError(f"{path}: is sealed; use --config FILE with its key as [sidecar] ledger_key")
                sealed = seal.file_of(held[:RECORD_BYTES])
                if sealed is None:
                    raise LedgerError(f"{path}: is sealed with another key than that of [sidecar] ledger_key")
                held, place = held[RECORD_BYTES:], RECORD_BYTES
        if sealed is None:
            yield held
            place, held = place + len(held), b""
        else:
            whole = len(held) - len(held) % RECORD_BYTES
            yield sealed.open(held[:whole], place)
            place, held = place + whole, held[whole:]
    yield held
    return sealed
