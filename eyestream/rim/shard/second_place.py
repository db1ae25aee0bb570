"""A second place that remembers how long the files of a shard were, so that older copies of them are refused.

Whoever can put an old copy of the ledger back resets the budget, and the file itself cannot show that. So before
anything is published, the lengths of ledger and outbox are written into a second place, with another fate than the
shard's volume: a file on another disk, or a bucket of a fleet. A shard whose files are shorter does not start.

The lengths are those of what is durable. A shard's files may be longer than the second place says: that happens when it
ends between its disk and the second place.
"""

import hashlib
import os
import struct
from pathlib import Path
from typing import NamedTuple, Protocol

from eyestream.errors import LedgerError, ShardError
from eyestream.rim.ledger.file import LedgerFile, create_file

__all__ = ["FilePlace", "Lengths", "SecondPlace", "refuse_shorter"]

_RECORD = struct.Struct("<16sQQ16s")
_MOST_BYTES = 1 << 20


class Lengths(NamedTuple):
    """Numbers that never fall: `Ledger.released`, and the steps of the outbox. A start alone raises neither."""

    ledger: int
    outbox: int


class SecondPlace(Protocol):
    """Remembers lengths by the name of a shard, which is that of its ledger."""

    async def read(self, shard: str) -> Lengths | None:
        """What was written last; None: nothing. Raises LinkError or LedgerError."""
        ...

    async def write(self, shard: str, lengths: Lengths) -> None:
        """Remember, durably before it returns. Raises LinkError or LedgerError."""
        ...


def refuse_shorter(shard: str, now: Lengths, remembered: Lengths | None) -> None:
    """Let pass files that are at least as long as what was remembered of them.

    Raises
    ------
    ShardError
        They are shorter; or nothing is remembered.
    """
    if remembered is None:
        raise ShardError(
            f"shard {shard}: the second place knows nothing of it; `eyestream shard --new` makes both, and one that "
            "was lost must be put back"
        )
    for what, has, had in zip(Lengths._fields, now, remembered, strict=True):
        if has < had:
            raise ShardError(
                f"shard {shard}: its {what} is older than what was released: {has} of {had}. It was rolled back, or is "
                "a copy; put the newest one in its place"
            )


class FilePlace:
    """A second place in a file, on another disk than the shard; one shard a file.

    Raises
    ------
    LedgerError
        Missing, in use, not writable, or writable for others.
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

    async def read(self, shard: str) -> Lengths | None:
        """What there was when the file was opened. Under a record that is torn nothing was published."""
        held = self._held[: len(self._held) // _RECORD.size * _RECORD.size]
        records = list(_RECORD.iter_unpack(held))
        whole = [Lengths(one[1], one[2]) for one in records if one[0] == _name(shard) and one[3] == _digest(one)]
        if not whole and self._held:
            raise ShardError(f"{self._path}: is the second place of another shard, or is damaged")
        return max(whole, default=None)

    async def write(self, shard: str, lengths: Lengths) -> None:
        """As `SecondPlace`."""
        fields = (_name(shard), *lengths)
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


def _name(shard: str) -> bytes:
    return hashlib.blake2b(shard.encode(), digest_size=16).digest()


def _digest(fields: tuple[bytes, int, int] | tuple[bytes, int, int, bytes]) -> bytes:
    name, ledger, outbox = fields[:3]
    return hashlib.blake2b(name + struct.pack("<QQ", ledger, outbox), digest_size=16).digest()
