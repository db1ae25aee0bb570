"""A second place that remembers how long a ledger was, and a shard's outbox, so that older copies of them are refused.

Whoever can put an old copy of the ledger back resets the budget, and the file itself cannot show that. So before
anything is published, the lengths of ledger and outbox are written into a second place, with another fate than their
volume: a file on another disk, or a bucket of a fleet. A shard or a sidecar whose files are shorter does not start.

The lengths are those of what is durable. The files may be longer than the second place says: that happens when a
process ends between its disk and the second place.
"""

import hashlib
import os
import struct
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple, Protocol

from eyestream.errors import LedgerError, ShardError
from eyestream.privacy.meter import Odometer
from eyestream.privacy.reservation import Granted, Request, RowMark, Withheld
from eyestream.rim.ledger.file import LedgerFile, create_file
from eyestream.rim.ledger.identity import ledger_name
from eyestream.rim.ledger.ledger import Ledger
from eyestream.streams import StreamKey

__all__ = ["FilePlace", "GuardedLedger", "Lengths", "SecondPlace", "accept", "guarded", "recalled", "refuse_shorter"]

_RECORD = struct.Struct("<16sQQ16s")
_MOST_BYTES = 1 << 20


class Lengths(NamedTuple):
    """`Ledger.released`, and the steps of the outbox. They never fall below what a second place was told, unless a file
    is older or damaged; a start alone raises neither.
    """

    ledger: int
    outbox: int


class SecondPlace(Protocol):
    """Remembers lengths by the name of a ledger."""

    async def read(self, ledger: str) -> Lengths | None:
        """What was written last; None: nothing. Raises LinkError or LedgerError."""
        ...

    async def write(self, ledger: str, lengths: Lengths) -> None:
        """Remember, durably before it returns. Raises LinkError or LedgerError."""
        ...


def refuse_shorter(where: str, now: Lengths, remembered: Lengths) -> None:
    """Let pass files that are at least as long as what was remembered of them; `where` they are is for the error.

    Raises
    ------
    LedgerError
        They are shorter.
    """
    for what, has, had in zip(Lengths._fields, now, remembered, strict=True):
        if has < had:
            raise LedgerError(
                f"{where}: the {what} is older than what was released: {has} of {had}. It was rolled back, or is a "
                "copy; put the newest one in its place"
            )


async def recalled(place: SecondPlace, shard: str) -> Lengths:
    """What the second place remembers of a shard. Raises LinkError, LedgerError; ShardError: nothing."""
    remembered = await place.read(shard)
    if remembered is None:
        raise ShardError(
            f"shard {shard}: the second place knows nothing of it; `eyestream shard --new` makes both, and one that "
            "was lost must be put back"
        )
    return remembered


class FilePlace:
    """A second place in a file, on another disk than the ledger; one ledger a file.

    Raises
    ------
    LedgerError
        Missing, in use, not writable, or open to others.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._file = path, LedgerFile(path)
        self._held = b"".join(self._file.pieces())
        self._bytes = len(self._held)

    @staticmethod
    def create(path: Path) -> None:
        """Make one that knows nothing. Raises LedgerError."""
        create_file(path, b"")

    def close(self) -> None:
        """Give the file and its lock up."""
        self._file.close()

    async def read(self, ledger: str) -> Lengths | None:
        """As `SecondPlace`, without waiting for the loop."""
        return self.recall(ledger)

    async def write(self, ledger: str, lengths: Lengths) -> None:
        """As `SecondPlace`, without waiting for the loop."""
        self.remember(ledger, lengths)

    def recall(self, ledger: str) -> Lengths | None:
        """What was written last when the file was opened. Under a record that is torn nothing was published."""
        held = self._held[: len(self._held) // _RECORD.size * _RECORD.size]
        records = list(_RECORD.iter_unpack(held))
        whole = [Lengths(one[1], one[2]) for one in records if one[0] == _name(ledger) and one[3] == _digest(one)]
        if not whole and self._held:
            raise LedgerError(f"{self._path}: is the second place of another ledger, or is damaged")
        return whole[-1] if whole else None

    def remember(self, ledger: str, lengths: Lengths) -> None:
        """Write, durably. Raises LedgerError."""
        fields = (_name(ledger), *lengths)
        record = _RECORD.pack(*fields, _digest(fields))
        try:
            if self._bytes % _RECORD.size or self._bytes > _MOST_BYTES:
                self._file.replace(self._file.prepare(record))
                self._bytes = len(record)
            else:
                self._file.append(record)
                self._file.sync()
                self._bytes += len(record)
        except OSError as error:
            raise LedgerError(f"{self._path}: cannot be written durably: {os.strerror(error.errno or 0)}") from None


class GuardedLedger:
    """A sidecar's ledger beside a second place, which learns of each reservation before anything is released under it.

    Parameters
    ----------
    ledger
        Open.
    place
        Open, and of this ledger.

    Raises
    ------
    LedgerError
        The ledger is older than the second place remembers; or the second place knows nothing of it.
    """

    def __init__(self, ledger: Ledger, place: FilePlace) -> None:
        self._ledger, self._place = ledger, place
        self._name, self._released = ledger_name(ledger.header.ledger_id), ledger.released
        remembered = place.recall(self._name)
        if remembered is None:
            raise LedgerError(f"[sidecar] second_place: knows nothing of the ledger; {_ACCEPT}")
        try:
            refuse_shorter("[sidecar] ledger", Lengths(self._released, 0), remembered)
        except LedgerError as error:
            raise LedgerError(f"{error}. If it is lost, {_ACCEPT}") from None

    def mark(self, key: StreamKey) -> RowMark | None:
        """As `Ledger.mark`."""
        return self._ledger.mark(key)

    def odometer(self, device: str) -> Odometer | None:
        """As `Ledger.odometer`."""
        return self._ledger.odometer(device)

    def reserve(self, requests: Sequence[Request], day: int) -> list[Granted | Withheld]:
        """As `Ledger.reserve`. A second place that cannot be written is a ledger that cannot."""
        answers = self._ledger.reserve(requests, day)
        granted = sum(isinstance(one, Granted) and one.spent is not None for one in answers)
        if granted:
            self._released += granted
            self._place.remember(self._name, Lengths(self._released, 0))
        return answers


_ACCEPT = "`eyestream budget --config FILE --accept` makes the ledger that is there the one to go on from"


@contextmanager
def guarded(ledger: Ledger, path: Path) -> Iterator[GuardedLedger]:
    """`ledger` beside the second place at `path`. Raises LedgerError as `GuardedLedger` and `FilePlace`."""
    if not path.exists():
        raise LedgerError(f"[sidecar] second_place: there is no file {path}; {_ACCEPT}")
    with closing(FilePlace(path)) as place:
        yield GuardedLedger(ledger, place)


def accept(ledger: Ledger, path: Path) -> tuple[int, int]:
    """Let the second place at `path` remember `ledger` as it is; it is made where there is none.

    Returns
    -------
    tuple
        Chunks that it remembered until now, and those that it remembers from now on.

    Raises
    ------
    LedgerError
        It is the second place of another ledger, or cannot be written.
    """
    if not path.exists():
        FilePlace.create(path)
    with closing(FilePlace(path)) as place:
        name = ledger_name(ledger.header.ledger_id)
        had, now = place.recall(name) or Lengths(0, 0), Lengths(ledger.released, 0)
        place.remember(name, now)
        return had.ledger, now.ledger


def _name(ledger: str) -> bytes:
    return hashlib.blake2b(ledger.encode(), digest_size=16).digest()


def _digest(fields: tuple[bytes, int, int] | tuple[bytes, int, int, bytes]) -> bytes:
    name, ledger, outbox = fields[:3]
    return hashlib.blake2b(name + struct.pack("<QQ", ledger, outbox), digest_size=16).digest()
