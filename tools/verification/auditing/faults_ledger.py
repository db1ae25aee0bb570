"""Faults of the ledger, the window and the order of things."""

import contextlib
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from auditing.planting import Patch, fault

from eyestream.errors import LedgerError
from eyestream.privacy import charge
from eyestream.rim.ledger import ledger, records
from eyestream.testing.seams import original

# Ledger and window


@fault("spend after publish", "order")
def _() -> list[Patch]:
    collect = original("pipeline collects")

    def unasked(self: Any, line: Any, chunks: Any) -> None:
        for chunk in chunks:
            line.answers[chunk.span] = None
        collect(self, line, chunks)

    return [("pipeline collects", unasked)]


@fault("nothing made durable", "order")
def _() -> list[Patch]:
    return [("LedgerFile.sync", lambda self: None)]


@fault("a withheld chunk is released all the same", "order")
def _() -> list[Patch]:
    settle = original("pipeline settles")

    def generous(self: Any, line: Any, chunk: Any) -> None:
        if chunk.span in line.answers:
            line.answers[chunk.span] = None
        settle(self, line, chunk)

    return [("pipeline settles", generous)]


@fault("what is due at the end is released unreserved", "order")
def _() -> list[Patch]:
    class Granted(dict[Any, Any]):
        def __contains__(self, span: object) -> bool:
            return True

    close = original("Pipeline.close")

    def hasty(self: Any, now: float) -> None:
        for line in self._lines.values():
            line.answers = Granted(line.answers)
        close(self, now)

    return [("Pipeline.close", hasty)]


@fault("one feature's share charged for a chunk", "order")
def _() -> list[Patch]:
    class Share(charge.Charge):
        @classmethod
        def of(cls, epsilon: Any, delta: Any = 0) -> Any:
            return charge.Charge.of(epsilon / 2, delta)

    return [("pipeline charge", Share)]


@fault("a ledger without a lock", "alone")
def _() -> list[Patch]:
    return [("ledger lock", lambda fd, operation: None)]


@fault("a missing ledger made anew", "alone")
def _() -> list[Patch]:
    create = original("Ledger.__init__")

    def making(self: Any, path: Any, **named: Any) -> None:
        if not path.exists():
            ledger.create_ledger(path, created=0)
        create(self, path, **named)

    return [("Ledger.__init__", making)]


def _places(tell: Callable[[int | None, int], int | None]) -> list[Patch]:
    """Of each record, the book is told `tell(place, index)` for the place that its checksum has."""
    read = original("book reads a record")

    class Teller(records.Seal):
        index = 0

        def place(self, record: bytes) -> int | None:
            return tell(super().place(record), self.index)

    def led(self: Any, record: bytes) -> None:
        self.seal = Teller(self.header.ledger_id)
        self.seal.index = self.records
        read(self, record)

    return [("book reads a record", led)]


@fault("damage in the middle of the ledger passed over", "alone")
def _() -> list[Patch]:
    return _places(lambda place, index: index)


@fault("a record cut out of the ledger passed over", "alone")
def _() -> list[Patch]:
    unread = ("book checks the tail", lambda self: None)
    return [*_places(lambda place, index: place if place == index else None), unread]


@fault("a failed fdatasync is tried again", "durable")
def _() -> list[Patch]:
    @contextlib.contextmanager
    def writing(self: Any) -> Iterator[None]:
        try:
            yield
        except OSError:
            raise LedgerError("try again") from None

    return [("ledger writing", writing)]


@fault("a failed fdatasync is passed over", "durable")
def _() -> list[Patch]:
    sync = original("LedgerFile.sync")

    def lenient(self: Any) -> None:
        with contextlib.suppress(OSError):
            sync(self)

    return [("LedgerFile.sync", lenient)]


@fault("a torn record is forgotten", "torn")
def _() -> list[Patch]:
    return [("book counts a torn record", lambda self, record: None)]


@fault("window summed over the wrong span", "window")
def _() -> list[Patch]:
    """w - 1 slots with the new one, instead of w."""
    return [("newest slots", lambda self: sum(list(self._slots)[-self._window + 2 :]))]


def _after_take(change: Callable[[Any, int], None]) -> list[Patch]:
    """Before every slot, `change` is given the account and the session of the slot."""
    take = original("Account.take")
    obstacle = original("Account.obstacle")

    def changed_take(self: Any, number: int, *given: Any, **named: Any) -> None:
        change(self, number)
        take(self, number, *given, **named)

    def changed_obstacle(self: Any, request: Any, *given: Any) -> Any:
        change(self, request.session)
        return obstacle(self, request, *given)

    return [("Account.take", changed_take), ("Account.obstacle", changed_obstacle)]


@fault("window restarting with a session", "window")
def _() -> list[Patch]:
    def restart(self: Any, number: int) -> None:
        if number != self._session:
            self._slots, self._window_epsilon = deque(maxlen=self._window), 0

    return _after_take(restart)


@fault("window restarting with the process", "window")
def _() -> list[Patch]:
    create = original("Ledger.__init__")

    def forgetting(self: Any, *given: Any, **named: Any) -> None:
        create(self, *given, **named)
        for entry in self._book.entries.values():
            entry.account._slots.clear()
            entry.account._window_epsilon = 0

    return [("Ledger.__init__", forgetting)]


@fault("window over row numbers: a gap moves it on", "window")
def _() -> list[Patch]:
    obstacle = original("Account.obstacle")

    def gaps_count(self: Any, request: Any, chunk: int, ceilings: Any, today: int) -> Any:
        if request.session == self._session:
            for _ in range(min((request.first_row - self._last_row - 1) // chunk, self._window)):
                self._window_epsilon = self._newest_slots()
                self._slots.append(0)
        return obstacle(self, request, chunk, ceilings, today)

    return [("Account.obstacle", gaps_count)]


@fault("a day that begins anew when the clock goes back", "window")
def _() -> list[Patch]:
    obstacle = original("Account.obstacle")

    def today_only(self: Any, request: Any, chunk: int, ceilings: Any, today: int) -> Any:
        if today != self._day:
            self._day_epsilon = 0
        return obstacle(self, request, chunk, ceilings, today)

    return [("Account.obstacle", today_only)]


@fault("charges rounded down", "exact")
def _() -> list[Patch]:
    return [("charge units", charge.ceiling_units)]


@fault("ceilings rounded up", "exact")
def _() -> list[Patch]:
    return [("ceiling units", charge.charge_units)]


@fault("charges summed in floats", "exact")
def _() -> list[Patch]:
    obstacle = original("Account.obstacle")

    def in_floats(self: Any, request: Any, chunk: int, ceilings: Any, today: int) -> Any:
        units = charge.EPSILON_UNITS
        total = sum([request.charge.epsilon / units] * (self._session_epsilon // request.charge.epsilon + 1))
        if ceilings.session is not None and total > ceilings.session / units:
            return "session"
        return obstacle(self, request, chunk, ceilings, today)

    return [("Account.obstacle", in_floats)]
