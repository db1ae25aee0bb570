"""Faults of the ledger and the budget."""

import contextlib
from collections.abc import Iterator
from typing import Any
from unittest import mock

from eyestream.core import charge
from eyestream.core.accountant import Account
from eyestream.errors import LedgerError
from eyestream.rim.ledger.reading import create_ledger
from tests.rigs.seams import original
from tools.verification.auditing.planting import Patch, fault

# The file


@fault("a ledger without a lock", "alone")
def _() -> list[Patch]:
    return [("ledger lock", lambda fd, operation: None)]


@fault("a missing ledger made anew", "alone")
def _() -> list[Patch]:
    create = original("Ledger.__init__")

    def making(self: Any, path: Any, **named: Any) -> None:
        if not path.exists():
            create_ledger(path, created=0)
        create(self, path, **named)

    return [("Ledger.__init__", making)]


@fault("damage in the middle of the ledger passed over", "alone")
def _() -> list[Patch]:
    admit = original("tail admits a record")

    def forgiving(self: Any, record: bytes) -> Any:
        self._first_damaged = None
        return admit(self, record)

    return [("tail admits a record", forgiving)]


@fault("a record cut out of the ledger passed over", "alone")
def _() -> list[Patch]:
    """As with checksums that do not know their place."""
    admit = original("tail admits a record")

    def anywhere(self: Any, record: bytes) -> Any:
        index, place = self.records, self._checksum.place

        def here(record: bytes) -> int | None:
            return None if place(record) is None else index

        with mock.patch.object(self._checksum, "place", here):
            return admit(self, record)

    return [("tail admits a record", anywhere)]


@fault("a ledger that everybody can write", "alone")
def _() -> list[Patch]:
    return [("ledger rights", lambda path, fd: None)]


@fault("a clock that jumps opens as many days as it calls", "alone")
def _() -> list[Patch]:
    return [("ledger looks at the day", lambda self, today: today)]


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
    return [("book counts the damaged", lambda self, damaged: 0)]


@fault("a damaged record charges one device alone", "torn")
def _() -> list[Patch]:
    """The first one, as a record whose number of a stream is believed, and reads 0."""

    def first(self: Any, damaged: int) -> int:
        if damaged and self.accounts:
            next(iter(self.accounts.values())).take_unreadable(damaged)
        return 0

    return [("book counts the damaged", first)]


@fault("a damaged record counts for nothing known", "torn")
def _() -> list[Patch]:
    """Nothing was announced, so nobody knows what it can have cost."""
    announce = original("ledger announces")

    def unpriced(self: Any, entry: Any, announced: Any, wearer: int) -> None:
        announce(self, entry, announced._replace(epsilon=0), wearer)

    return [("ledger announces", unpriced)]


@fault("a damaged record charges no wearer", "torn")
def _() -> list[Patch]:
    return [("wearers are charged", lambda self, day, epsilon, delta, count: None)]


@fault("a new wearer is not known before the first chunk", "torn")
def _() -> list[Patch]:
    return [("wearers are announced", lambda self, wearer: None)]


@fault("a rewritten ledger has lost who wore the device", "rewritten")
def _() -> list[Patch]:
    return [("Wearers.state", lambda self: [])]


@fault("a rewritten ledger has lost a spend", "rewritten")
def _() -> list[Patch]:
    """The snapshot is taken before the newest slot."""
    state = original("Meter.state")

    def earlier(self: Any) -> Any:
        known = state(self)
        return known._replace(epsilon=known.epsilon - known.slots[-1][1]) if known.slots else known

    return [("Meter.state", earlier)]


@fault("a rewritten ledger begins an empty window", "rewritten")
def _() -> list[Patch]:
    state = original("Meter.state")
    return [("Meter.state", lambda self: state(self)._replace(slots=[]))]


# The budget


@fault("a second stream with a budget of its own", "window")
def _() -> list[Patch]:
    add = original("book adds a stream")

    def apart(self: Any, key: Any) -> Any:
        entry = add(self, key)
        shared, entry.account = entry.account, Account()
        entry.account._streams = shared._streams
        return entry

    return [("book adds a stream", apart)]


@fault("window summed over the wrong span", "window")
def _() -> list[Patch]:
    """w - 1 slots with the new one, instead of w."""
    return [("newest slots", lambda self: sum(slot[0] for slot in list(self._slots)[-self.window + 2 :]))]


def _begin_window(account: Any) -> None:
    """Forget the slots of a device."""
    account._meter.turn(account._meter.window, account._meter.wait)


@fault("window restarting with a session", "window")
def _() -> list[Patch]:
    take, obstacle = original("Account.take"), original("Account.obstacle")

    def changed_take(self: Any, stream: str, session: int, *given: Any, **named: Any) -> None:
        if session != self._streams[stream].session:
            _begin_window(self)
        take(self, stream, session, *given, **named)

    def changed_obstacle(self: Any, request: Any, *given: Any) -> Any:
        known = self._streams.get(request.key.stream)
        if known is not None and request.session != known.session:
            _begin_window(self)
        return obstacle(self, request, *given)

    return [("Account.take", changed_take), ("Account.obstacle", changed_obstacle)]


@fault("window restarting with the process", "window")
def _() -> list[Patch]:
    create = original("Ledger.__init__")

    def forgetting(self: Any, *given: Any, **named: Any) -> None:
        create(self, *given, **named)
        for account in self._book.accounts.values():
            _begin_window(account)

    return [("Ledger.__init__", forgetting)]


@fault("window over row numbers: a gap moves it on", "window")
def _() -> list[Patch]:
    obstacle = original("Account.obstacle")

    def gaps_count(self: Any, request: Any, *given: Any) -> Any:
        known, meter = self._streams.get(request.key.stream), self._meter
        if known is not None and request.session == known.session:
            for _ in range(min((request.first_row - known.last_row - 1) // request.chunk, meter.window)):
                meter.take(meter.day, 0, 0)
        return obstacle(self, request, *given)

    return [("Account.obstacle", gaps_count)]


@fault("a day that begins anew when the clock goes back", "window")
def _() -> list[Patch]:
    """Going back finds no sum of the day, as those of days that are over are not kept."""
    return [("ledger looks at the day", lambda self, today: today)]


@fault("ceilings of a wearer are not looked at", "window")
def _() -> list[Patch]:
    return [("wearers forbid", lambda self, *given: False)]


@fault("a switch mints budget", "window")
def _() -> list[Patch]:
    """Who puts the device on begins with a day and a lifetime of the device of their own."""
    take = original("Account.take")

    def forgetting(self: Any, stream: str, session: int, last_row: int, **named: Any) -> None:
        take(self, stream, session, last_row, **named)
        if named.get("wearer"):
            self._meter.day_epsilon = self._meter.epsilon = 0

    return [("Account.take", forgetting)]


@fault("a wearer's history under another one", "window")
def _() -> list[Patch]:
    """What one wearer spends is charged to the first who is known."""
    charge_wearer = original("Wearers.take")

    def to_the_first(self: Any, wearer: int, *given: Any) -> None:
        charge_wearer(self, next(iter(self._meters), wearer), *given)

    return [("Wearers.take", to_the_first)]


@fault("charges rounded down", "exact")
def _() -> list[Patch]:
    return [("charge units", charge.ceiling_units)]


@fault("ceilings rounded up", "exact")
def _() -> list[Patch]:
    return [("ceiling units", charge.charge_units)]


@fault("charges taken from the shortest decimal", "exact")
def _() -> list[Patch]:
    """Not from the float, which 40 % of all decimals lie below."""
    units_of = original("charge units")

    def shortest(value: Any, units: int = charge.EPSILON_UNITS) -> Any:
        return units_of(charge._written(value), units)

    return [("charge units", shortest)]


@fault("charges summed in floats", "exact")
def _() -> list[Patch]:
    obstacle = original("Account.obstacle")

    def in_floats(self: Any, request: Any, ceilings: Any, *rest: Any) -> Any:
        units, known = charge.EPSILON_UNITS, self._streams.get(request.key.stream)
        before = 0 if known is None else known.session_epsilon // request.charge.epsilon
        total = sum([request.charge.epsilon / units] * (before + 1))
        if ceilings.session is not None and total > ceilings.session / units:
            return "session"
        return obstacle(self, request, ceilings, *rest)

    return [("Account.obstacle", in_floats)]
