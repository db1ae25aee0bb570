"""The records after the snapshot: 64 bytes each, little-endian. Pure.

A record never crosses a sector of a disk. All begin with kind and `unsynced` (u16 each: how many of the records before
this one may not have been durable when it was written) and the number of the stream (u32), and end with a checksum that
knows their place (`eyestream.rim.ledger.checksum`). Between them, bytes 8 to 55, zeros where nothing is named:

| kind       | what |
|------------|------|
| NAME       | one piece of "device/stream": its number, how many pieces, its length (u8), text |
| ANNOUNCED  | what the next slots may be: session (u64), n, w, w', wearer (u32), epsilon, delta (u64) |
| RELEASED   | one slot: session, first row (u64), rows, day, wearer, flags (u32), epsilon, delta (u64) |
| WITHHELD   | the same, epsilon and delta 0 |
| SETTLED    | the released bytes of a slot lie in the outbox: session, last row, reference (u64) |
| DAY        | days up to this one are over: day (u32); written by versions before 0.3 |
| REPAIRED   | the damaged ones among the `unsynced` records before this one have been counted as spent |

Flag 1: the driver writes the released bytes ahead. Kind 7 is not used, and there is room for a record of zCDP (rho). A
reader refuses a kind that it does not know.
"""

import struct
from typing import NamedTuple

from eyestream.core.stream_account import Announcement
from eyestream.rim.ledger.checksum import BODY_BYTES
from eyestream.streams import StreamKey

__all__ = [
    "ANNOUNCED",
    "DAY",
    "LAST_DAY",
    "NAME",
    "RELEASED",
    "REPAIRED",
    "SETTLED",
    "WITHHELD",
    "WRITE_AHEAD",
    "NamePiece",
    "Settled",
    "SlotFields",
    "announced_body",
    "announcement",
    "check_name",
    "day_of",
    "name_bodies",
    "name_piece",
    "repaired_body",
    "settled",
    "settled_body",
    "slot",
    "slot_body",
    "waiting",
]

NAME, RELEASED, WITHHELD, REPAIRED, ANNOUNCED, SETTLED, DAY = 1, 2, 3, 4, 5, 6, 8
WRITE_AHEAD = 1

_HEAD = struct.Struct("<HHI")
_NAME = struct.Struct("<HHIBBB45s")
_SLOT = struct.Struct("<HHIQQIIIIQQ")
_ANNOUNCED = struct.Struct("<HHIQIIIIQQ8x")
_SETTLED = struct.Struct("<HHIQQQ24x")
_DAY = struct.Struct("<HHII44x")
_PIECE = 45
_LONGEST_NAME = 148
LAST_DAY = 2**32 - 1
"""The last day that a record has room for; eleven million years from now."""


class SlotFields(NamedTuple):
    """The fields of a RELEASED or WITHHELD record, in the order of the bytes."""

    kind: int
    unsynced: int
    number: int
    session: int
    first_row: int
    rows: int
    day: int
    wearer: int
    flags: int
    epsilon: int
    delta: int


class NamePiece(NamedTuple):
    """One piece of the name of `key`: number `piece` of `pieces`."""

    key: int
    piece: int
    pieces: int
    text: bytes


class Settled(NamedTuple):
    """The chunk that ended at `last_row` of `session` lies in the outbox at `reference`."""

    session: int
    last_row: int
    reference: int


def slot(record: bytes) -> SlotFields:
    """The fields of a slot's record."""
    return SlotFields._make(_SLOT.unpack_from(record))


def slot_body(fields: SlotFields) -> bytes:
    """The 56 bytes of a slot's record."""
    return _SLOT.pack(*fields)


def name_bodies(key: StreamKey, number: int) -> list[bytes]:
    """The bodies that give stream `number` its name."""
    raw = str(key).encode()
    pieces = [raw[i : i + _PIECE] for i in range(0, len(raw), _PIECE)]
    return [_NAME.pack(NAME, 0, number, i, len(pieces), len(piece), piece) for i, piece in enumerate(pieces)]


def name_piece(record: bytes) -> NamePiece:
    """The fields of a NAME record."""
    _, _, key, piece, pieces, length, text = _NAME.unpack_from(record)
    return NamePiece(key, piece, pieces, text[:length])


def announced_body(number: int, announced: Announcement, wearer: int = 0) -> bytes:
    """The body that announces what the next slots of stream `number` may be, and whom they may name."""
    chunk, window, own_window, session, epsilon, delta = announced
    return _ANNOUNCED.pack(ANNOUNCED, 0, number, session, chunk, window, own_window, wearer, epsilon, delta)


def announcement(record: bytes) -> tuple[Announcement, int]:
    """What an ANNOUNCED record says, and the wearer in it."""
    _, _, _, session, chunk, window, own_window, wearer, epsilon, delta = _ANNOUNCED.unpack_from(record)
    return Announcement(chunk, window, own_window, session, epsilon, delta), wearer


def settled_body(number: int, what: Settled) -> bytes:
    """The body that says where the released bytes of a slot lie."""
    return _SETTLED.pack(SETTLED, 0, number, *what)


def settled(record: bytes) -> Settled:
    """The fields of a SETTLED record."""
    return Settled._make(_SETTLED.unpack_from(record)[3:])


def day_of(record: bytes) -> int:
    """The day in a DAY record."""
    return int(_DAY.unpack_from(record)[3])


def repaired_body() -> bytes:
    """The body that says: the damaged ones among the records before this one have been counted as spent."""
    return _HEAD.pack(REPAIRED, 0, 0).ljust(BODY_BYTES, b"\0")


def waiting(body: bytes, unsynced: int) -> bytes:
    """The same body, of a record with `unsynced` records before it that may not be durable."""
    return body[:2] + unsynced.to_bytes(2, "little") + body[4:]


def check_name(key: StreamKey) -> StreamKey:
    """`key`, whose name is "device/stream".

    Raises
    ------
    ValueError
        Empty, with a slash in the device, or too long.
    """
    device, stream = key
    if not device or not stream or "/" in device or len(str(key).encode()) > _LONGEST_NAME:
        raise ValueError("expected the names of a device and a stream")
    return key
