"""Records one after another: which are whole, which are damaged, and whether an append can have left them so. Pure.

A power cut, a kill or a full disk can break an append off: of the records that were not yet durable, any may then be
damaged, in any way. Every record says how many records before it might not have been durable when it was written. A
damaged record that a later one vouches for is no torn append: the ledger is refused. So is one with an undamaged record
at another place than that where it was written, whole records apart or not: something before it was cut out, put in or
moved, which no torn append does. What a damaged record counts for is the business of `eyestream.rim.ledger.book`.

Before a writer appends behind a torn tail it leaves the damaged bytes where they are, fills them up to whole records
with zeros and appends a REPAIRED record that covers them; so every later reading meets the same bytes and comes to the
same sums.
"""

from collections.abc import Iterable, Iterator

from eyestream.errors import LedgerError
from eyestream.rim.ledger.checksum import RECORD_BYTES, Checksum

__all__ = ["Source", "Tail"]


class Source:
    """Bytes that come in pieces, cut anywhere: a stretch at a time, and then records."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = iter(pieces)
        self._held = b""

    def take(self, count: int) -> bytes:
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
    """What is known of the records so far.

    Parameters
    ----------
    checksum
        Of the file.
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
        if place != index:
            raise LedgerError(f"is damaged: record {place} stands at place {index}")
        if self._first_damaged is not None:
            unsynced = int.from_bytes(record[2:4], "little")
            if self._first_damaged < index - unsynced:
                raise LedgerError(f"is damaged: record {self._first_damaged} was durable and cannot be read")
        return True

    def repaired(self) -> None:
        """The damaged records so far are covered by the last one."""
        self._first_damaged = None
        self._damaged.clear()

    def check_end(self) -> None:
        """What only the end of the file shows. Raises LedgerError when no torn append can have left it so."""
        if self.damaged > self._most:
            raise LedgerError(f"has {self.damaged} damaged records at its end, more than a torn append leaves")
        for start in range(len(self._damaged) - RECORD_BYTES):
            place = self._checksum.place(bytes(self._damaged[start : start + RECORD_BYTES]))
            if place is not None:
                raise LedgerError(f"is damaged: record {place} stands between two places")
