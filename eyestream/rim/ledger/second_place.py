"""A second place that remembers how long a ledger was, a shard's outbox, and which life of them is the last one.

Whoever can put an old copy of the ledger back resets the budget, and the file itself cannot show that. So before
anything is published, the lengths of ledger and outbox are written into a second place, with another fate than their
volume: a file on another disk, or a bucket of a fleet. A shard or a sidecar whose files are shorter does not start.

The lengths are those of what is durable. The files may be longer than the second place says: that happens when a
process ends between its disk and the second place. A copy may then be as long, with other bytes. So each life has a
token here too, and a copy that another life has overtaken is refused: `eyestream.rim.ledger.life`.
"""

import hashlib
import os
import secrets
import struct
from abc import ABC, abstractmethod
from pathlib import Path
from typing import NamedTuple, Protocol

from eyestream.errors import LedgerError, LinkError, ShardError
from eyestream.rim.ledger.file import LedgerFile, create_file, read_pieces

__all__ = [
    "FilePlace",
    "Lengths",
    "Remembered",
    "RevisedPlace",
    "SecondPlace",
    "recalled",
    "refuse_shorter",
]


class Lengths(NamedTuple):
    """`Ledger.released`, and the steps of the outbox. They never fall below what a second place was told, unless a file
    is older or damaged; a start alone raises neither.
    """

    ledger: int
    outbox: int


class Remembered(NamedTuple):
    """What a second place holds of a ledger."""

    lengths: Lengths
    life: str = ""
    """The token of the life that wrote last, 32 hexadecimal digits; empty: no life had one yet."""


class SecondPlace(Protocol):
    """Remembers by the name of a ledger. An object of this kind serves one process, and one call at a time."""

    async def read(self, ledger: str) -> Remembered | None:
        """What was written last; None: nothing. Raises LinkError, LedgerError or ShardError."""
        ...

    async def write(self, ledger: str, remembered: Remembered) -> None:
        """Remember, durably before it returns, if nobody else wrote since this object has read or written.

        Raises
        ------
        LinkError
            It may be written or not, now or later. Call again, with the same or with what is true by then.
        LedgerError, ShardError
            Somebody else wrote, or it cannot be written. Nothing may be published any more.
        """
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


async def recalled(place: SecondPlace, shard: str) -> Remembered:
    """What the second place remembers of a shard. Raises LinkError, LedgerError; ShardError: nothing."""
    remembered = await place.read(shard)
    if remembered is None:
        raise ShardError(
            f"shard {shard}: the second place knows nothing of it; `eyestream shard --new` makes both, and one that "
            "was lost must be put back, or, if this is the newest copy of the shard, made by `eyestream shard --accept`"
        )
    return remembered


class RevisedPlace(ABC):
    """A second place in a store whose values have revisions, of which a new one can be made a condition.

    **A lost answer** leaves open whether a value was written, or will be once it has travelled. Then the next writing
    finds another revision than it names, and reads. What it finds is its own only if it is, bit for bit, what this
    object tried: each try has a stamp of 64 random bits, since a snapshot of a whole machine has two processes with one
    token. What travels still names a revision that is gone, and fails.
    """

    def __init__(self) -> None:
        self._revision = 0
        self._tried: dict[Remembered, bytes] = {}

    @abstractmethod
    async def _get(self, ledger: str) -> tuple[int, bytes] | None:
        """The newest revision and its value; None: there is none. Raises LinkError."""

    @abstractmethod
    async def _set(self, ledger: str, value: bytes, last: int) -> int | None:
        """Write durably if the newest revision is `last` (0: none), and give the new one; None: it is another.

        Raises LinkError: it may be written or not, now or later.
        """

    async def read(self, ledger: str) -> Remembered | None:
        """As `SecondPlace`."""
        self._tried.clear()
        held = await self._get(ledger)
        self._revision = 0 if held is None else held[0]
        return None if held is None else _unpacked(ledger, held[1])

    async def write(self, ledger: str, remembered: Remembered) -> None:
        """As `SecondPlace`."""
        if remembered not in self._tried:
            self._tried[remembered] = _packed(remembered)
        revision = await self._set(ledger, self._tried[remembered], self._revision)
        if revision is not None:
            self._revision = revision
            self._tried.clear()
            return
        held = await self._get(ledger)
        if held is not None and held[1] in self._tried.values():
            self._revision = held[0]
            self._tried.clear()
        elif held is None or held[0] > self._revision:
            raise ShardError(f"shard {ledger}: another worker is at work on a copy of it; stop one of them")
        raise LinkError("the answer of the second place was lost")  # or a server that is behind has answered


def _packed(remembered: Remembered) -> bytes:
    return b"life %s %d %d %s" % (
        remembered.life.encode(),
        *remembered.lengths,
        secrets.token_hex(8).encode(),
    )


def _unpacked(ledger: str, value: bytes) -> Remembered:
    """Of this form, or of that before lives had tokens: two lengths, and a word."""
    try:
        match value.split(b" "):
            case [b"life", life, has, steps, _]:
                return Remembered(Lengths(int(has), int(steps)), life.decode())
            case [has, steps, _]:
                return Remembered(Lengths(int(has), int(steps)))
    except ValueError:
        pass
    raise ShardError(f"shard {ledger}: the second place holds something else")


_OLD_RECORD = struct.Struct("<16sQQ16s")
"""Name, lengths, digest: a file of these alone, without a head, is from before lives had tokens."""

_RECORD = struct.Struct("<16sQQ16s16s")
"""Name, lengths, token (zero: none), digest."""

_HEAD = b"eyestream second place 2\n".ljust(_RECORD.size)
_MOST_BYTES = 1 << 20


class FilePlace:
    """A second place in a file, on another disk than the ledger; one ledger a file.

    Whoever has it open holds its lock, so nobody else writes. Where a lock does not hold, as on some network disks, or
    where another file was put in its place meanwhile, the next writing finds that and is refused.

    Raises
    ------
    LedgerError
        Missing, in use, not writable, or open to others.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._file = path, LedgerFile(path)
        self._held = b"".join(self._file.pieces())
        self._bytes, self._known = len(self._held), False

    @staticmethod
    def create(path: Path) -> None:
        """Make one that knows nothing. Raises LedgerError."""
        create_file(path, b"")

    @staticmethod
    def look(path: Path, ledger: str) -> Remembered | None:
        """What the file at `path` holds, without its lock: for those who only look. Raises LedgerError."""
        return _last_of(path, b"".join(read_pieces(path)), ledger)

    def close(self) -> None:
        """Give the file and its lock up."""
        self._file.close()

    async def read(self, ledger: str) -> Remembered | None:
        """As `SecondPlace`, without waiting for the loop."""
        return self.recall(ledger)

    async def write(self, ledger: str, remembered: Remembered) -> None:
        """As `SecondPlace`, without waiting for the loop."""
        self.remember(ledger, remembered)

    def recall(self, ledger: str) -> Remembered | None:
        """What was written last when the file was opened. Under a record that is torn nothing was published."""
        return _last_of(self._path, self._held, ledger)

    def remember(self, ledger: str, remembered: Remembered) -> None:
        """Write, durably. The first time, the file is written again, and put into place by one `rename`.

        Raises LedgerError: it cannot be written, or somebody else has."""
        fields = (_name(ledger), *remembered.lengths, bytes.fromhex(remembered.life).rjust(16, b"\0"))
        record = _RECORD.pack(*fields, _digest(fields))
        try:
            if not self._file.is_there(self._bytes):
                raise LedgerError(f"{self._path}: somebody else has written the second place, or has replaced it")
            if not self._known or self._bytes > _MOST_BYTES:
                self._file.replace(self._file.prepare(_HEAD + record))
                self._bytes, self._known = len(_HEAD + record), True
            else:
                self._file.append(record)
                self._file.sync()
                self._bytes += len(record)
        except OSError as error:
            self._bytes = -1  # nobody knows what it holds
            raise LedgerError(f"{self._path}: cannot be written durably: {os.strerror(error.errno or 0)}") from None


def _last_of(path: Path, held: bytes, ledger: str) -> Remembered | None:
    """The last whole record of `held`; None: it is empty. Raises LedgerError: there is none."""
    if not held:
        return None
    kind, records = (_RECORD, held[len(_HEAD) :]) if held.startswith(_HEAD) else (_OLD_RECORD, held)
    whole = [
        one
        for one in kind.iter_unpack(records[: len(records) // kind.size * kind.size])
        if one[0] == _name(ledger) and one[-1] == _digest(one[:-1])
    ]
    if not whole:
        raise LedgerError(f"{path}: is the second place of another ledger, or is damaged")
    last = whole[-1]
    life = last[3].hex() if kind is _RECORD and any(last[3]) else ""
    return Remembered(Lengths(last[1], last[2]), life)


def _name(ledger: str) -> bytes:
    return hashlib.blake2b(ledger.encode(), digest_size=16).digest()


def _digest(fields: tuple[bytes, int, int] | tuple[bytes, int, int, bytes]) -> bytes:
    name, ledger, outbox, *life = fields
    return hashlib.blake2b(name + struct.pack("<QQ", ledger, outbox) + b"".join(life), digest_size=16).digest()
