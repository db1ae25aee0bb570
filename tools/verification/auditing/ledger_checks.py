"""Checks of the ledger.

`window`: no ceiling is ever passed. `torn`: what cannot be read counts as spent. `durable`: a disk that fails ends it.
`alone`: a ledger that is missing, damaged, foreign or in use is refused. `exact`: sums do not round.
"""

import contextlib
import random
from collections import Counter
from fractions import Fraction
from pathlib import Path
from unittest import mock

from auditing.findings import Finding, first_failure
from auditing.station import CHARGE, EPSILON, WIDE, Station, folder

from eyestream.errors import LedgerError
from eyestream.privacy import charge
from eyestream.privacy.accountant import Account, Request
from eyestream.privacy.charge import Ceilings, Charge
from eyestream.privacy.reservation import Granted
from eyestream.rim.ledger.ledger import Ledger
from eyestream.rim.ledger.reading import create_ledger, read_ledger
from eyestream.streams.key import StreamKey
from eyestream.testing.rig import silence

__all__ = ["alone", "durable", "exact", "torn", "window"]

KEY = StreamKey("d", "features")


def window() -> Finding:
    """Random lives of a ledger: sessions, gaps, restarts, days that jump; every ceiling against a plain sum."""
    ceilings = Ceilings(3, 6, session=30, day=40)
    worst: Counter[str] = Counter()
    released = 0
    with folder() as place:
        for seed in range(40):
            slots = _live(random.Random(seed), place / f"ledger-{seed}", ceilings)
            costs = [cost for _, _, cost in slots]
            released += sum(cost > 0 for cost in costs)
            spans = [sum(costs[i : i + 3]) for i in range(len(costs))]
            worst["window of 6"] = max(worst["window of 6"], *spans)
            for place_in_slot, name in ((0, "session of 30"), (1, "day of 40")):
                sums: Counter[int] = Counter()
                for slot in slots:
                    sums[slot[place_in_slot]] += slot[2]
                worst[name] = max(worst[name], *sums.values())
    parts = [(sum_ <= int(name.split()[-1]), f"a {name} holds {sum_}") for name, sum_ in worst.items()]
    return first_failure(*parts, (released > 400, f"only {released} slots were released"))


def _live(random_: random.Random, path: Path, ceilings: Ceilings) -> list[tuple[int, int, int]]:
    """(session, day, cost) of every slot of one random life; the day is the largest so far."""
    create_ledger(path, created=0)
    slots: list[tuple[int, int, int]] = []
    session, row, day, latest = 1, 0, 100, 100
    for _ in range(6):
        with Ledger(path, ceilings=ceilings) as ledger:
            for _ in range(random_.randint(1, 12)):
                if random_.random() < 0.1:
                    session, row = session + random_.randint(1, 3), 0
                row += 4 * random_.choice((0, 0, 0, 5))  # numbers may jump: a gap takes no slot
                day += random_.choice((0, 0, 0, 0, 0, 1, 1, -1))
                latest = max(day, latest)
                request = Request(KEY, session, row, row + 3, 4, Charge(random_.randint(1, 4)))
                [answer] = ledger.reserve([request], day)
                granted = isinstance(answer, Granted)
                slots.append((session, latest, request.charge.epsilon if granted else 0))
                row += 4
    return slots


def torn() -> Finding:
    """A last record that a power cut broke off anywhere still counts, and its session is closed."""
    short, again = 0, 0
    with folder() as place:
        path = place / "ledger"
        create_ledger(path, created=0)
        with Ledger(path, ceilings=WIDE) as ledger:
            for i in range(3):
                ledger.reserve([_ask(i)], 100)
        whole = path.read_bytes()
        for cut in range(1, 64, 6):
            path.write_bytes(whole[:-cut])
            short += read_ledger(path).odometers["d/s"].epsilon < 3 * CHARGE
            with Ledger(path, ceilings=WIDE) as ledger:
                again += isinstance(ledger.reserve([_ask(2)], 100)[0], Granted)
    return first_failure(
        (short == 0, f"{short} of 11 torn ledgers forget a charge"),
        (again == 0, f"{again} of 11 torn ledgers grant the torn rows again"),
    )


def _ask(index: int) -> Request:
    return Request(KEY, 1, 4 * index, 4 * index + 3, 4, Charge.of(EPSILON))


def alone() -> Finding:
    """What cannot be trusted is not opened: missing, held by another, of another kind, changed in the middle."""
    opened: list[str] = []
    with folder() as place:
        path, other = place / "ledger", place / "other"
        for one in (path, other):
            create_ledger(one, created=0)
            with Ledger(one, ceilings=WIDE) as ledger:
                for i in range(4):
                    ledger.reserve([_ask(i)], 100)
                opened += ["one in use"] if _opens(one) else []
        whole, foreign = path.read_bytes(), other.read_bytes()
        damaged = {
            "a missing one": None,
            "an empty one": b"",
            "one of another program": b"\x7fELF" + whole[4:],
            "one with a changed record": whole[:150] + bytes([whole[150] ^ 1]) + whole[151:],
            "one with records of another": whole[:128] + foreign[128:192] + whole[192:],
            "one with a record cut out": whole[:192] + whole[256:],
        }
        for name, content in damaged.items():
            path.unlink(missing_ok=True)
            if content is not None:
                path.write_bytes(content)
            opened += [name] if _opens(path) else []
    return Finding(not opened, f"opened: {', '.join(opened) or 'none of 7'}")


def _opens(path: Path) -> bool:
    try:
        Ledger(path, ceilings=WIDE).close()
    except LedgerError:
        return False
    return True


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
    account, ceilings, granted = Account(4, 1), Ceilings.of(1, 1, session="0.3"), 0
    for i in range(5):
        request = Request(KEY, 1, 4 * i, 4 * i + 3, 4, Charge.of("0.1"))
        if account.obstacle(request, 4, ceilings, 0) is None:
            granted += 1
            account.take(1, 4 * i + 3, chunk=4, window=1, day=0, epsilon=request.charge.epsilon)
    third, tiny = charge.charge_units(Fraction(1, 3)), charge.charge_units("1e-13")
    return first_failure(
        (third * 3 >= 10**12 and tiny == 1, f"three thirds are charged as {third * 3 / 10**12}, 1e-13 as {tiny}"),
        (charge.ceiling_units(Fraction(1, 3)) * 3 <= 10**12, "a ceiling is rounded up"),
        (charge.charge_units(1e-7) * 10**7 == charge.ceiling_units(1), "10^7 charges of 1e-7 are not 1"),
        (granted == 3, f"{granted} charges of 0.1 fit a ceiling of 0.3"),
    )
