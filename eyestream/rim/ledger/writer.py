"""Writing of a ledger's file: what is appended and made durable, in which order; when the file is rewritten.

There must be one caller at a time, and none after an OSError.
"""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from eyestream.core.accountant import Announcement
from eyestream.core.charge import Charge
from eyestream.core.reservation import Request
from eyestream.errors import LedgerError
from eyestream.rim.ledger import records
from eyestream.rim.ledger.book import Book, LedgerStream, no_collection, read_book
from eyestream.rim.ledger.file import LedgerFile
from eyestream.rim.ledger.records import RECORD_BYTES, SlotFields
from eyestream.streams import StreamKey

if TYPE_CHECKING:
    from eyestream.rim.ledger.seal import Seal

_MOST_WAITING = 64
"""Records that may wait for the next `sync`: withheld slots, and what is settled."""

_MANY_RECORDS, _TOO_MANY_RECORDS = 1 << 12, 1 << 15
"""Records after the snapshot from which on the file is rewritten: on opening, and at work."""

_LOG = logging.getLogger("eyestream.ledger")


class Writer:
    """The file at `path`, held by this process alone, and its book; `suffices` as for `Book`.

    With a `seal` the file is sealed: it is written again as it is opened, so that no two lives share a key.

    Raises
    ------
    LedgerError
        As `LedgerFile` and `Book`.
    """

    def __init__(self, path: Path, suffices: Callable[[Book], bool], seal: "Seal | None") -> None:
        self._path, self._seals = path, seal is not None
        self._file = LedgerFile(path, seal)
        try:
            self.book = read_book(path, self._file.pieces(), suffices)
        except LedgerError:
            self._file.close()
            raise
        self._unsynced = 0
        self._too_many = _TOO_MANY_RECORDS
        self._first: list[bytes] = []
        self._slots: list[bytes] = []
        self._granted = False
        self._taken: set[int] = set()

    def close(self) -> None:
        """Give the file and its lock up."""
        self._file.close()

    def settle_in(self) -> None:
        """Bring the file into a state in which records can be appended to it, and not too many of them."""
        if self.book.cut:
            _LOG.warning("%s: its end cannot be read, and nothing was released under it; it is cut off", self._path)
            self._rewrite(required=True)
            return
        if self.book.tail.records:
            self._file.write_again(RECORD_BYTES + self.book.header.snapshot_bytes)
        self._repair()
        if self._seals or self.book.tail.records >= _MANY_RECORDS:
            self._rewrite(required=self._seals)

    def rewrite(self) -> None:
        """Put all that the book says durably into the file, or raise OSError."""
        self._rewrite(required=True)

    def shorten(self) -> None:
        """Rewrite the file when it has become too long, or has slots of a day that is over: they melt into sums."""
        if self.book.tail.records >= self._too_many or self.book.has_old_slots:
            self._rewrite(required=False)

    def stream(self, key: StreamKey) -> LedgerStream:
        """The stream, with its name on the way into the file when it is new."""
        known = self.book.streams.get(key)
        if known is not None:
            return known
        known = self.book.add(key)
        self._first += records.name_bodies(key, known.number)
        return known

    def announce(self, known: LedgerStream, announced: Announcement, wearer: int) -> None:
        """Announce, before the next slots of the stream; what is taken already stays under what ruled it."""
        if known.number in self._taken:
            self.flush()  # else the file would have this announcement before slots that the old one ruled
        self._first.append(records.announced_body(known.number, announced, wearer))
        known.account.announce(known.key.stream, announced, wearer)

    def take_slot(self, known: LedgerStream, request: Request, day: int, charge: Charge | None) -> None:
        """Take one slot, that of a release or, without a charge, another; its record is written by `flush`."""
        fields = SlotFields(
            kind=records.RELEASED if charge else records.WITHHELD,
            unsynced=0,
            number=known.number,
            session=request.session,
            first_row=request.first_row,
            rows=request.last_row - request.first_row + 1,
            day=day,
            wearer=request.wearer,
            flags=records.WRITE_AHEAD if charge and request.write_ahead else 0,
            epsilon=charge.epsilon if charge else 0,
            delta=charge.delta if charge else 0,
        )
        self.book.take_slot(known, fields)
        self._slots.append(records.slot_body(fields))
        self._taken.add(known.number)
        self._granted = self._granted or charge is not None

    def flush(self) -> None:
        """Write what was taken: first what it needs, durably, then the slots, durably when one of them is granted."""
        if self._first:
            # A damaged slot is charged at what was announced before it. So an announcement is on the disk before any
            # slot under it is written: a loss of power between the two leaves an announcement without a slot.
            self.append(self._first)
            self.sync()
        # A loss of power from here on may leave any of these slots, damaged in any way. None of them was granted yet.
        self.append(self._slots)
        if self._granted or self._unsynced > _MOST_WAITING:
            self.sync()
        self._first, self._slots, self._granted = [], [], False
        self._taken.clear()

    def append(self, bodies: list[bytes]) -> None:
        """Write records; not durable yet."""
        if bodies:
            book, unsynced = self.book, self._unsynced
            first, complete = book.tail.records, book.checksum.complete
            self._file.append(
                b"".join(complete(records.waiting(body, unsynced + i), first + i) for i, body in enumerate(bodies))
            )
            book.tail.records += len(bodies)
            self._unsynced += len(bodies)

    def sync(self) -> None:
        """Make everything appended durable."""
        self._file.sync()
        self._unsynced = 0

    def _repair(self) -> None:
        """Close a torn tail, which has been counted as spent, so that records can follow it."""
        tail = self.book.tail
        if tail.padding:
            # The damaged bytes stay: every later reading must meet them, and charge the same for them.
            self._file.append(bytes(tail.padding))
        if tail.damaged:
            self._unsynced = tail.damaged
            self.append([records.repaired_body()])
            self.sync()

    def _rewrite(self, *, required: bool) -> None:
        """Put a file with a snapshot alone into the place of this one."""
        with no_collection():
            header, data = self.book.rewritten()
        try:
            prepared = self._file.prepare(data)
        except OSError as error:
            if required:
                raise
            self._too_many, self.book.first_day = 2 * self.book.tail.records, None
            _LOG.warning("%s: the ledger cannot be shortened and goes on as it is: %s", self._path, error.strerror)
            return
        self._file.replace(prepared)  # a crash before it leaves the old file, after it the new one, whole
        self.book.continue_after(header)
        self._unsynced = 0
        self._too_many = max(_TOO_MANY_RECORDS, 2 * len(self.book.streams))
