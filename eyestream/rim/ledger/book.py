"""The sum of a ledger's bytes: accounts, streams and days. Pure: fed with bytes, gives accounts.

Theory of operation. A book is read from the beginning of the file to its end, and then grows with every slot that the
writer takes. Reading goes through these states:

========= ============================================= ========================================================
state     what comes next in the file                   what it does
========= ============================================= ========================================================
header    64 bytes                                      its key makes the checksums of this file, of no other one
snapshot  as many bytes as the header says              accounts, streams, days; damage here refuses the ledger
whole     a whole record                                the account takes it
damaged   a record that cannot be read                  it is counted, and nothing is charged yet
        - then a whole record that allows for it        all so far are charged to every device; a REPAIRED record ends
                                                        the damage
        - then a whole record that vouches for it       the ledger is refused (`Tail.admit`)
        - then the end of the file                      a torn append: charged to every device, or cut off where a
                                                        second place shows that nothing was released under them
========= ============================================= ========================================================

LEDGER.md says why a damaged record costs what it costs, and what nobody can notice from the file alone (section 3).
"""

import dataclasses
import gc
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from eyestream.core.accountant import Account
from eyestream.core.days import Days
from eyestream.core.reservation import RowMark
from eyestream.errors import LedgerError
from eyestream.rim.ledger import records
from eyestream.rim.ledger.records import (
    Checksum,
    Header,
    NamePiece,
    OtherFormatError,
    RecordSource,
    SlotFields,
    Tail,
    read_header,
    write_header,
)
from eyestream.rim.ledger.snapshot import (
    DeviceExport,
    DeviceLine,
    OtherDaysOf,
    StreamFacts,
    Unsettled,
    read_snapshot,
    write_snapshot,
)
from eyestream.streams import StreamKey

MOST_UNSYNCED = 512
"""Records that may wait to be made durable; a longer stretch of damage is not a torn append."""

_MOST_UNSETTLED = 256
"""Spans of a stream that are remembered as unsettled; an older one is forgotten, which loses its chunk."""
_SECONDS_A_DAY = 86_400


@dataclasses.dataclass(slots=True)
class LedgerStream:
    """One stream: its number in the records, the account of its device, and what is known beside sums."""

    number: int
    key: StreamKey
    account: Account
    unsettled: deque[Unsettled] = dataclasses.field(default_factory=lambda: deque(maxlen=_MOST_UNSETTLED))

    def settle(self, session: int, last_row: int) -> None:
        """Forget the span that ends there."""
        for span in self.unsettled:
            if (span.session, span.last_row) == (session, last_row):
                self.unsettled.remove(span)
                return

    def facts(self) -> StreamFacts:
        """All that is known beside its sums."""
        return StreamFacts(unsettled=tuple(self.unsettled))


class Book:
    """The accounts of a ledger.

    Parameters
    ----------
    pieces
        The bytes of the file from its beginning, cut anywhere.
    suffices
        Says of the book of all records before a damaged end whether nothing was released under more than these.

    Attributes
    ----------
    header : as it stands in the file.
    cut : damaged records at the end that count for nothing.
    unreadable : damaged records after the snapshot that count as spent.
    accounts, streams : by device, by stream.
    tail : the records after the snapshot.
    first_day : that of the first slot among them; None: they have none.
    days : those that were opened, from the one on which the ledger was made.
    moves, former_ledgers : how often a device was moved between ledgers, and the names of those that it came from.
    exported : devices that were moved out of this one, and the name of the ledger that each went to, if one was named.

    Raises
    ------
    LedgerError
        Not a ledger, or damaged other than at its end; the message begins after the file's name.
    """

    def __init__(self, pieces: Iterable[bytes], suffices: "Callable[[Book], bool]" = lambda book: False) -> None:
        source = RecordSource(pieces)
        self.header: Header = read_header(source.read(64))
        self.accounts: dict[str, Account] = {}
        self.streams: dict[StreamKey, LedgerStream] = {}
        self.days = Days(self.header.created // _SECONDS_A_DAY)
        self.moves: dict[str, int] = {}
        self.former_ledgers: dict[str, tuple[str, ...]] = {}
        self.exported: dict[str, str] = {}
        self._by_number: list[LedgerStream] = []
        self._by_device: dict[str, list[LedgerStream]] = {}
        self._name: list[NamePiece] = []
        self.cut = self.unreadable = 0
        self.first_day: int | None = None
        self._newest_day, self._worn = 0, False
        if self.header.snapshot_bytes:
            self._read_snapshot(source.read(self.header.snapshot_bytes))
        self._begin_tail()
        damaged = 0
        for record in source.records():
            if self.tail.admit(record):
                damaged = self._count_as_spent(damaged)
                self._read(record)
            else:
                damaged += 1
        self.tail.check_end()
        # Only damage that reaches the end can be an append under which nothing was published: a whole record after
        # it was granted, perhaps.
        if damaged and damaged == self.tail.damaged and suffices(self):
            self.cut = damaged
        else:
            self._count_as_spent(damaged)

    @property
    def released(self) -> int:
        """Chunks that were reserved for a release, of all devices."""
        return sum(account.released for account in self.accounts.values())

    @property
    def has_old_slots(self) -> bool:
        """Whether records are of slots of a day that is over; where they name wearers, of any day before the newest."""
        until = self._newest_day if self._worn else self.days.last
        return self.first_day is not None and self.first_day < until

    def add(self, key: StreamKey) -> LedgerStream:
        """Open a stream that is new to the ledger."""
        account = self.accounts.setdefault(key.device, Account())
        known = LedgerStream(len(self._by_number), key, account)
        self._by_number.append(known)
        self._by_device.setdefault(key.device, []).append(known)
        self.streams[key] = known
        return known

    def mark(self, key: StreamKey) -> RowMark | None:
        """Up to where the rows of the stream are refused for ever; None: it has none."""
        known = self.streams.get(key)
        return None if known is None else known.account.mark(key.stream)

    def begin_day_at(self, day: int) -> None:
        """Let it be `day`: what was spent on days after it counts for it."""
        for account in self.accounts.values():
            account.begin_day_at(day, self.days.last)
        self.days.begin_at(day)

    def rewritten(self) -> tuple[Header, bytes]:
        """The header and the whole bytes of a file with a snapshot and no records, which has the same sums."""
        for account in self.accounts.values():
            account.melt(self.days.last)
        # Another generation is another key of the checksums: no record of the old file can pass in the new one.
        header = self.header._replace(generation=self.header.generation + 1)
        spent = {device: other for device, account in self.accounts.items() if (other := account.other_days)}
        snapshot = write_snapshot(self.days, spent, map(self.line, self.accounts), header.file_key)
        header = header._replace(snapshot_bytes=len(snapshot))
        return header, write_header(header) + snapshot

    def line(self, device: str) -> DeviceLine:
        """All that is known of a device."""
        facts = {known.key.stream: known.facts() for known in self._streams_of(device)}
        moves, former = self.moves.get(device, 0), self.former_ledgers.get(device, ())
        exported = device in self.exported and (self.exported[device] or True)
        return DeviceLine(device, self.accounts[device].state(), facts, moves, exported, former)

    def mark_exported(self, device: str, to: str) -> None:
        """Note that the device is moved to the ledger named `to`; durable before the export is given out."""
        if device not in self.exported:
            self.accounts.setdefault(device, Account())
            self._by_device.setdefault(device, [])
            self.moves[device] = self.moves.get(device, 0) + 1
        self.exported[device] = to

    def import_device(self, export: DeviceExport) -> None:
        """Take the device of `export`, which this ledger never had or has exported."""
        line = export.line
        # What stands here is older: this ledger gave the device away, and has granted nothing of it since.
        self.exported.pop(line.device, None)
        for known in self._by_device.pop(line.device, []):
            del self.streams[known.key]
        self._restore(line, export.other_days)
        self.days.pass_over(export.day)

    def continue_after(self, header: Header) -> None:
        """Go on after the snapshot of `header`, as if it had been read."""
        self.header = header
        # As a reader of the snapshot will number them, so that records after it mean the same streams.
        self._by_number = [known for device in self.accounts for known in self._streams_of(device)]
        for number, known in enumerate(self._by_number):
            known.number = number
        self._begin_tail()

    def _begin_tail(self) -> None:
        self.first_day, self._worn = None, False
        self.unreadable, self.checksum = 0, Checksum(self.header.file_key)
        self.tail = Tail(self.checksum, MOST_UNSYNCED)

    def _streams_of(self, device: str) -> list[LedgerStream]:
        return self._by_device[device]

    def _read_snapshot(self, data: bytes) -> None:
        self.days, spent, lines = read_snapshot(data, self.header.snapshot_bytes, self.header.file_key)
        for line in lines:
            self._restore(line, spent.get(line.device, {}))
            if line.exported:
                self.exported[line.device] = line.exported if isinstance(line.exported, str) else ""

    def _restore(self, line: DeviceLine, other_days: OtherDaysOf) -> None:
        self.accounts[line.device] = Account.restored(line.account, other_days)
        if line.moves:
            self.moves[line.device], self.former_ledgers[line.device] = line.moves, line.former_ledgers
        self._by_device.setdefault(line.device, [])
        for stream, known in line.facts.items():
            self.add(StreamKey(line.device, stream)).unsettled.extend(known.unsettled)

    def _count_as_spent(self, damaged: int) -> int:
        """Charge so many damaged records; gives how many are left to charge."""
        if damaged:
            self.unreadable += damaged
            for account in self.accounts.values():
                account.take_unreadable(damaged)
        return 0

    def _read(self, record: bytes) -> None:
        kind = record[0] | record[1] << 8
        if kind == records.NAME:
            self._read_name(records.name_piece(record))
        elif kind == records.REPAIRED:
            self.tail.repaired()
        elif kind == records.DAY:
            self.days.pass_over(records.day_of(record))
        elif (known := self._stream_of(int.from_bytes(record[4:8], "little"))) is None:
            self._count_as_spent(1)  # of a stream that nobody knows, so it counts for every device
        elif kind in {records.RELEASED, records.WITHHELD}:
            self.take_slot(known, records.slot(record))
        elif kind == records.ANNOUNCED:
            known.account.announce(known.key.stream, *records.announcement(record))
        elif kind == records.SETTLED:
            known.settle(*records.settled(record)[:2])
        else:
            raise LedgerError(f"has a record of kind {kind}, which this program does not know")

    def _stream_of(self, number: int) -> LedgerStream | None:
        """The stream of a record; None: its name is among the damaged records before it."""
        if number < len(self._by_number):
            return self._by_number[number]
        if not self.tail.damaged:
            raise LedgerError(f"is damaged: a record is of stream {number}, which has no name")
        return None

    def take_slot(self, known: LedgerStream, fields: SlotFields) -> None:
        """Take the slot of a RELEASED or WITHHELD record, as it is written or read."""
        _, _, _, session, first_row, rows, day, wearer, flags, epsilon, delta = fields
        last_row, stream = first_row + rows - 1, known.key.stream
        self.first_day = day if self.first_day is None else self.first_day
        self._newest_day, self._worn = day, self._worn or wearer > 0
        self.days.open(day)  # before the account: which sums of days it keeps follows from the last open one
        known.account.take(
            stream,
            session,
            last_row,
            day=day,
            epsilon=epsilon,
            delta=delta,
            wearer=wearer,
            last_day=self.days.last,
        )
        if flags & records.WRITE_AHEAD:
            chunk = known.account.chunk_of(stream)
            known.unsettled.append(Unsettled(session, first_row, last_row, chunk, epsilon, delta, wearer))

    def _read_name(self, piece: NamePiece) -> None:
        if piece.piece == 0:
            self._name = []
        self._name.append(piece)
        # Only all pieces in a row make a name. One that is torn stays unknown, and its slots count for every device.
        if [(p.key, p.piece) for p in self._name] == [(len(self._by_number), i) for i in range(piece.pieces)]:
            device, _, stream = b"".join(p.text for p in self._name).decode().partition("/")
            self.add(StreamKey(device, stream))


def read_book(path: Path, pieces: Iterable[bytes], suffices: Callable[[Book], bool] = lambda book: False) -> Book:
    """The book of the file's bytes; its name, and the way out, stand in what is raised about its contents."""
    try:
        with no_collection():
            return Book(pieces, suffices)
    except OtherFormatError as error:
        raise LedgerError(f"{path} {error}") from None  # nothing is lost: a new one would forget what was spent
    except LedgerError as error:
        if str(error).startswith(str(path)):
            raise
        raise LedgerError(
            f"{path} {error}; move it away and make a new one with `eyestream budget --new`, "
            "which forgets what was spent and which rows were released"
        ) from None


@contextmanager
def no_collection() -> Iterator[None]:
    """No garbage collection while loading: it finds nothing, and doubles the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
