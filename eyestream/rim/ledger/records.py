"""The ledger's bytes: a header and records of 64 bytes, little-endian. Pure.

A record never crosses a sector of a disk. It ends with a BLAKE2b of its other fields, keyed by the ledger's random id,
plus its place (counted from 0) times an odd constant, modulo 2^64: so a damaged record can be told from one that was
written at another place.

| bytes | NAME: one piece of "device/stream"       | RELEASED, WITHHELD: one slot                | MENDED         |
|-------|------------------------------------------|---------------------------------------------|----------------|
| 0-1   | kind                                     | kind                                        | kind           |
| 2-3   | unsynced: how many of the records before this one may not have been durable when it was written  | | |
| 4-7   | key, counted from 0                      | key                                         | 0              |
| 8-55  | piece, pieces, length (u8), text, epsilon | session, first row, rows, n, w, day, epsilon, delta | 0     |
| 56-63 | checksum, and place                      | checksum, and place                         | the same       |

A NAME's epsilon is the charge that the device came with: what a torn first slot counts for.

Kinds leave room for a record of zCDP (rho); a reader refuses what it does not know.
"""

import hashlib
import struct
from typing import NamedTuple

from eyestream.errors import LedgerError

__all__ = [
    "LAST_DAY",
    "MENDED",
    "MOST_PIECES",
    "NAME",
    "RECORD_BYTES",
    "RELEASED",
    "WITHHELD",
    "Header",
    "NamePiece",
    "Seal",
    "SlotFields",
    "check_name",
    "mended_body",
    "name_bodies",
    "name_piece",
    "read_header",
    "slot",
    "slot_body",
    "write_header",
]

RECORD_BYTES = 64
NAME, RELEASED, WITHHELD, MENDED = 1, 2, 3, 4

_BODY_BYTES = 56
_SLOT = struct.Struct("<HHIQQIIIIQQ")
_NAME = struct.Struct("<HHIBBB37sQ")
_PIECE = 37
_HEADER = struct.Struct("<8sIIIIQ16s8s8s")
_MAGIC = b"EYELEDGR"
_VERSION = 2
_MOST_RECORDS = 2**32
_SPREAD = 0x9E3779B97F4A7C15
"""2^64 over the golden ratio: one wrong bit in a checksum never looks like another place."""
_GATHER = pow(_SPREAD, -1, 2**64)
MOST_PIECES = 4
LAST_DAY = 2**32 - 1
"""The last day that a record has room for; eleven million years from now."""


class Header(NamedTuple):
    """What the first 64 bytes say: a random id, n and w of a device without a slot, seconds since 1970."""

    ledger_id: bytes
    chunk: int
    window: int
    created: int


class SlotFields(NamedTuple):
    """The fields of a RELEASED or WITHHELD record, in the order of the bytes."""

    kind: int
    unsynced: int
    key: int
    session: int
    first_row: int
    rows: int
    chunk: int
    window: int
    day: int
    epsilon: int
    delta: int


class NamePiece(NamedTuple):
    """One piece of the name of `key`: number `piece` of `pieces`, and the charge that the device came with."""

    key: int
    piece: int
    pieces: int
    text: bytes
    epsilon: int


def write_header(header: Header) -> bytes:
    """The header's 64 bytes."""
    fields = _HEADER.pack(
        _MAGIC,
        _VERSION,
        RECORD_BYTES,
        header.chunk,
        header.window,
        header.created,
        header.ledger_id,
        bytes(8),
        bytes(8),
    )
    return fields[:_BODY_BYTES] + _digest(fields[:_BODY_BYTES])


def read_header(data: bytes) -> Header:
    """Read what `write_header` wrote.

    Raises
    ------
    LedgerError
        It is not one of ours, damaged, or of another version; the message begins behind the file's name.
    """
    if len(data) < RECORD_BYTES or data[:8] != _MAGIC:
        raise LedgerError("is not a ledger")
    _, version, record_bytes, chunk, window, created, ledger_id, _, check = _HEADER.unpack(data[:RECORD_BYTES])
    if check != _digest(data[:_BODY_BYTES]):
        raise LedgerError("has a damaged header")
    if version != _VERSION or record_bytes != RECORD_BYTES:
        raise LedgerError(f"is a ledger of version {version}; this program reads version {_VERSION}")
    return Header(ledger_id, chunk, window, created)


class Seal:
    """Puts the checksum on records of one ledger, and tells where an undamaged one was written."""

    def __init__(self, ledger_id: bytes) -> None:
        self._keyed = hashlib.blake2b(key=ledger_id, digest_size=8)

    def seal(self, body: bytes, place: int) -> bytes:
        """The whole record for the 56 bytes `body` at `place`."""
        return body + ((self._check(body) + place * _SPREAD) % 2**64).to_bytes(8, "little")

    def place(self, record: bytes) -> int | None:
        """Where `record` was written; None: it is damaged, or of another ledger.

        Damage passes for a record of some place once in 2^32 times, for one of a given place once in 2^64.
        """
        beyond = int.from_bytes(record[_BODY_BYTES:], "little") - self._check(record[:_BODY_BYTES])
        place = beyond * _GATHER % 2**64
        return place if place < _MOST_RECORDS else None

    def _check(self, body: bytes) -> int:
        check = self._keyed.copy()
        check.update(body)
        return int.from_bytes(check.digest(), "little")


def slot(record: bytes) -> SlotFields:
    """The fields of a slot's record, which may be damaged: nothing is checked."""
    return SlotFields._make(_SLOT.unpack_from(record))


def slot_body(fields: SlotFields) -> bytes:
    """The 56 bytes of a slot's record."""
    return _SLOT.pack(*fields)


def name_bodies(text: str, key: int, epsilon: int, unsynced: int) -> list[bytes]:
    """The bodies that give `key` its name; the first has `unsynced` records before it that may not be durable."""
    raw = text.encode()
    pieces = [raw[i : i + _PIECE] for i in range(0, len(raw), _PIECE)]
    return [
        _NAME.pack(NAME, unsynced + i, key, i, len(pieces), len(piece), piece, epsilon)
        for i, piece in enumerate(pieces)
    ]


def name_piece(record: bytes) -> NamePiece:
    """The fields of a NAME record."""
    _, _, key, piece, pieces, length, text, epsilon = _NAME.unpack_from(record)
    return NamePiece(key, piece, pieces, text[:length], epsilon)


def mended_body(unsynced: int) -> bytes:
    """The body that says: the damaged ones among the `unsynced` records before this one have been counted as spent."""
    return _SLOT.pack(MENDED, unsynced, 0, 0, 0, 0, 0, 0, 0, 0, 0)


def check_name(device: str, stream: str) -> str:
    """The name of a key: "device/stream".

    Raises
    ------
    ValueError
        Empty, with a slash in the device, or too long.
    """
    text = f"{device}/{stream}"
    if not device or not stream or "/" in device or len(text.encode()) > _PIECE * MOST_PIECES:
        raise ValueError("expected the names of a device and a stream")
    return text


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=8).digest()
