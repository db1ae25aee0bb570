"""Faults of the ledger, the window and the order of things."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from auditing.planting import Patch, fault

from eyestream.privacy import accountant, charge, meter
from eyestream.rim.ledger import book as ledger_book
from eyestream.rim.ledger import file as ledger_file
from eyestream.rim.ledger import ledger
from eyestream.rim.ledger import tail as ledger_tail
from eyestream.rim.ledger.reading import create_ledger
from eyestream.rim.sidecar import pipeline

# Ledger and window


@fault("spend after publish", "order")
def _() -> list[Patch]:
    collect = pipeline.Pipeline._collect

    def unasked(self: Any, line: Any, chunks: Any) -> None:
        for chunk in chunks:
            line.answers[chunk.span] = None
        collect(self, line, chunks)

    return [(pipeline.Pipeline, "_collect", unasked)]


@fault("nothing made durable", "order")
def _() -> list[Patch]:
    return [(ledger_file.LedgerFile, "sync", lambda self: None)]


@fault("a withheld chunk is released all the same", "order")
def _() -> list[Patch]:
    settle = pipeline.Pipeline._settle

    def generous(self: Any, line: Any, chunk: Any) -> None:
        if chunk.span in line.answers:
            line.answers[chunk.span] = None
        settle(self, line, chunk)

    return [(pipeline.Pipeline, "_settle", generous)]


@fault("what is due at the end is released unreserved", "order")
def _() -> list[Patch]:
    class Granted(dict[Any, Any]):
        def __contains__(self, span: object) -> bool:
            return True

    close = pipeline.Pipeline.close

    def hasty(self: Any, now: float) -> None:
        for line in self._lines.values():
            line.answers = Granted(line.answers)
        close(self, now)

    return [(pipeline.Pipeline, "close", hasty)]


@fault("one feature's share charged for a chunk", "order")
def _() -> list[Patch]:
    class Share(charge.Charge):
        @classmethod
        def of(cls, epsilon: Any, delta: Any = 0) -> Any:
            return charge.Charge.of(epsilon / 2, delta)

    return [(pipeline, "Charge", Share)]


@fault("a ledger without a lock", "alone")
def _() -> list[Patch]:
    return [(ledger_file.fcntl, "flock", lambda fd, operation: None)]


@fault("a missing ledger made anew", "alone")
def _() -> list[Patch]:
    create = ledger.Ledger.__init__

    def making(self: Any, path: Any, **named: Any) -> None:
        if not path.exists():
            create_ledger(path, created=0)
        create(self, path, **named)

    return [(ledger.Ledger, "__init__", making)]


def _places(tell: Callable[[int | None, int], int | None]) -> list[Patch]:
    """Of each record, the book is told `tell(place, index)` for the place that its checksum has."""
    admit = ledger_tail.Tail.admit

    class Teller:
        def __init__(self, checksum: Any, index: int) -> None:
            self._checksum, self._index = checksum, index

        def place(self, record: bytes) -> int | None:
            return tell(self._checksum.place(record), self._index)

    def led(self: Any, record: bytes) -> bool:
        checksum = self._checksum
        self._checksum = Teller(checksum, self.records)
        try:
            return admit(self, record)
        finally:
            self._checksum = checksum

    return [(ledger_tail.Tail, "admit", led)]


@fault("damage in the middle of the ledger passed over", "alone")
def _() -> list[Patch]:
    return _places(lambda place, index: index)


@fault("a record cut out of the ledger passed over", "alone")
def _() -> list[Patch]:
    unread = (ledger_tail.Tail, "check_end", lambda self: None)
    return [*_places(lambda place, index: place if place == index else None), unread]


@fault("a failed fdatasync is tried again", "durable")
def _() -> list[Patch]:
    @contextlib.contextmanager
    def writing(self: Any) -> Iterator[None]:
        try:
            yield
        except OSError:
            raise ledger.LedgerError("try again") from None

    return [(ledger.Ledger, "_writing", writing)]


@fault("a failed fdatasync is passed over", "durable")
def _() -> list[Patch]:
    sync = ledger_file.LedgerFile.sync

    def lenient(self: Any) -> None:
        with contextlib.suppress(OSError):
            sync(self)

    return [(ledger_file.LedgerFile, "sync", lenient)]


@fault("a torn record is forgotten", "torn")
def _() -> list[Patch]:
    return [(ledger_book.Book, "_count_as_spent", lambda self, damaged: 0)]


@fault("a damaged record is charged to one device alone", "torn")
def _() -> list[Patch]:
    count = ledger_book.Book._count_as_spent

    def one_alone(self: Any, damaged: int) -> int:
        accounts, self.accounts = self.accounts, dict(list(self.accounts.items())[:1])
        try:
            return count(self, damaged)
        finally:
            self.accounts = accounts

    return [(ledger_book.Book, "_count_as_spent", one_alone)]


@fault("a session is not announced before its first slot", "torn")
def _() -> list[Patch]:
    announcement = accountant.Account.announcement

    def late(self: Any, request: Any, *given: Any, granted: bool) -> Any:
        return announcement(self, request, *given, granted=False)

    return [(accountant.Account, "announcement", late)]


@fault("a rewritten ledger forgets its window and its sum", "rewritten")
def _() -> list[Patch]:
    restored = meter.Meter.restored.__func__  # type: ignore[attr-defined]

    def empty(cls: Any, state: Any) -> Any:
        return restored(cls, state._replace(slots=[], epsilon=0))

    return [(meter.Meter, "restored", classmethod(empty))]


@fault("a rewritten ledger takes its name before its bytes are durable", "rewritten")
def _() -> list[Patch]:
    def hasty(self: Any, data: bytes) -> int:
        fd = ledger_file.os.open(self._beside, ledger_file._NEW_FILE | ledger_file.os.O_APPEND, 0o600)
        ledger_file._write(fd, data)
        return fd

    return [(ledger_file.LedgerFile, "prepare", hasty)]


@fault("every stream has a budget of its own", "window")
def _() -> list[Patch]:
    take = meter.Meter.take

    def beside(self: Any, day: int, epsilon: int, delta: int) -> None:
        take(self, day, epsilon if self.released % 2 else 0, delta)

    return [(meter.Meter, "take", beside)]


@fault("window summed over the wrong span", "window")
def _() -> list[Patch]:
    """w - 1 slots with the new one, instead of w."""

    def short(self: Any) -> int:
        return sum(epsilon for epsilon, _ in list(self._slots)[-self.window + 2 :])

    return [(meter.Meter, "_newest_epsilon", short)]


def _after_take(change: Callable[[Any, int], None]) -> list[Patch]:
    """Before every slot, `change` is given the account and the session of the slot."""
    take = accountant.Account.take
    obstacle = accountant.Account.obstacle

    def changed_take(self: Any, stream: str, number: int, *given: Any, **named: Any) -> None:
        change(self, number)
        take(self, stream, number, *given, **named)

    def changed_obstacle(self: Any, request: Any, *given: Any) -> Any:
        change(self, request.session)
        return obstacle(self, request, *given)

    return [(accountant.Account, "take", changed_take), (accountant.Account, "obstacle", changed_obstacle)]


@fault("window restarting with a session", "window")
def _() -> list[Patch]:
    def restart(self: Any, number: int) -> None:
        if all(number != stream.session for stream in self._streams.values()):
            self._meter.turn(self._meter.window, self._meter.wait)

    return _after_take(restart)


@fault("window restarting with the process", "window")
def _() -> list[Patch]:
    create = ledger.Ledger.__init__

    def forgetting(self: Any, *given: Any, **named: Any) -> None:
        create(self, *given, **named)
        for account in self._book.accounts.values():
            account._meter.turn(account._meter.window, account._meter.wait)

    return [(ledger.Ledger, "__init__", forgetting)]


@fault("window over row numbers: a gap moves it on", "window")
def _() -> list[Patch]:
    obstacle = accountant.Account.obstacle

    def gaps_count(self: Any, request: Any, *given: Any) -> Any:
        known = self._streams.get(request.key.stream)
        if known is not None and request.session == known.session:
            for _ in range(min((request.first_row - known.last_row - 1) // request.chunk, self._meter.window)):
                self._meter.take(self._meter.day, 0, 0)
        return obstacle(self, request, *given)

    return [(accountant.Account, "obstacle", gaps_count)]


@fault("a day that begins anew when the clock goes back", "window")
def _() -> list[Patch]:
    obstacle = accountant.Account.obstacle

    def today_only(self: Any, request: Any, ceilings: Any, today: int, *given: Any) -> Any:
        if today != self.day:
            self._meter.day_epsilon = 0
        return obstacle(self, request, ceilings, today, *given)

    return [(accountant.Account, "obstacle", today_only)]


@fault("charges rounded down", "exact")
def _() -> list[Patch]:
    return [(charge, "charge_units", charge.ceiling_units)]


@fault("the decimal of a float charged, not the float", "exact")
def _() -> list[Patch]:
    right = charge.charge_units
    return [(charge, "charge_units", lambda value, *units: right(charge._written(value), *units))]


@fault("ceilings rounded up", "exact")
def _() -> list[Patch]:
    return [(charge, "ceiling_units", charge.charge_units)]


@fault("charges summed in floats", "exact")
def _() -> list[Patch]:
    obstacle = accountant.Account.obstacle

    def in_floats(self: Any, request: Any, ceilings: Any, *given: Any) -> Any:
        units = charge.EPSILON_UNITS
        total = sum([request.charge.epsilon / units] * (self._session_epsilon // request.charge.epsilon + 1))
        if ceilings.session is not None and total > ceilings.session / units:
            return "session"
        return obstacle(self, request, ceilings, *given)

    return [(accountant.Account, "obstacle", in_floats)]
