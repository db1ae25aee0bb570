"""Ledgers of format 2, which 0.1.0 wrote: read only; a writer rewrites them at once. Pure.

The header is followed by records alone, each with n and w. Their slots are taken in the order of the file, which is
that of reservation, so a device with several streams gets one sequence of all its slots, and every spend counts toward
it. There were no announcements: what a slot says counts as announced with it. A damaged record counts as spent by every
device at its largest charge so far, or the one that can be read when that is larger, and closes every session, also the
one that can be read: more than 0.1.0 itself counted.
"""

import struct
from collections.abc import Callable

from eyestream.core.accountant import Account, Announcement
from eyestream.core.charge import DELTA_UNITS, MOST_UNITS
from eyestream.errors import LedgerError
from eyestream.rim.ledger.checksum import RECORD_BYTES, Checksum, Source, Tail
from eyestream.streams import StreamKey

__all__ = ["LegacyReader"]

_NAME, _RELEASED, _WITHHELD, _MENDED = 1, 2, 3, 4
_SLOT = struct.Struct("<HHIQQIIIIQQ")
_PIECE = struct.Struct("<HHIBBB37sQ")
_MOST_UNSYNCED = 8192


class LegacyReader:
    """Reads the records into accounts.

    Parameters
    ----------
    file_key
        Of the header.
    shape
        n and w of the header: of a stream without a slot.
    add
        Opens the account of a stream that is new.

    Attributes
    ----------
    tail : what is known of the records.
    """

    def __init__(self, file_key: bytes, shape: tuple[int, int], add: Callable[[StreamKey], Account]) -> None:
        self.tail = Tail(Checksum(file_key), _MOST_UNSYNCED)
        self._shape, self._add = shape, add
        self._streams: dict[int, tuple[str, Account]] = {}
        self._announced: dict[int, Announcement] = {}
        self._name: list[tuple[int, int, bytes]] = []

    def read(self, source: Source) -> None:
        """Read to the end. Raises LedgerError as `Book` does."""
        for record in source.records():
            if self.tail.admit(record):
                self._read(record)
            else:
                self._count_as_spent(record.ljust(RECORD_BYTES, b"\0"))
        self.tail.check_end()

    def _read(self, record: bytes) -> None:
        kind, _, key, session, first_row, rows, chunk, window, day, epsilon, delta = _SLOT.unpack_from(record)
        if kind in {_RELEASED, _WITHHELD}:
            if key not in self._streams:  # its name was torn
                self._count_as_spent(record)
                return
            self._announce(key, (chunk, window), session, epsilon, delta)
            stream, account = self._streams[key]
            account.take(stream, session, first_row + rows - 1, day=day, epsilon=epsilon, delta=delta)
        elif kind == _NAME:
            self._read_name(record)
        elif kind == _MENDED:
            self.tail.repaired()
        else:
            raise LedgerError(f"has a record of kind {kind}, which no ledger of format 2 has")

    def _announce(self, key: int, shape: tuple[int, int], session: int, epsilon: int, delta: int) -> None:
        """Let what is known of the stream hold from now on; nothing that was announced before becomes less."""
        old = self._announced.get(key, Announcement(*shape, 0, -1, 0, 0))
        new = Announcement(*shape, 0, max(session, old.session), max(epsilon, old.epsilon), max(delta, old.delta))
        if self._announced.get(key) != new:
            stream, account = self._streams[key]
            account.announce(stream, new)
            self._announced[key] = new

    def _read_name(self, record: bytes) -> None:
        _, _, key, piece, pieces, length, text, epsilon = _PIECE.unpack_from(record)
        if piece == 0:
            self._name = []
        self._name.append((key, piece, text[:length]))
        if [part[:2] for part in self._name] == [(key, i) for i in range(pieces)]:
            device, _, stream = b"".join(part[2] for part in self._name).decode().partition("/")
            self._streams[key] = stream, self._add(StreamKey(device, stream))
            self._announce(key, self._shape, -1, epsilon, 0)

    def _count_as_spent(self, record: bytes) -> None:
        kind, _, key, session, _, _, _, _, _, epsilon, delta = _SLOT.unpack_from(record)
        if kind in {_RELEASED, _WITHHELD} and key in self._streams:
            shape = self._announced[key][:2]
            plausible = epsilon <= MOST_UNITS and delta <= DELTA_UNITS
            self._announce(key, shape, session, epsilon if plausible else 0, delta if plausible else 0)
        for account in {id(account): account for _, account in self._streams.values()}.values():
            account.take_unreadable()
