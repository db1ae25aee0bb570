"""Checksums that know a record's place, and the header of a ledger. Pure.

A record ends with a BLAKE2b of its other fields, keyed by the file, plus its place (counted from 0 behind the snapshot)
times an odd constant, modulo 2^64: so a damaged record can be told from one that was written at another place, or into
another file.

The header, little-endian: magic (8 bytes), version and length of a record (u32), generation (u64: how often the ledger
was rewritten), seconds since 1970 at which it was made (u64), random id (16 bytes), length of the snapshot behind it
(u64), BLAKE2b of all that (8 bytes). Format 2, of 0.1.0, has n and w (u32) where the generation is, and no snapshot.
"""

import hashlib
import struct
from typing import NamedTuple

from eyestream.errors import LedgerError

__all__ = [
    "BODY_BYTES",
    "LEGACY_VERSION",
    "RECORD_BYTES",
    "VERSION",
    "Checksum",
    "Header",
    "read_header",
    "write_header",
]

RECORD_BYTES = 64
BODY_BYTES = 56
VERSION, LEGACY_VERSION = 3, 2

_HEADER = struct.Struct("<8sIIQQ16sQ")
_MAGIC = b"EYELEDGR"
_MOST_RECORDS = 2**32
_SPREAD = 0x9E3779B97F4A7C15
"""2^64 over the golden ratio: one wrong bit in a checksum never looks like another place."""
_GATHER = pow(_SPREAD, -1, 2**64)


class Header(NamedTuple):
    """What the first 64 bytes say; `legacy` is (n, w) of a ledger of format 2, None of the present one."""

    ledger_id: bytes
    created: int
    generation: int = 0
    snapshot_bytes: int = 0
    legacy: tuple[int, int] | None = None

    @property
    def file_key(self) -> bytes:
        """What the checksums of the file are keyed with: no record of an older generation passes for one of this."""
        return self.ledger_id if self.legacy else self.ledger_id + self.generation.to_bytes(8, "little")


def write_header(header: Header) -> bytes:
    """The header's 64 bytes."""
    fields = _HEADER.pack(
        _MAGIC,
        VERSION,
        RECORD_BYTES,
        header.generation,
        header.created,
        header.ledger_id,
        header.snapshot_bytes,
    )
    return fields + _digest(fields)


def read_header(data: bytes) -> Header:
    """Read a header of this format, or of format 2.

    Raises
    ------
    LedgerError
        It is not one of ours, damaged, or of another version; the message begins behind the file's name.
    """
    if len(data) < RECORD_BYTES or data[:8] != _MAGIC:
        raise LedgerError("is not a ledger")
    if data[BODY_BYTES:RECORD_BYTES] != _digest(data[:BODY_BYTES]):
        raise LedgerError("has a damaged header")
    _, version, record_bytes, generation, created, ledger_id, snapshot_bytes = _HEADER.unpack(data[:BODY_BYTES])
    if version not in (LEGACY_VERSION, VERSION) or record_bytes != RECORD_BYTES:
        raise LedgerError(
            f"is a ledger of version {version}; this program reads versions {LEGACY_VERSION} and {VERSION}"
        )
    if version == LEGACY_VERSION:
        return Header(ledger_id, created, legacy=(generation % 2**32, generation >> 32))
    return Header(ledger_id, created, generation, snapshot_bytes)


class Checksum:
    """Completes the records of one file, and tells where an undamaged one was written."""

    def __init__(self, file_key: bytes) -> None:
        self._keyed = hashlib.blake2b(key=file_key, digest_size=8)

    def complete(self, body: bytes, place: int) -> bytes:
        """The whole record for the 56 bytes `body` at `place`."""
        return body + ((self._check(body) + place * _SPREAD) % 2**64).to_bytes(8, "little")

    def place(self, record: bytes) -> int | None:
        """Where `record` was written; None: it is damaged, or of another file.

        Damage passes for a record of some place once in 2^32 times, for one of a given place once in 2^64.
        """
        beyond = int.from_bytes(record[BODY_BYTES:], "little") - self._check(record[:BODY_BYTES])
        place = beyond * _GATHER % 2**64
        return place if place < _MOST_RECORDS else None

    def _check(self, body: bytes) -> int:
        check = self._keyed.copy()
        check.update(body)
        return int.from_bytes(check.digest(), "little")


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=8).digest()
