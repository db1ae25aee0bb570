"""The durable ledger: what was spent, and which rows are gone for ever, for all devices of one process.

`Ledger.reserve` returns a `Granted` only after `fdatasync`. Noise is drawn, and a release published, only under a
grant. LEDGER.md says what a restart, a failure and a wrong clock do (section 1).
"""

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Self

from eyestream.core.charge import Ceilings, Charge
from eyestream.core.meter import Odometer
from eyestream.core.reservation import NO_SLOT, Granted, Request, RowMark, Withheld
from eyestream.errors import ConfigError, LedgerError
from eyestream.rim.ledger import records
from eyestream.rim.ledger.book import Book
from eyestream.rim.ledger.records import LAST_DAY, Header, check_name
from eyestream.rim.ledger.writer import Writer
from eyestream.streams import StreamKey

if TYPE_CHECKING:
    from eyestream.rim.ledger.seal import Seal

SPARE_DAYS = 3
"""Days that may be opened at once: today, tomorrow when it begins soon, and one after a clock that was wrong."""

_SECONDS_A_DAY = 86_400


def passed() -> float:
    """Seconds since the host was booted, those that it slept too where the system counts them."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


class Pace:
    """Lets one day be opened for each day that passes, and at most `SPARE_DAYS` at once.

    So in any T days of one life at most SPARE_DAYS + T are opened, whatever the host's clock shows. A clock that is
    right opens one as the life begins, perhaps one soon after, and then one a day: it never waits.

    Parameters
    ----------
    passed
        Seconds from any beginning, which nobody sets.

    >>> pace = Pace(lambda: 0.0)
    >>> [pace.open_one() for _ in range(4)]
    [True, True, True, False]
    """

    def __init__(self, passed: Callable[[], float]) -> None:
        self._passed, self._at, self._spare = passed, passed(), float(SPARE_DAYS)

    def open_one(self) -> bool:
        """Whether one more may be opened now; then it counts as opened."""
        now = self._passed()
        self._spare = min(SPARE_DAYS, self._spare + (now - self._at) / _SECONDS_A_DAY)
        self._at = now
        if self._spare < 1:
            return False
        self._spare -= 1
        return True


_LOG = logging.getLogger("eyestream.ledger")

_BATCH = 64
"""Requests whose records are appended, and made durable, together: one page."""


class Ledger:
    """A ledger in use: `with Ledger(path, ceilings=...) as ledger`.

    Safe to call from several threads; the calls wait for one another.

    Parameters
    ----------
    path
        A file made by `create_ledger`.
    ceilings
        The budget of every device, over all its streams, of single streams beneath, and of each of its wearers.
    suffices
        As for `Book`, from a caller that has asked a second place; without one a damaged end counts as spent.
    passed
        As for `Pace`.
    seal
        With which the file is sealed; a plain one is sealed as it is opened.

    Raises
    ------
    LedgerError
        Missing, unreadable, sealed with another key, foreign, in use by another process, not writable, open to others.
    """

    def __init__(
        self,
        path: Path,
        *,
        ceilings: Ceilings,
        suffices: Callable[[Book], bool] = lambda book: False,
        passed: Callable[[], float] = passed,
        seal: "Seal | None" = None,
    ) -> None:
        self._path, self._ceilings = path, ceilings
        self._lock = threading.Lock()
        self._pid, self._usable = os.getpid(), True
        self._pace, self._day, self._clock_fault = Pace(passed), 0, ""
        self._writer = Writer(path, suffices, seal)
        self._book = self._writer.book
        with ExitStack() as stack:
            stack.callback(self._writer.close)
            with self._lock, self._writing():
                self._writer.settle_in()
            stack.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Give the file and its lock up."""
        with self._lock:
            self._usable = False
            self._writer.close()

    @property
    def header(self) -> Header:
        """Fields at the beginning of the file."""
        with self._lock:
            return self._book.header

    @property
    def released(self) -> int:
        """Chunks that were reserved for a release, of all devices: a ledger with fewer is older, or damaged."""
        with self._lock:
            return self._book.released

    @property
    def keys(self) -> list[StreamKey]:
        """Every stream that it knows."""
        with self._lock:
            return list(self._book.streams)

    def lower(self, ceilings: Ceilings) -> None:
        """Let lower ceilings hold from the next reservation on; `ValueError` when one of them is higher."""
        with self._lock:
            if raised := ceilings.raised_over(self._ceilings):
                raise ValueError(f"expected ceilings that are no higher, found {', '.join(raised)}")
            self._ceilings = ceilings

    def mark(self, key: StreamKey) -> RowMark | None:
        """Up to where the rows of the stream are refused for ever; None: it has none."""
        with self._lock:
            return self._book.mark(check_name(key))

    def odometer(self, device: str) -> Odometer | None:
        """Sums that the device has spent, over all streams and in each; None: the ledger does not know it."""
        with self._lock:
            account = self._book.accounts.get(device)
            return None if account is None else account.odometer()

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
            The ledger could not be written, now or before: none of the requests may be released.
        ValueError
            A name that cannot be one. Nothing was recorded.
        """
        for request in requests:
            check_name(request.key)
        with self._lock:
            if any(request.key.device in self._book.exported for request in requests):
                raise ValueError("expected devices that were not moved to another ledger")
            with self._writing():
                day = self._day_of(min(day, LAST_DAY))
                answers: list[Granted | Withheld] = []
                for start in range(0, len(requests), _BATCH):
                    answers += [self._answer(request, day) for request in requests[start : start + _BATCH]]
                    self._writer.flush()  # durable from here on: only now may an answer be given
                self._writer.shorten()
                return answers

    def melt(self) -> None:
        """Keep sums alone: no record of a slot, and of no wearer the day before the device's last. Raises LedgerError.

        The sums are what they were, of each wearer too.
        """
        with self._lock, self._writing():
            self._writer.rewrite()

    def keep_damage(self) -> None:
        """Put what damaged records were charged into the snapshot, whose own damage is refused. Raises LedgerError."""
        with self._lock:
            if self._book.unreadable:
                with self._writing():
                    self._writer.rewrite()

    def refuse_moved(self, device: str, where: str) -> None:
        """Raise ConfigError when the device was moved to another ledger; `where` is the key or option that names it."""
        with self._lock:
            if device in self._book.exported:
                raise ConfigError(f"{where} {device}: was moved to another ledger (eyestream budget --export)")

    def former_ledgers(self, device: str) -> tuple[str, ...]:
        """Names of the ledgers that the device was exported from, in order: nothing of it is granted there any more."""
        with self._lock:
            return self._book.former_ledgers.get(device, ())

    def settle(self, key: StreamKey, span: RowMark, reference: int) -> None:
        """Note that the bytes of the reserved chunk that ends at `span` lie durably in the outbox, at `reference`.

        Not waited for: the outbox tells. Raises LedgerError; KeyError for an unknown stream.
        """
        with self._lock:
            known = self._book.streams[check_name(key)]
            with self._writing():
                what = records.SettledFields(span.session, span.last_row, reference)
                self._writer.append([records.settled_body(known.number, what)])
                known.settle(span.session, span.last_row)
                self._writer.flush()

    def unsettled(self, key: StreamKey) -> list[Request]:
        """Requests that were reserved for the outbox and not settled, oldest first.

        After a crash, send the bytes of those that the outbox has. Of the others nothing has left: each may be computed
        once more under the same reservation.
        """
        with self._lock:
            known = self._book.streams.get(check_name(key))
            return [
                Request(key, s.session, s.first_row, s.last_row, s.chunk, Charge(s.epsilon, s.delta), s.wearer, True)
                for s in (() if known is None else known.unsettled)
            ]

    def _day_of(self, today: int) -> int:
        """The day that counts when the host's clock says `today`, open from now on."""
        days = self._book.days
        day, last, fault = days.of(today), days.last, ""
        if today < last:
            fault = f"{last - today} days behind the ledger's last day, and chunks count for that day"
        elif not days.opened(day) and not self._pace.open_one():
            day = days.of(self._day)
            fault = "not believed any more: it has called more days today than have passed, and chunks count for one"
        elif last and not days.opened(day - 1):
            fault = f"{day - last} days ahead of the ledger's last day, and chunks count for a day of their own"
        if fault != self._clock_fault and fault:
            _LOG.warning("%s: the host's clock is %s. If it is wrong, set it", self._path, fault)
        self._clock_fault, self._day = fault, day
        days.open(day)
        return day

    def _answer(self, request: Request, day: int) -> Granted | Withheld:
        """Take the slot in the account, and hand its record to the writer."""
        writer, own = self._writer, self._ceilings.beneath(request.key.stream)
        known = writer.stream(request.key)
        account = known.account
        obstacle = account.obstacle(request, self._ceilings, day, own)
        if obstacle in NO_SLOT:
            return Withheld(request, obstacle)
        announced = account.announcement(request, self._ceilings, own, granted=obstacle is None)
        if announced is not None:
            writer.announce(known, announced, request.wearer)
        granted = Granted(request, account.level(request, self._ceilings))
        writer.take_slot(known, request, day, granted.spent if obstacle is None else None)
        return granted if obstacle is None else Withheld(request, obstacle)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Usable again only when the body ran to its end."""
        if not self._usable or os.getpid() != self._pid:
            raise LedgerError(f"{self._path}: the ledger is closed, or failed before; nothing can be reserved any more")
        # Set back at the end alone, not in a `finally`: after a failed sync nobody knows what the disk has, and
        # after an interruption in the middle of a write the book and the file may differ.
        self._usable = False
        try:
            yield
        except OSError as error:
            raise LedgerError(f"{self._path}: cannot write the ledger durably: {error.strerror}") from None
        self._usable = True
