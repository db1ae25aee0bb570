"""What a ledger's bytes add up to. Pure: fed with bytes, gives accounts.

Torn tails
----------
Only records that were not yet durable can be torn: an append that a power cut, a kill or a full disk broke off. Nothing
was released under them, but the file cannot prove that, so **each record that cannot be read counts as spent**: for its
device when that much can be read, else for every device, with the largest charge that the device ever had (or the one
that can be read, when larger), and the device's session is closed.

Every record says how many records before it might not have been durable when it was written. A damaged record that a
later one vouches for is no torn tail: the ledger is refused. So is one with an undamaged record at another place than
that where it was written, whole records apart or not: something before it was cut out, put in or moved, which no torn
append does. Before a writer appends behind a torn tail it leaves the damaged bytes where they are, fills them up to
whole records with zeros and appends a MENDED record that covers them; so every later reading meets the same bytes and
comes to the same sums.
"""

import dataclasses
from collections.abc import Iterable, Iterator

from eyestream.errors import LedgerError
from eyestream.privacy.accountant import Account
from eyestream.rim.ledger.records import (
    MENDED,
    NAME,
    RECORD_BYTES,
    RELEASED,
    WITHHELD,
    Header,
    NamePiece,
    Seal,
    name_piece,
    read_header,
    slot,
)

__all__ = ["MOST_UNSYNCED", "Book", "Entry"]

MOST_UNSYNCED = 8192
"""Records that may wait for `sync`; a longer stretch of damage is not a torn tail."""


@dataclasses.dataclass(slots=True)
class Entry:
    """One (device, stream): its account, and the largest charge it ever had, (epsilon, delta)."""

    key: int
    account: Account
    largest: int
    largest_delta: int = 0


class Book:
    """The accounts of a ledger.

    Parameters
    ----------
    pieces
        The bytes of the file from its beginning, cut anywhere.

    Raises
    ------
    LedgerError
        Not a ledger, or damaged other than by a torn append; the message begins behind the file's name.
    """

    def __init__(self, pieces: Iterable[bytes]) -> None:
        records = _records(pieces)
        self.header: Header = read_header(next(records, b""))
        self.seal = Seal(self.header.ledger_id)
        self.entries: dict[str, Entry] = {}
        """By "device/stream"."""
        self.records = 0
        """How many, damaged ones included."""
        self.padding = 0
        """Bytes that the last record lacks."""
        self.next_key = 0
        self._by_key: dict[int, Entry] = {}
        self._name: list[NamePiece] = []
        self._first_damaged: int | None = None
        self._tail = bytearray()
        for record in records:
            self.padding = RECORD_BYTES - len(record)
            self._read(record.ljust(RECORD_BYTES, b"\0"))
        if self.damaged > MOST_UNSYNCED:
            raise LedgerError(f"has {self.damaged} damaged records at its end, more than a torn append leaves")
        self._check_tail()

    @property
    def damaged(self) -> int:
        """Length of the torn tail in records, from the first damaged one; 0 when there is none."""
        return 0 if self._first_damaged is None else self.records - self._first_damaged

    def add(self, name: str, key: int, epsilon: int) -> Entry:
        """Open the account of a device that is new to the ledger and came with a charge of `epsilon`."""
        entry = Entry(key, Account(self.header.chunk, self.header.window), epsilon)
        self.entries[name] = self._by_key[key] = entry
        self.next_key = max(self.next_key, key + 1)
        return entry

    def _read(self, record: bytes) -> None:
        index = self.records
        self.records += 1
        place = self.seal.place(record)
        if place is None:
            if self._first_damaged is None:
                self._first_damaged = index
            self._tail += record
            self._count_as_spent(record)
            return
        if place != index:
            raise LedgerError(f"is damaged: record {place} stands at place {index}")
        kind, unsynced, key, session, first_row, rows, chunk, window, day, epsilon, delta = fields = slot(record)
        if self._first_damaged is not None and self._first_damaged < index - unsynced:
            raise LedgerError(f"is damaged: record {self._first_damaged} was durable and cannot be read")
        if kind in {RELEASED, WITHHELD}:
            entry = self._by_key.get(key)
            if entry is None:  # its name was torn
                self._count_as_spent(record)
                return
            entry.account.take(
                session, first_row + rows - 1, chunk=chunk, window=window, day=day, epsilon=epsilon, delta=delta
            )
            if epsilon > entry.largest or delta > entry.largest_delta:
                entry.largest = max(epsilon, entry.largest)
                entry.largest_delta = max(delta, entry.largest_delta)
        elif kind == NAME:
            self._read_name(record)
        elif kind == MENDED:
            self._first_damaged = None
            self._tail.clear()
        else:
            raise LedgerError(f"has a record of kind {fields.kind}, which this program does not know")

    def _check_tail(self) -> None:
        """Look for an undamaged record between the places: a part of a record before it was cut out or put in."""
        for start in range(len(self._tail) - RECORD_BYTES):
            place = self.seal.place(bytes(self._tail[start : start + RECORD_BYTES]))
            if place is not None:
                raise LedgerError(f"is damaged: record {place} stands between two places")

    def _read_name(self, record: bytes) -> None:
        piece = name_piece(record)
        if piece.piece == 0:
            self._name = []
        self._name.append(piece)
        if [(p.key, p.piece) for p in self._name] == [(piece.key, i) for i in range(piece.pieces)]:
            self.add(b"".join(p.text for p in self._name).decode(), piece.key, piece.epsilon)

    def _count_as_spent(self, record: bytes) -> None:
        fields = slot(record)
        entry = self._by_key.get(fields.key) if fields.kind in {RELEASED, WITHHELD} else None
        if entry is not None:
            largest = max(entry.largest, fields.epsilon)
            entry.account.take_unreadable(fields.session, largest, entry.largest_delta)
            return
        for entry in self._by_key.values():
            entry.account.take_unreadable(None, entry.largest, entry.largest_delta)


def _records(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Cut into records; the last one may be short."""
    rest = b""
    for piece in pieces:
        data = rest + piece
        whole = len(data) - len(data) % RECORD_BYTES
        for start in range(0, whole, RECORD_BYTES):
            yield data[start : start + RECORD_BYTES]
        rest = data[whole:]
    if rest:
        yield rest
