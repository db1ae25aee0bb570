"""The outbox of a shard: released bytes, durable before they are published, and from where the log is read again.

**Order.** `append` returns after `fdatasync`; only then may what it holds be published. What was published and is in
the outbox is sent again with the same bytes. What is reserved and not in it has not left, and is computed under the
same reservation.

**Opening** writes the file again, and puts it durably into place by one `rename`: a page that a failed `fdatasync` has
left in memory alone would otherwise be read, published, and lost with the power.

**Damage.** The last append may be torn. It may also have been published, and damaged by the disk afterwards. A second
place knows which: it is told how many frames there are before any of the last one is published. A file with fewer is
refused. With as many, a frame that cannot be read was never sent, and what it held is computed again under its
reservation. Without a second place nobody can tell. Then all that was reserved and is not in the frames before is given
up: it counts as spent and is never computed again. Nothing leaves twice, and such a chunk may be lost.

**Failure.** A write or `fdatasync` that fails ends the outbox's life in this process; it is never retried.
"""

from collections.abc import Iterable
from pathlib import Path

from eyestream.errors import ShardError
from eyestream.rim.ledger.file import LedgerFile, create_file
from eyestream_fleet.frames import Contents, ReleasedChunk, Step, pack, unpack

_TOO_LONG = 1 << 26
"""Bytes after the last rewriting from which on the file is written again."""


def create_outbox(path: Path, contents: Contents) -> None:
    """Make an outbox that holds nothing. Raises LedgerError when there is one, or it cannot be written."""
    create_file(path, pack(contents)[0])


class DurableOutbox:
    """An outbox in use, of a file made by `create_outbox`, held by this process alone.

    Attributes
    ----------
    contents : what it holds.
    torn : bytes at the end that could not be read; `begin` is given what they may have had, unless a second place shows
        that they were never sent.

    Raises
    ------
    LedgerError
        As `LedgerFile`.
    ShardError
        It is no outbox.
    """

    def __init__(self, path: Path) -> None:
        self._file = LedgerFile(path)
        try:
            self.contents, self._digest, self.torn = unpack(b"".join(self._file.pieces()))
        except ShardError as error:
            self._file.close()
            raise ShardError(f"{path} {error}") from None
        self._acknowledged: list[str] = []
        self._bytes = 0
        self._usable = False

    def close(self) -> None:
        """Give the file and its lock up."""
        self._usable = False
        self._file.close()

    def begin(self, given_up: dict[str, tuple[int, int]]) -> None:
        """Write the file again, with what is given up from now on; raises OSError. Before it nothing is appended."""
        self.contents.given_up |= given_up
        self._rewrite()
        self.torn = 0

    def append(self, step: Step) -> None:
        """Take `step`, durably. Raises OSError: nobody knows what the file holds, and nothing can be appended."""
        if not self._usable:
            raise OSError(0, "the outbox is closed, or failed before")
        self._usable = False
        frame, digest = pack(step, self._digest)
        self._file.append(frame)
        self._file.sync()
        step.apply(self.contents)
        self._acknowledged = self._acknowledged[len(step.acknowledged) :]
        self._digest, self._usable = digest, True
        self._bytes += len(frame)
        if self._bytes > _TOO_LONG:
            self._usable = False
            self._rewrite()

    @property
    def acknowledged(self) -> list[str]:
        """Ids of chunks that the log has, for the next step."""
        return list(self._acknowledged)

    def acknowledge(self, chunks: Iterable[ReleasedChunk]) -> None:
        """The log has them. The file learns that with the next step; until then a new life sends them again."""
        self._acknowledged += [chunk.id for chunk in chunks]

    def _rewrite(self) -> None:
        self.contents.forget(self._acknowledged)
        data, digest = pack(self.contents)
        self._file.replace(self._file.prepare(data))
        self._acknowledged, self._digest, self._bytes, self._usable = [], digest, 0, True
