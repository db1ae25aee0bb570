"""Checks of everything around a release: ledger, window, pipeline, outbox, device.

`order`: reserved durably, then noise drawn and bound, then published. `once`: no row in two releases, whatever is sent
again and whatever a restart brings; a retry sends the same bytes. `window`: no ceiling is ever passed. `torn`: what
cannot be read counts as spent. `durable`: a disk that fails ends it. `closed`: a fault in the middle lets nothing out.
`border`: a chunk holds its own rows. `exact`: sums do not round.
"""

import asyncio
import contextlib
import random
from collections import Counter
from fractions import Fraction
from pathlib import Path
from unittest import mock

import numpy as np

from auditing.findings import Finding, first_failure
from auditing.mechanisms import synthetic
from auditing.station import CHARGE, EPSILON, FEATURES, WIDE, Station, device_settings, folder, silence, tagged
from eyestream.config import (
    BrokerSettings,
    BudgetSettings,
    DeviceEntry,
    PrivacySettings,
    Settings,
    SidecarSettings,
    StreamSettings,
)
from eyestream.device.chunks import RowMark
from eyestream.device.device import Device
from eyestream.errors import LedgerError, LinkError
from eyestream.privacy.accountant import Account, Request
from eyestream.privacy.charge import Ceilings, Charge, ceiling_units, charge_units
from eyestream.privacy.mechanisms import build
from eyestream.privacy.noise import SecureNoise
from eyestream.service.ledger import Ledger, Reservation, create_ledger, look
from eyestream.service.pipeline import Arrival
from eyestream.service.sidecar import Sidecar
from eyestream.wire.messages import RawRows, encode_raw
from eyestream.wire.topics import raw_topic

__all__ = ["border", "closed", "durable", "exact", "once", "order", "torn", "window"]


def order() -> Finding:
    """Two devices whose chunks open early, fall due unopened, are withheld, and come many at once."""

    async def life(station: Station) -> None:
        await station.send(1, range(2), 0.0)
        await station.send(1, range(3), 0.1, "e")
        await station.send(1, range(2, 6), 1.0)
        await station.send(1, range(6, 17), 3.0)
        await station.send(1, range(3, 9), 4.0, "e")
        await station.pipeline.take([], 60.0)
        await station.send(2, range(40, 52), 61.0)
        await station.send(2, (), 62.0, end=True)

    with folder() as place, silence():
        station = Station(place / "ledger", ceilings=Ceilings.of(3, 2 * EPSILON, 1e6, 1e6))
        station.run(life)  # type: ignore[arg-type]
        odometers = look(place / "ledger")[1].values()
    released, bound = sum(odometer.released for odometer in odometers), station.noise.bound
    early = sum(spent <= index for index, (spent, _) in enumerate(bound))
    stale = sum(keys == 0 for _, keys in bound)
    seen, withheld = len(station.published), sum(odometer.withheld for odometer in odometers)
    return first_failure(
        (station.early == 0, f"{station.early} of {seen} chunks left before their charge was durable"),
        (early == 0, f"the noise of {early} of {len(bound)} chunks was drawn before their charge was durable"),
        (stale == 0, f"the noise of {stale} of {len(bound)} chunks has a key from before their reservation"),
        (seen == len(bound) == released >= 5, f"{seen} chunks published, {len(bound)} noised, {released} in the ledger"),
        (withheld > 0, "nothing was withheld"),
    )


def once() -> Finding:
    """Duplicates, replays, other sessions, restarts with other chunk lengths, and a link that breaks."""
    rows: Counter[tuple[str, int]] = Counter()
    late = 0
    with folder() as place, silence():
        for n, session in ((4, 2), (8, 2), (2, 2), (4, 3), (8, 4)):
            station = Station(place / "ledger", n)
            station.run(lambda station, session=session: _sends_all_again(station, session))  # type: ignore[misc]
            rows.update((raw_topic("d"), tag) for tags in station.tap.released for tag in tags)
            late = len(station.tap.released)
        twice = sum(count - 1 for count in rows.values())
        parts = [
            (twice == 0, f"{twice} rows of {len(rows)} went into a second release"),
            (len(rows) > 24 and late > 0, f"only {len(rows)} rows were released"),
            *_refused_at_every_layer(),
        ]
        bytes_sent = asyncio.run(_two_attempts(place))
    kinds = len(set(bytes_sent))
    parts.append((len(bytes_sent) == 2 and kinds == 1, f"{len(bytes_sent)} attempts sent {kinds} different payloads"))
    return first_failure(*parts)


async def _sends_all_again(station: Station, session: int) -> None:
    at = 0.0
    for number in (1, session, 1, session, session - 1):
        for first in (0, 3, 3, 0, 7, 16, 8):
            at += 0.5
            await station.send(number, range(first, first + 9), at)
    await station.send(session, (), at, end=True)
    await station.send(session, range(48, 64), at + 1)


def _refused_at_every_layer() -> list[tuple[bool, str]]:
    """The device with a mark, and the account asked by another chunk length, each by itself."""
    device = Device(device_settings(8), RowMark(2, 17))
    rows = range(32)
    taken = [chunk for number in (1, 2) for chunk in device.feed(RawRows(number, 0, tagged(number, rows)), 1.0)]
    again = sum(chunk.first_row < 24 or chunk.session < 2 for chunk in taken)
    account = Account(4, 2)
    account.take(2, 17, chunk=4, window=2, day=0, epsilon=1)
    asked = [Request("d", "s", number, 8 * i, 8 * i + 7, Charge(1)) for number in (1, 2) for i in range(3)]
    granted = sum(account.obstacle(request, n, WIDE, 0) is None for request in asked for n in (4, 8))
    return [
        (again == 0 and len(taken) == 1, f"the device takes {again} chunks with rows before the mark"),
        (granted == 0, f"the account grants {granted} of 12 requests for rows that are gone"),
    ]


class _BrokenLink:
    """Takes every payload and loses the first acknowledgement of a chunk."""

    def __init__(self, sent: list[bytes], breaks: bool) -> None:
        self._sent, self._breaks = sent, breaks

    async def publish(self, topic: str, payload: bytes, *, qos: int, retain: bool = False) -> None:
        if topic.endswith("/private"):
            self._sent.append(payload)
            if self._breaks:
                raise LinkError("lost")


async def _two_attempts(place: Path) -> list[bytes]:
    """Payloads that a sidecar hands to two links in turn, for one chunk."""
    settings = _settings(place / "other")
    create_ledger(settings.sidecar.ledger, chunk=4, window=2, created=0)
    noise, sent = SecureNoise(), []
    mechanism = build(synthetic("cfpa", 4, FEATURES), EPSILON, k=1, noise=noise)
    with Ledger(settings.sidecar.ledger, chunk=4, ceilings=WIDE) as ledger:
        sidecar = Sidecar(settings, mechanism, ledger, renew=noise.renew, today=lambda: 20_000)
        payload = encode_raw(1, 0, tagged(1, range(4)), 1)
        await sidecar.pipeline.take([Arrival(raw_topic("d"), payload, 0.0)], 0.0)
        for breaks in (True, False):
            with contextlib.suppress(LinkError, TimeoutError):
                async with asyncio.timeout(0.2):
                    await sidecar._serve_private(_BrokenLink(sent, breaks))  # type: ignore[arg-type]
    return sent


def _settings(ledger: Path) -> Settings:
    names = device_settings(4).names
    return Settings(
        sidecar=SidecarSettings(name="s", ledger=ledger),
        private=BrokerSettings("mqtt://127.0.0.1:1"),
        stream=StreamSettings(1, 2.0, 30.0, names, 1.0, 60.0, "on_row"),
        privacy=PrivacySettings("none", EPSILON),
        budget=BudgetSettings(2, 1e6, 1e6, 1e6),
        device=(DeviceEntry("d"),),
    )


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
    create_ledger(path, chunk=4, window=3, created=0)
    slots: list[tuple[int, int, int]] = []
    session, row, day, latest = 1, 0, 100, 100
    for _ in range(6):
        with Ledger(path, chunk=4, ceilings=ceilings) as ledger:
            for _ in range(random_.randint(1, 12)):
                if random_.random() < 0.1:
                    session, row = session + random_.randint(1, 3), 0
                row += 4 * random_.choice((0, 0, 0, 5))  # numbers may jump: a gap takes no slot
                day += random_.choice((0, 0, 0, 0, 0, 1, 1, -1))
                latest = max(day, latest)
                request = Request("d", "s", session, row, row + 3, Charge(random_.randint(1, 4)))
                [answer] = ledger.reserve([request], day)
                granted = isinstance(answer, Reservation)
                slots.append((session, latest, request.charge.epsilon if granted else 0))
                row += 4
    return slots


def torn() -> Finding:
    """A last record that a power cut broke off anywhere still counts, and its session is closed."""
    short, again = 0, 0
    with folder() as place:
        path = place / "ledger"
        create_ledger(path, chunk=4, window=2, created=0)
        with Ledger(path, chunk=4, ceilings=WIDE) as ledger:
            for i in range(3):
                ledger.reserve([_ask(i)], 100)
        whole = path.read_bytes()
        for cut in range(1, 64, 6):
            path.write_bytes(whole[:-cut])
            short += look(path)[1]["d/s"].epsilon < 3 * CHARGE
            with Ledger(path, chunk=4, ceilings=WIDE) as ledger:
                again += isinstance(ledger.reserve([_ask(2)], 100)[0], Reservation)
    return first_failure(
        (short == 0, f"{short} of 11 torn ledgers forget a charge"),
        (again == 0, f"{again} of 11 torn ledgers grant the torn rows again"),
    )


def _ask(index: int) -> Request:
    return Request("d", "s", 1, 4 * index, 4 * index + 3, Charge.of(EPSILON))


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
        create_ledger(path, chunk=4, window=2, created=0)
        with Ledger(path, chunk=4, ceilings=WIDE) as ledger, mock.patch("os.fdatasync", fails):
            for i in range(3):
                with contextlib.suppress(LedgerError):
                    granted += isinstance(ledger.reserve([_ask(i)], 100)[0], Reservation)
        calls.clear()
        station = Station(place / "second")
        station.run(life)  # type: ignore[arg-type]
    left = len(station.published)
    return first_failure(
        (granted == 0, f"{granted} reservations after a failed fdatasync"),
        (left == 0, f"{left} chunks left after a failed fdatasync"),
    )


_BROKEN = (
    "eyestream.privacy.domain.Domain.admit",
    "eyestream.privacy.ball._scale",
    "eyestream.privacy.ball.EuclideanLattice.snap",
    "eyestream.privacy.noise.SecureNoise.draw",
    "eyestream.spectrum.fourier.RealFourier.signals",
    "eyestream.service.pipeline.encode_private",
)


def closed() -> Finding:
    """Every step of a release fails in turn, with the rows in its message."""
    left, said, stopped = 0, [], 0
    with folder() as place, silence() as lines:
        for number, target in enumerate(_BROKEN):
            station = Station(place / f"ledger-{number}")

            async def life(station: Station, target: str = target) -> None:
                with mock.patch(target, side_effect=RuntimeError(f"rows: {tagged(1, range(4))}")):
                    await station.send(1, range(8), 1.0)
                before = len(station.published)
                await station.send(1, range(8, 12), 5.0)
                station.early = before, len(station.published)  # type: ignore[assignment]

            station.run(life)  # type: ignore[arg-type]
            failed, after = station.early  # type: ignore[misc]
            left, stopped = left + failed, stopped + (after != failed + 1)
            told = "".join(lines) + repr(station.published)
            said += [target for raw in ("4242", "1001") if raw in told]
            lines.clear()
    return first_failure(
        (left == 0, f"{left} payloads left though a step of the release had failed"),
        (not said, f"{len(said)} log lines carry raw values"),
        (stopped == 0, f"{stopped} of {len(_BROKEN)} faults stopped the chunks that came later"),
    )


def border() -> Finding:
    """Rows in pieces, out of order, twice, with gaps: every chunk holds its own rows, each at most once."""
    strange, chunks = 0, 0
    for seed in range(20):
        random_ = random.Random(seed)
        device, at, session, row = Device(device_settings(4)), 0.0, 1, 0
        for _ in range(60):
            at += random_.random() * 3
            if random_.random() < 0.05:
                session, row = session + 1, random_.randint(0, 9)
            first = max(0, row + random_.randint(-5, 4))
            rows = range(first, first + random_.randint(1, 7))
            row = max(row, rows.stop)
            due = device.feed(RawRows(session, first, tagged(session, rows)), at)
            for chunk in due:
                tags = chunk.values[0]
                own = tagged(chunk.session, range(chunk.first_row, chunk.last_row + 1))[:, 0]
                strange += int((np.isfinite(tags) & (tags != own)).sum())
                chunks += 1
    return first_failure(
        (strange == 0, f"{strange} rows stand in a chunk that is not theirs"),
        (chunks > 200, f"only {chunks} chunks fell due"),
    )


def exact() -> Finding:
    """Charges round up and ceilings down; a ceiling is met exactly, and by nothing more."""
    account, ceilings, granted = Account(4, 1), Ceilings.of(1, 1, session="0.3"), 0
    for i in range(5):
        request = Request("d", "s", 1, 4 * i, 4 * i + 3, Charge.of(0.1))
        if account.obstacle(request, 4, ceilings, 0) is None:
            granted += 1
            account.take(1, 4 * i + 3, chunk=4, window=1, day=0, epsilon=request.charge.epsilon)
    third, tiny = charge_units(Fraction(1, 3)), charge_units("1e-13")
    return first_failure(
        (third * 3 >= 10**12 and tiny == 1, f"three thirds are charged as {third * 3 / 10**12}, 1e-13 as {tiny}"),
        (ceiling_units(Fraction(1, 3)) * 3 <= 10**12, "a ceiling is rounded up"),
        (charge_units(1e-7) * 10**7 == ceiling_units(1), "10^7 charges of 1e-7 are not 1"),
        (granted == 3, f"{granted} charges of 0.1 fit a ceiling of 0.3"),
    )
