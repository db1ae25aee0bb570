"""Checks of the ledger.

`window`: no ceiling is ever passed. `rewritten`: a shorter file says the same. `torn`: what cannot be read counts as
spent. `durable`: a disk that fails ends it. `alone`: a ledger that cannot be trusted is refused. `exact`: sums do not
round.
"""

import contextlib
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from unittest import mock

import msgspec

from eyestream.core import charge
from eyestream.core.accountant import Account
from eyestream.core.charge import Ceilings, Charge
from eyestream.core.reservation import Granted, Request
from eyestream.errors import LedgerError
from eyestream.rim.ledger.ledger import SPARE_DAYS, Ledger
from eyestream.rim.ledger.reading import create_ledger, read_ledger
from eyestream.streams import StreamKey
from tests.rigs.logs import silence
from tests.rigs.memory_ledger import MemoryLedger, decide
from tools.verification.auditing.findings import Finding, first_failure
from tools.verification.auditing.station import EPSILON, WIDE, Station, folder

__all__ = ["alone", "durable", "exact", "rewritten", "torn", "window"]

KEY, OTHER_STREAM, OTHER_DEVICE = StreamKey("d", "features"), StreamKey("d", "gaze"), StreamKey("e", "features")


def window() -> Finding:
    """Random lives of a device with two streams: sessions, gaps, restarts, days that jump; ceilings by plain sums.

    Sessions name one of two wearers or nobody; each wearer has ceilings beneath those of the device.
    """
    ceilings = Ceilings(3, 6, session=30, day=40, wearer=Ceilings(day=12, lifetime=45))
    worst: Counter[str] = Counter()
    released = 0
    with folder() as place:
        for seed in range(40):
            sums = _live(random.Random(seed), place / f"ledger-{seed}", ceilings)
            released += sum(cost > 0 for cost in sums.costs)
            worst |= sums.worst
    parts = [(sum_ <= int(name.split()[-1]), f"a {name} holds {sum_}") for name, sum_ in worst.items()]
    return first_failure(*parts, (released > 400, f"only {released} slots were released"))


class _Sums:
    """Costs of the slots of one device and its wearers, added up again at every slot; a day is the largest so far."""

    def __init__(self) -> None:
        self.costs: list[int] = []
        self.worst: Counter[str] = Counter()
        self._days: Counter[int] = Counter()
        self._worn: Counter[int] = Counter()
        self._worn_days: Counter[tuple[int, int]] = Counter()
        self._sessions: dict[StreamKey, tuple[int, int]] = {}
        self.day = 0

    def add(self, request: Request, day: int, cost: int) -> None:
        self.costs.append(cost)
        self.day = max(self.day, day)
        self._days[self.day] += cost
        current, before = self._sessions.get(request.key, (request.session, 0))
        self._sessions[request.key] = request.session, cost + (before if current == request.session else 0)
        sessions = sum(spent for _, spent in self._sessions.values())
        now = {"window of 6": sum(self.costs[-3:]), "session of 30": sessions, "day of 40": self._days[self.day]}
        if request.wearer:
            self._worn[request.wearer] += cost
            self._worn_days[request.wearer, self.day] += cost
            now["wearer's day of 12"] = self._worn_days[request.wearer, self.day]
            now["wearer's lifetime of 45"] = self._worn[request.wearer]
        self.worst |= Counter(now)


def _live(random_: random.Random, path: Path, ceilings: Ceilings) -> _Sums:
    """One random life. As much time passes as the clock says, so that each day it calls may be opened."""
    create_ledger(path, created=0)
    sums, day, rows = _Sums(), 100, _Rows(random_, (KEY, OTHER_STREAM))
    for _ in range(6):
        with Ledger(path, ceilings=ceilings, passed=lambda: 86_400.0 * sums.day) as ledger:
            for _ in range(random_.randint(1, 12)):
                day += random_.choice((0, 0, 0, 0, 0, 1, 1, -1))
                request = rows.next()
                [answer] = ledger.reserve([request], day)
                sums.add(request, day, request.charge.epsilon if isinstance(answer, Granted) else 0)
    return sums


class _Rows:
    """The next chunk of one of some streams: sessions begin, each with a wearer or nobody; numbers may jump."""

    def __init__(self, random_: random.Random, keys: Sequence[StreamKey]) -> None:
        self._random, self._keys = random_, keys
        self._at = dict.fromkeys(keys, (1, 0))
        self._wearers = dict.fromkeys(keys, 0)

    def next(self) -> Request:
        random_, key = self._random, self._random.choice(self._keys)
        session, row = self._at[key]
        if random_.random() < 0.1:
            session, row = session + random_.randint(1, 3), 0
            self._wearers[key] = random_.randint(0, 2)
        row += 4 * random_.choice((0, 0, 0, 5))
        self._at[key] = session, row + 4
        return Request(key, session, row, row + 3, 4, Charge(random_.randint(1, 4)), self._wearers[key])


def rewritten() -> Finding:
    """Ledgers that are rewritten every few records say the same, after each restart, as one that is kept in memory."""
    keys = (KEY, OTHER_STREAM, OTHER_DEVICE)
    ceilings = Ceilings(3, 6, session=30, day=40, lifetime=400, wearer=Ceilings(day=12, lifetime=45))
    apart = asked = generations = 0
    short = mock.patch.multiple("eyestream.rim.ledger.writer", _MANY_RECORDS=6, _TOO_MANY_RECORDS=6)
    with folder() as place, silence(), short:
        for seed in range(12):
            random_, path, memory = random.Random(seed), place / f"ledger-{seed}", MemoryLedger(ceilings)
            create_ledger(path, created=0)
            rows = _Rows(random_, keys)
            for _ in range(5):
                with Ledger(path, ceilings=ceilings) as ledger:
                    for _ in range(random_.randint(1, 15)):
                        request, asked = rows.next(), asked + 1
                        apart += ledger.reserve([request], 100) != memory.reserve([request], 100)
                reading = read_ledger(path)
                apart += any(known != memory.odometer(device) for device, known in reading.odometers.items())
            generations += reading.header.generation
    return first_failure(
        (apart == 0, f"{apart} answers or odometers of {asked} requests are not those of the ledger in memory"),
        (generations > 12 * 5, f"only {generations} rewritings"),
    )


def torn() -> Finding:
    """A last record that is cut off, changed or zeroed counts for each device, and what it can have been is closed.

    The devices have had a wearer; the last record is the first that names another one.
    """
    short, unworn, again, tried = 0, 0, 0, 0
    with folder() as place:
        for newest in (KEY, OTHER_DEVICE):
            path = place / f"ledger-{newest.device}"
            create_ledger(path, created=0)
            with Ledger(path, ceilings=WIDE) as ledger:
                last = msgspec.structs.replace(_ask(0, newest, session=2), wearer=2)
                for request in (_ask(0), _ask(0, OTHER_DEVICE, 3), _ask(1)):
                    ledger.reserve([msgspec.structs.replace(request, wearer=1)], 100)
                ledger.reserve([last], 100)
            whole = path.read_bytes()
            whole_sums = read_ledger(path).odometers
            spent = {device: odometer.epsilon for device, odometer in whole_sums.items()}
            worn = [(device, wearer) for device, known in whole_sums.items() for wearer in known.wearers]
            for damaged in _damaged(whole):
                path.write_bytes(damaged)
                found, tried = read_ledger(path).odometers, tried + 1
                short += any(found[device].epsilon < epsilon for device, epsilon in spent.items())
                unworn += any(
                    wearer not in found[device].wearers
                    or found[device].wearers[wearer].epsilon < whole_sums[device].wearers[wearer].epsilon
                    for device, wearer in worn
                )
                with Ledger(path, ceilings=WIDE) as ledger:
                    again += isinstance(ledger.reserve([last], 100)[0], Granted)
    return first_failure(
        (short == 0, f"{short} of {tried} damaged ledgers forget a charge"),
        (unworn == 0, f"{unworn} of {tried} damaged ledgers forget a charge of a wearer"),
        (again == 0, f"{again} of {tried} damaged ledgers grant the damaged rows again"),
    )


def _damaged(whole: bytes) -> Iterator[bytes]:
    """A ledger whose newest record is cut off, has another byte, or is zeros."""
    yield whole[:-64] + bytes(64)
    for at in range(1, 64, 6):
        yield whole[:-at]
        yield whole[:-at] + bytes([whole[-at] ^ 1]) + whole[len(whole) - at + 1 :]


def _ask(index: int, key: StreamKey = KEY, times: int = 1, session: int = 1) -> Request:
    return Request(key, session, 4 * index, 4 * index + 3, 4, Charge.of(times * EPSILON))


def alone() -> Finding:
    """What cannot be trusted is not opened: missing, in use, of another kind, changed, everybody's; nor is a clock."""
    opened: list[str] = []
    with folder() as place:
        path, other = place / "ledger", place / "other"
        for one in (path, other):
            create_ledger(one, created=0)
            with Ledger(one, ceilings=WIDE) as ledger:
                for i in range(4):
                    ledger.reserve([_ask(i)], 100)
                opened += ["one in use"] if _opens(one) else []
        with Ledger(other, ceilings=Ceilings.of(day=EPSILON)) as ledger:
            days = sum(_grants(ledger, 100 + 3650 * i, session=2 + i) for i in range(12))
        opened += [f"{days} days in a moment"] if days > SPARE_DAYS else []
        whole, foreign = path.read_bytes(), other.read_bytes()
        damaged = {
            "a missing one": None,
            "an empty one": b"",
            "one of another program": b"\x7fELF" + whole[4:],
            "one with a changed record": whole[:250] + bytes([whole[250] ^ 1]) + whole[251:],
            "one with records of another": whole[:192] + foreign[192:256] + whole[256:],
            "one with a record cut out": whole[:192] + whole[256:],
        }
        for name, content in damaged.items():
            path.unlink(missing_ok=True)
            if content is not None:
                path.write_bytes(content)
                path.chmod(0o600)
            opened += [name] if _opens(path) else []
        for mode in (0o602, 0o620, 0o604, 0o640):
            other.chmod(mode)
            opened += [f"one of mode {mode:o}"] if _opens(other) else []
        other.chmod(0o600)
        opened += [] if _opens(other) else ["nothing, not even a good one"]
        place.chmod(0o777)
        opened += ["one in everybody's directory"] if _opens(other) else []
    return Finding(not opened, f"opened: {', '.join(opened) or 'none of 13'}")


def _opens(path: Path) -> bool:
    try:
        Ledger(path, ceilings=WIDE).close()
    except LedgerError:
        return False
    return True


def _grants(ledger: Ledger, day: int, session: int) -> bool:
    return isinstance(ledger.reserve([_ask(0, session=session)], day)[0], Granted)


def durable() -> Finding:
    """An fdatasync that fails once: nothing is granted then or later, and nothing leaves."""
    granted, calls = 0, []

    def fails(fd: int) -> None:
        calls.append(fd)
        if len(calls) == 1:
            raise OSError(5, "Input/output error")

    async def life(station: Station) -> None:
        with mock.patch("os.fdatasync", fails):
            await station.send(1, range(12), 1.0)
        await station.send(1, range(12, 24), 7.0)

    with folder() as place, silence():
        path = place / "ledger"
        create_ledger(path, created=0)
        with Ledger(path, ceilings=WIDE) as ledger, mock.patch("os.fdatasync", fails):
            for i in range(3):
                with contextlib.suppress(LedgerError):
                    granted += isinstance(ledger.reserve([_ask(i)], 100)[0], Granted)
        calls.clear()
        station = Station(place / "second")
        station.run(life)
    left = len(station.published)
    return first_failure(
        (granted == 0, f"{granted} reservations after a failed fdatasync"),
        (left == 0, f"{left} chunks left after a failed fdatasync"),
    )


def exact() -> Finding:
    """Charges round up and ceilings down; a ceiling is met exactly, and by nothing more."""
    account, ceilings = Account(), Ceilings.of(1, 1, session="0.3")
    asked = [Request(KEY, 1, 4 * i, 4 * i + 3, 4, Charge.of("0.1")) for i in range(5)]
    granted = sum(decide(account, request, ceilings, 0) is None for request in asked)
    third, tiny = charge.charge_units(Fraction(1, 3)), charge.charge_units("1e-13")
    floats = [i / 1000 for i in range(1, 1000)] + [4.8, 1e-7, 1e6 + 0.1]
    below = sum(charge.charge_units(spent) < Fraction(spent) * charge.EPSILON_UNITS for spent in floats)
    return first_failure(
        (third * 3 >= 10**12 and tiny == 1, f"three thirds are charged as {third * 3 / 10**12}, 1e-13 as {tiny}"),
        (below == 0, f"{below} of {len(floats)} floats are charged less than they are"),
        (charge.ceiling_units(Fraction(1, 3)) * 3 <= 10**12, "a ceiling is rounded up"),
        (charge.charge_units("1e-7") * 10**7 == charge.ceiling_units(1), "10^7 charges of 1e-7 are not 1"),
        (granted == 3, f"{granted} charges of 0.1 fit a ceiling of 0.3"),
    )
