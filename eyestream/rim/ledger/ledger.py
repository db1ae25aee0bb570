"""The durable ledger: what was spent, and which rows are gone for ever, for all devices of one process.

**Order.** `Ledger.reserve` returns a `Granted` only after `fdatasync`; noise is bound to a chunk, and its release
published, only under a reservation. Reserve when a chunk opens or falls due unopened: the disk is then off the path of
the release. A block is one chunk, so a crash wastes at most one chunk a device; what is reserved in one call shares one
`fdatasync`, so a thousand devices cost little more than one.

**Restart.** Every row up to the last reserved one is refused for ever, and its epsilon is spent.

**Failure.** A write or `fdatasync` that fails ends the ledger's life in this process at once: it is never retried, as
the kernel may have dropped the pages (PostgreSQL's "fsyncgate", 2018). So does an interruption in the middle of a call.

**Withheld slots** are written but not waited for: losing one makes the window move later, never earlier
(`eyestream.privacy.accountant`).

**Size.** 64 bytes a chunk: 115 kB for eight hours of 16 s chunks, 42 MB for a year of such days. Nothing is compacted:
rewriting the one file that must not lose anything would be the riskiest thing done to it.

**Limit.** An older copy of the file put back in place, or its end cut off, cannot be noticed from the file alone; what
is cut out of its middle, moved or put in is, and the ledger is refused. Who can write the ledger can reset the budget:
keep it where only the sidecar's user can.
"""

import os
import secrets
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

from eyestream.errors import LedgerError
from eyestream.privacy.accountant import Granted, Odometer, Request, RowMark, Withheld
from eyestream.privacy.charge import Ceilings
from eyestream.rim.ledger.book import MOST_UNSYNCED, Book, Entry
from eyestream.rim.ledger.file import LedgerFile, create_file, read_pieces
from eyestream.rim.ledger.records import (
    LAST_DAY,
    MOST_PIECES,
    RELEASED,
    WITHHELD,
    Header,
    SlotFields,
    check_name,
    mended_body,
    name_bodies,
    slot_body,
    write_header,
)
from eyestream.streams.key import StreamKey

__all__ = ["Ledger", "create_ledger", "look"]

_BATCH = MOST_UNSYNCED // (2 * MOST_PIECES)
_MOST_WAITING = MOST_UNSYNCED // 4


def create_ledger(path: Path, *, chunk: int, window: int, created: int) -> None:
    """Make an empty ledger for chunks of n = `chunk` rows and windows of w = `window` slots (0: none).

    `created` is in seconds since 1970.

    Raises
    ------
    LedgerError
        There is something at `path` already, or it cannot be written.
    """
    create_file(path, write_header(Header(secrets.token_bytes(16), chunk, window, created)))


def look(path: Path) -> tuple[Header, dict[str, Odometer]]:
    """Header and odometers by "device/stream", without a lock: also while a sidecar is at work.

    Raises
    ------
    LedgerError
        Missing or unreadable.
    """
    with _said_of(path):
        book = Book(read_pieces(path))
    return book.header, {name: entry.account.odometer() for name, entry in book.entries.items()}


class Ledger:
    """A ledger in use: `with Ledger(path, chunk=32, ceilings=...) as ledger`.

    Safe to call from several threads; the calls wait for one another.

    Parameters
    ----------
    path
        A file made by `create_ledger`.
    chunk
        n, the rows of a full chunk.
    ceilings
        The budget of every (device, stream).

    Raises
    ------
    LedgerError
        Missing, unreadable, foreign, in use by another process, or not writable.
    """

    def __init__(self, path: Path, *, chunk: int, ceilings: Ceilings) -> None:
        if not 0 < chunk < 2**32:
            raise ValueError("expected a chunk of at least one row")
        self._path, self._chunk, self._ceilings = path, chunk, ceilings
        self._file = LedgerFile(path)
        try:
            with _said_of(path):
                self._book = Book(self._file.pieces())
            self._unsynced = 0
            self._pid = os.getpid()
            self._lock = threading.Lock()
            self._usable = True
            with self._writing():
                self._mend()
        except LedgerError:
            self._file.close()
            raise

    def __enter__(self) -> "Ledger":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Give the file and its lock up."""
        with self._lock:
            self._usable = False
            self._file.close()

    @property
    def header(self) -> Header:
        """What the ledger was made with."""
        return self._book.header

    def lower(self, ceilings: Ceilings) -> None:
        """Let lower ceilings hold from the next reservation on; `ValueError` when one of them is higher."""
        if not ceilings.within(self._ceilings):
            raise ValueError("expected ceilings that are no higher")
        self._ceilings = ceilings

    def mark(self, key: StreamKey) -> RowMark | None:
        """Up to where the rows of the stream are refused for ever; None: it has none."""
        entry = self._book.entries.get(check_name(*key))
        return None if entry is None else entry.account.mark

    def odometer(self, device: str, stream: str) -> Odometer | None:
        """What the device has spent; None: the ledger does not know it."""
        entry = self._book.entries.get(check_name(device, stream))
        return None if entry is None else entry.account.odometer()

    def reserve(self, requests: Sequence[Request], day: int) -> list[Granted | Withheld]:
        """Reserve the chunks that the budget allows; each answer stands at the place of its request.

        Parameters
        ----------
        requests
            In the order in which the chunks fell due.
        day
            Days since 1970, UTC, from the host's clock.

        Raises
        ------
        LedgerError
            The ledger could not be written, now or before, or `day` is no day: none of the requests may be released.
        ValueError
            A request with more rows than a chunk has, or a name that cannot be one. Nothing was recorded.
        """
        for request in requests:
            check_name(*request.key)
            if request.last_row - request.first_row >= self._chunk:
                raise ValueError("expected at most a chunk of rows")
        if day > LAST_DAY:  # days never go back: once written, it would stay the day for ever
            raise LedgerError(f"{self._path}: the host's clock is past every day that a ledger can hold")
        with self._lock, self._writing():
            return [
                answer
                for start in range(0, len(requests), _BATCH)
                for answer in self._reserve(requests[start : start + _BATCH], day)
            ]

    def _reserve(self, requests: Sequence[Request], day: int) -> list[Granted | Withheld]:
        self._introduce(requests)
        answers: list[Granted | Withheld] = []
        bodies: list[bytes] = []
        released = False
        for request in requests:
            entry = self._book.entries[check_name(*request.key)]
            obstacle = entry.account.obstacle(request, self._chunk, self._ceilings, day)
            answers.append(Granted(request) if obstacle is None else Withheld(request, obstacle))
            if obstacle not in {"rows", "change"}:
                bodies.append(self._take(entry, request, obstacle is None, day, self._unsynced + len(bodies)))
            released = released or obstacle is None
        self._append(bodies)
        if released or self._unsynced > _MOST_WAITING:
            self._sync()
        return answers

    def _take(self, entry: Entry, request: Request, released: bool, day: int, unsynced: int) -> bytes:
        """Take the slot in the account, and give the body of its record."""
        account = entry.account
        epsilon, delta = (request.charge.epsilon, request.charge.delta) if released else (0, 0)
        rows, window, day = request.last_row - request.first_row + 1, self._ceilings.window_chunks, account.day_of(day)
        account.take(
            request.session, request.last_row, chunk=self._chunk, window=window, day=day, epsilon=epsilon, delta=delta
        )
        return slot_body(
            SlotFields(
                kind=RELEASED if released else WITHHELD,
                unsynced=unsynced,
                key=entry.key,
                session=request.session,
                first_row=request.first_row,
                rows=rows,
                chunk=self._chunk,
                window=window,
                day=day,
                epsilon=epsilon,
                delta=delta,
            )
        )

    def _introduce(self, requests: Sequence[Request]) -> None:
        """Name the devices that are new, durably: what is torn after this can be counted for them."""
        bodies: list[bytes] = []
        for request in requests:
            name = check_name(*request.key)
            if name not in self._book.entries:
                key, epsilon = self._book.next_key, request.charge.epsilon
                bodies += name_bodies(name, key, epsilon, self._unsynced + len(bodies))
                self._book.add(name, key, epsilon)
        if bodies:
            self._append(bodies)
            self._sync()

    def _mend(self) -> None:
        """Close a torn tail, which has been counted as spent, so that records can follow it."""
        if self._book.padding:
            self._file.append(bytes(self._book.padding))
        if self._book.damaged:
            self._append([mended_body(self._book.damaged)])
        if self._book.padding or self._book.damaged:
            self._sync()

    def _append(self, bodies: list[bytes]) -> None:
        if bodies:
            first, seal = self._book.records, self._book.seal.seal
            self._file.append(b"".join(seal(body, first + i) for i, body in enumerate(bodies)))
            self._book.records += len(bodies)
            self._unsynced += len(bodies)

    def _sync(self) -> None:
        self._file.sync()
        self._unsynced = 0

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Usable again only when the body ran to its end."""
        if not self._usable or os.getpid() != self._pid:
            raise LedgerError(f"{self._path}: the ledger is closed, or failed before; nothing can be reserved any more")
        self._usable = False
        try:
            yield
        except OSError as error:
            raise LedgerError(f"{self._path}: cannot write the ledger durably: {error.strerror}") from None
        self._usable = True


@contextmanager
def _said_of(path: Path) -> Iterator[None]:
    """Put the file's name, and the way out, into what is raised about its contents."""
    try:
        yield
    except LedgerError as error:
        if str(error).startswith(str(path)):
            raise
        raise LedgerError(
            f"{path} {error}; move it away and make a new one with `eyestream budget --new`, "
            "which forgets what was spent and which rows were released"
        ) from None
