"""The host's clock jumps: no day is paid for twice, and days are opened no faster than time passes."""

import random
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from eyestream.core.accountant import Account
from eyestream.core.charge import Ceilings, Charge
from eyestream.core.days import MOST_AHEAD, Days
from eyestream.core.meter import Meter
from eyestream.core.reservation import Granted, Request
from eyestream.rim.ledger import file, writer
from eyestream.rim.ledger.ledger import SPARE_DAYS, Pace
from eyestream.rim.ledger.operating import OperatedLedger
from eyestream.rim.ledger.reading import create_ledger, read_ledger
from eyestream.streams import StreamKey

KEYS = StreamKey("a", "features"), StreamKey("b", "features")
BEGAN, DAY_S, CEILING, WEARERS_CEILING = 20_000, 86_400, 2, 1
JUMPS = (0, 0, 0, 1, 2, 3, 7, 30, 360, 4000)


class Host:
    """A host with a clock that can be set, and a ledger on it whose ceiling of a day is `CEILING` chunks a device.

    `by_day` has what counts for a day, of each stream and of the one wearer of each. When somebody says what day it is,
    what counts for later days counts for that one: nothing more may be granted for it once its ceiling is reached.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.now, self.offset = path, BEGAN * DAY_S + 40_000.0, 0.0
        self.booted = self.now
        create_ledger(path, created=int(self.now))
        self.rows: Counter[StreamKey] = Counter()
        self.by_day: Counter[tuple[StreamKey, int, int]] = Counter()
        self.overspent = False
        self.life: list[tuple[StreamKey, float]] = []
        self.ledger = self._open()

    def _open(self) -> OperatedLedger:
        ceilings = Ceilings(day=CEILING, wearer=Ceilings(day=WEARERS_CEILING))
        return OperatedLedger(self.path, ceilings=ceilings, passed=lambda: self.now - self.booted)

    def restart(self) -> None:
        self.ledger.close()
        self.life = []
        self.ledger = self._open()

    def say_today(self) -> None:
        """`eyestream budget --today`."""
        self.restart()
        self.ledger.begin_day_at(self.shown)
        self.restart()
        for key, wearer, day in [place for place in self.by_day if place[2] > self.shown]:
            self.by_day[key, wearer, self.shown] += self.by_day.pop((key, wearer, day))

    @property
    def shown(self) -> int:
        """The day on the host's clock."""
        return int((self.now + self.offset) // DAY_S)

    def ask(self, key: StreamKey, chunks: int = 1, wearer: int = 0) -> int:
        """How many of so many chunks are granted."""
        granted = 0
        for _ in range(chunks):
            row = self.rows[key] = self.rows[key] + 8
            [answer] = self.ledger.reserve([Request(key, 1, row, row + 7, 8, Charge(1), wearer)], self.shown)
            if isinstance(answer, Granted):
                granted += 1
                odometer = self.ledger.odometer(key.device)
                assert odometer is not None
                for whose, ceiling in {0: CEILING, wearer: WEARERS_CEILING if wearer else CEILING}.items():
                    self.by_day[key, whose, odometer.day] += 1
                    self.overspent |= self.by_day[key, whose, odometer.day] > ceiling
                self.life.append((key, self.now))
        return granted

    def faults(self) -> Iterator[str]:
        """What was granted and should not have been."""
        if self.overspent:
            yield "a day was paid for twice"
        for key in KEYS:
            at = [now for whose, now in self.life if whose == key]
            for first in range(0, len(at), CEILING):
                most = SPARE_DAYS + 1 + MOST_AHEAD + (at[-1] - at[first]) / DAY_S
                if len(at) - first > CEILING * most:
                    yield "more days were opened than have passed"


def any_history(path: Path, random_: random.Random) -> Host:
    """Time passes, the clock is set to anything, the sidecar is started again, and both devices ask for much.

    At any moment somebody says that the clock is right, which it need not be.
    """
    host, calm = Host(path), random_.random() < 0.7
    for _ in range(60):
        event = random_.random() if calm else random_.uniform(0.39, 0.8)
        if event < 0.4:
            host.now += random_.choice((60.0, 3600.0, 30_000.0, 90_000.0))
        elif event < 0.8:
            host.offset = random_.choice((-1, 1, 1)) * random_.choice(JUMPS) * DAY_S + random_.random() * 9000
        elif event < 0.9:
            host.restart()
        elif event < 0.95:
            host.say_today()
        host.ask(random_.choice(KEYS), random_.randint(1, 3), random_.randint(0, 1))
    return host


def toggled(path: Path, random_: random.Random) -> Host:
    """A clock a few days ahead or behind, and somebody who often says that it is right."""
    host = Host(path)
    for _ in range(30):
        host.now += random_.choice((60.0, 60.0, 30_000.0))
        host.offset = random_.choice((-1, 0, 0, 1, 2)) * DAY_S
        if random_.random() < 0.3:
            host.say_today()
        host.ask(random_.choice(KEYS), random_.randint(1, 3), random_.randint(0, 1))
    return host


def moments_ahead(path: Path, random_: random.Random) -> Host:
    """A clock that is right but for at most `MOST_AHEAD` moments of more than a day ahead; in the end it is right."""
    host, moments = Host(path), 0
    for _ in range(12):
        host.now += random_.choice((3600.0, 30_000.0, 86_400.0, 86_400.0, 10 * 86_400.0))
        host.ask(random_.choice(KEYS), 3)
        if moments < MOST_AHEAD and random_.random() < 0.4:
            moments += 1
            host.offset = random_.choice((2, 3, 30, 360, 4000)) * DAY_S
            if random_.random() < 0.5:
                host.restart()
            host.ask(random_.choice(KEYS), 3)
            host.offset = 0.0
            if random_.random() < 0.5:
                host.restart()
    return host


def lives(folder: Path, kind: Callable[[Path, random.Random], Host], seeds: range) -> Iterator[Host]:
    for seed in seeds:
        host = kind(folder / f"ledger-{kind.__name__}-{seed}", random.Random(seed))
        yield host
        host.ledger.close()


def found(folder: Path, count: int) -> Iterator[str]:
    """Every fault that the random histories show."""
    for kind in (any_history, toggled):
        for host in lives(folder, kind, range(count)):
            yield from host.faults()
    for host in lives(folder, moments_ahead, range(count)):
        came = 0
        for _ in range(1 + MOST_AHEAD):  # the days of moments may have come, and be spent
            host.now += 86_400.0
            came = max(came, sum(host.ask(key, CEILING) for key in KEYS))
        if came < 2 * CEILING:
            yield "a moment cost more than its day"


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether the disk keeps it is tried elsewhere."""
    for name in ("_sync_data", "_sync_whole"):
        monkeypatch.setattr(file, name, lambda fd: None)


@pytest.mark.parametrize("count", [40, pytest.param(300, marks=pytest.mark.slow)])
@pytest.mark.parametrize("often", [False, True])
def test_any_history_of_the_clock(tmp_path: Path, count: int, *, often: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if often:  # the file is rewritten all the time: what snapshots say is what records say
        monkeypatch.setattr(writer, "_MANY_RECORDS", 1)
        monkeypatch.setattr(writer, "_TOO_MANY_RECORDS", 5)
    assert list(found(tmp_path, count)) == []


def forgets(turn_to: Any) -> Any:
    def wrong(self: Meter, day: int, last_day: int) -> None:
        turn_to(self, day, last_day)
        self.other_days = ()

    return wrong


def remembers_no_closed_day(begin_day_at: Any) -> Any:
    return lambda self, day, last_day: begin_day_at(self, day, 0)


def forgets_wearers(begin_day_at: Any) -> Any:
    def wrong(self: Account, day: int, last_day: int) -> None:
        begin_day_at(self, day, last_day)
        for meter in self._wearers.meters.values():
            meter.day_epsilon = meter.day_delta = 0

    return wrong


WRONG = {
    "the day is the largest that any clock showed": (
        Days, "of", lambda right: lambda self, today: max(today, self.last, *self.ahead), "a moment cost",
    ),
    "a clock that goes back mints budget": (Meter, "_turn_to", forgets, "a day was paid for twice"),
    "a day that is over is opened again": (Days, "of", lambda right: lambda self, today: today, "a day was paid"),
    "a day that is over is empty when somebody names it": (
        Meter, "begin_day_at", remembers_no_closed_day, "a day was paid for twice",
    ),
    "only the device remembers a day that is over": (
        Account, "begin_day_at", forgets_wearers, "a day was paid for twice",
    ),
    "days are opened as fast as the clock jumps": (
        Pace, "open_one", lambda right: lambda self: True, "more days were opened",
    ),
    "the pace is never made good": (Pace, "open_one", lambda right: lambda self: False, "a moment cost"),
}  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_rule_would_be_seen(tmp_path: Path, wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, name, change, shows = WRONG[wrong]
    monkeypatch.setattr(owner, name, change(getattr(owner, name)))
    assert any(shows in fault for fault in found(tmp_path, 60))


def test_a_day_that_is_over_is_no_new_one_when_somebody_names_it(tmp_path: Path) -> None:
    """The clock was a day ahead for one chunk, again and again; each time the operator says what day it is."""
    host, key = Host(tmp_path / "ledger"), KEYS[0]
    assert host.ask(key, 3) == CEILING
    for _ in range(3):
        host.offset = DAY_S
        assert host.ask(key) == 1
        host.offset = 0.0
        host.say_today()
        assert host.ask(key, 3) == 0
    assert host.ask(KEYS[1], 3) == CEILING, "who has spent nothing has today"
    host.now += DAY_S
    assert host.ask(key, 3) == CEILING, "tomorrow is a day as every other"
    host.ledger.close()


def test_damage_forgets_no_day_of_a_wearer_that_may_come_again(tmp_path: Path) -> None:
    host, key = Host(tmp_path / "ledger"), KEYS[0]
    assert host.ask(key, 1, wearer=1) == 1
    for ahead, wearer in ((30, 1), (60, 0)):
        host.offset = ahead * DAY_S
        assert host.ask(key, 1, wearer) == 1
    account = host.ledger._book.accounts[key.device]
    account.take_unreadable()
    spent = {day: epsilon for day, epsilon, _ in account.other_days["wearers/1"]}
    assert spent == {BEGAN: 2, BEGAN + 30: 2}, "their own chunk, and the damaged record"
    host.ledger.close()


def test_a_year_ahead_for_a_moment_costs_that_moment(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    host, key = Host(tmp_path / "ledger"), KEYS[0]
    assert host.ask(key, 3) == CEILING
    host.offset = 360.0 * DAY_S
    assert host.ask(key, 3) == CEILING, "a day more"
    host.offset = 0.0
    assert host.ask(key, 3) == 0, "today is spent as before"
    assert "360 days ahead of the ledger's last day" in caplog.text
    for _ in range(400):
        host.now += DAY_S
        day = host.shown - BEGAN
        assert host.ask(key, 3) == (0 if day == 360 else CEILING), day
    assert sum(record.levelname == "WARNING" for record in caplog.records) == 1
    host.ledger.close()


def test_after_a_month_off_each_day_has_its_budget(tmp_path: Path) -> None:
    host = Host(tmp_path / "ledger")
    for gap in (0, 30, 1, 1, 1, 1, 3, 7, 7, 7, 7, 40, 1):
        host.now += gap * DAY_S
        host.restart()
        assert host.ask(KEYS[0], 3) == CEILING
    days = read_ledger(host.path).days
    assert (host.shown - days.last, len(days.ahead)) == (48, MOST_AHEAD)
    host.ledger.close()


def test_somebody_sets_the_day_after_weeks_with_a_wrong_clock(tmp_path: Path) -> None:
    """All that later days cost counts for today; tomorrow is a day as every other."""
    host = Host(tmp_path / "ledger")
    host.offset = 360.0 * DAY_S
    for _ in range(20):
        host.now += DAY_S
        assert host.ask(KEYS[0], 3) == CEILING
    host.offset = 0.0
    host.now += DAY_S
    assert host.ask(KEYS[0], 3) == 0, "days are open for a year"
    host.ledger.begin_day_at(host.shown)
    host.restart()
    assert host.ask(KEYS[0], 3) == 0
    assert host.ask(KEYS[1], 3) == CEILING, "who spent nothing on those days has today"
    host.now += DAY_S
    assert host.ask(KEYS[0], 3) == CEILING
    host.ledger.close()
