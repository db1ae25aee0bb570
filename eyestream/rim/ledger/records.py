"""The bytes of a ledger but its snapshot: header, records, their checksums, and what damage among them means. Pure.

LEDGER.md has the format (section 2), and what a damaged record counts for (section 3).
"""

import hashlib
import struct
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from eyestream.core.accountant import Announcement
from eyestream.errors import LedgerError
from eyestream.streams import StreamKey

RECORD_BYTES = 64
BODY_BYTES = 56
SEALED = b"EYESEALD"
"""First bytes of a file that is sealed (`eyestream.rim.ledger.seal`): its head has `RECORD_BYTES`."""
VERSION = 3

_HEADER = struct.Struct("<8sIIQQ16sQ")
_MAGIC = b"EYELEDGR"
_MOST_RECORDS = 2**32
_SPREAD = 0x9E3779B97F4A7C15
"""2^64 over the golden ratio: one wrong bit in a checksum never looks like another place."""
_GATHER = pow(_SPREAD, -1, 2**64)


class OtherFormatError(LedgerError):
    """A whole ledger, which another version of this program reads."""


class Header(NamedTuple):
    """Fields of the first 64 bytes."""

    ledger_id: bytes
    created: int
    generation: int = 0
    snapshot_bytes: int = 0

    @property
    def file_key(self) -> bytes:
        """Key of the file's checksums: no record of an older generation passes for one of this."""
        return self.ledger_id + self.generation.to_bytes(8, "little")


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
    """Read the header of a ledger.

    Raises
    ------
    LedgerError
        It is not one of ours, damaged, or of another format; the message begins after the file's name.
    """
    if len(data) < RECORD_BYTES or data[:8] != _MAGIC:
        raise LedgerError("is not a ledger")
    if data[BODY_BYTES:RECORD_BYTES] != _digest(data[:BODY_BYTES]):
        raise LedgerError("has a damaged header")
    _, version, record_bytes, generation, created, ledger_id, snapshot_bytes = _HEADER.unpack(data[:BODY_BYTES])
    if version != VERSION or record_bytes != RECORD_BYTES:
        who = "0.2.0 on it once: it writes the ledger again, with every spend" if version == 2 else "that wrote it"
        raise OtherFormatError(
            f"is a ledger of format {version}, and this program reads format {VERSION}; start the eyestream {who}"
        )
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


class RecordSource:
    """Bytes that come in pieces, cut anywhere: read some, and then the rest as records.

    >>> source = RecordSource([b"abc", b"", b"defg"])
    >>> source.read(5), [*source.records()]
    (b'abcde', [b'fg'])
    """

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = iter(pieces)
        self._held = b""

    def read(self, count: int) -> bytes:
        """The next `count` bytes; fewer where they end."""
        parts, length = [self._held], len(self._held)
        while length < count and (piece := next(self._pieces, None)) is not None:
            parts.append(piece)
            length += len(piece)
        data = b"".join(parts)
        self._held = data[count:]
        return data[:count]

    def records(self) -> Iterator[bytes]:
        """All that is left, in records; the last one may be short."""
        rest = self._held
        for piece in self._pieces:
            data = rest + piece
            yield from _whole(data)
            rest = data[len(data) - len(data) % RECORD_BYTES :]
        yield from _whole(rest)
        if left := rest[len(rest) - len(rest) % RECORD_BYTES :]:
            yield left


def _whole(data: bytes) -> Iterator[bytes]:
    for start in range(0, len(data) - len(data) % RECORD_BYTES, RECORD_BYTES):
        yield data[start : start + RECORD_BYTES]


class Tail:
    """The records so far, whole and damaged.

    Parameters
    ----------
    checksum
        That of the file.
    most_unsynced
        Records that may wait to be made durable; a longer stretch of damage is not a torn append.

    Attributes
    ----------
    records : how many, damaged ones included.
    padding : bytes that the last record lacks.
    """

    def __init__(self, checksum: Checksum, most_unsynced: int) -> None:
        self.records = self.padding = 0
        self._checksum, self._most = checksum, most_unsynced
        self._first_damaged: int | None = None
        self._damaged = bytearray()

    @property
    def damaged(self) -> int:
        """Length of the torn tail in records, from the first damaged one; 0 when there is none."""
        return 0 if self._first_damaged is None else self.records - self._first_damaged

    def admit(self, record: bytes) -> bool:
        """Whether the next record is whole. Raises LedgerError when no torn append can have left it so."""
        index, self.records = self.records, self.records + 1
        self.padding = RECORD_BYTES - len(record)
        record = record.ljust(RECORD_BYTES, b"\0")
        place = self._checksum.place(record)
        if place is None:
            if self._first_damaged is None:
                self._first_damaged = index
            self._damaged += record
            return False
        if place != index:  # a torn append damages bytes, it does not move whole records
            raise LedgerError(f"is damaged: record {place} stands at place {index}")
        if self._first_damaged is not None:
            # A whole record says how many before it were perhaps not durable when it was written. Those before them
            # were: damage there is not that of a torn append.
            unsynced = int.from_bytes(record[2:4], "little")
            if self._first_damaged < index - unsynced:
                raise LedgerError(f"is damaged: record {self._first_damaged} was durable and cannot be read")
        return True

    def repaired(self) -> None:
        """The damaged records so far are covered by the last one."""
        self._first_damaged = None
        self._damaged.clear()

    def check_end(self) -> None:
        """Check the end of the file. Raises LedgerError when no torn append can have left it so."""
        if self.damaged > self._most:
            raise LedgerError(f"has {self.damaged} damaged records at its end, more than a torn append leaves")
        # Bytes that were inserted or left out shift all that follow: then a whole record stands between two places.
        for start in range(len(self._damaged) - RECORD_BYTES):
            place = self._checksum.place(bytes(self._damaged[start : start + RECORD_BYTES]))
            if place is not None:
                raise LedgerError(f"is damaged: record {place} stands between two places")


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


class SettledFields(NamedTuple):
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
    """Announcement of an ANNOUNCED record, and the wearer in it."""
    _, _, _, session, chunk, window, own_window, wearer, epsilon, delta = _ANNOUNCED.unpack_from(record)
    return Announcement(chunk, window, own_window, session, epsilon, delta), wearer


def settled_body(number: int, what: SettledFields) -> bytes:
    """The body that says where the released bytes of a slot lie."""
    return _SETTLED.pack(SETTLED, 0, number, *what)


def settled(record: bytes) -> SettledFields:
    """The fields of a SETTLED record."""
    return SettledFields._make(_SETTLED.unpack_from(record)[3:])


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
