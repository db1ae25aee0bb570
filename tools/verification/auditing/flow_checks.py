"""Checks of the way of a chunk: device, pipeline, outbox.

`order`: reserved durably, then noise drawn and bound, then published. `once`: no row in two releases, whatever is sent
again and whatever a restart brings; a retry sends the same bytes. `restored`: nor when an old state is restored.
`closed`: a fault in the middle lets nothing out, and a special value no warning. `border`: a chunk holds its own rows.
"""

import asyncio
import contextlib
import functools
import random
import warnings
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast
from unittest import mock

import numpy as np

from eyestream.core.accountant import Account
from eyestream.core.charge import Ceilings, Charge
from eyestream.core.chunking.device import Device
from eyestream.core.mechanisms import build
from eyestream.core.release.stream import StreamRelease
from eyestream.core.release_type import OutputSchema
from eyestream.core.reservation import Request, RowMark
from eyestream.rim.ledger.ledger import Ledger
from eyestream.rim.ledger.reading import create_ledger, read_ledger
from eyestream.rim.sidecar.pipeline import Arrival
from eyestream.streams import StreamKey
from eyestream.wire.raw import RawRows, encode_raw
from eyestream.wire.topics import raw_topic
from eyestream_lab.audit.trials import Array
from tests.rigs.calibrations import synthetic
from tests.rigs.logs import silence
from tests.rigs.memory_ledger import decide
from tests.rigs.payloads import tagged
from tests.rigs.seams import replaced
from tests.rigs.sidecar import NO_BROKER, PrivateLink, hand_over, opened, settings_for
from tools.verification.auditing.findings import Finding, Part, first_failure
from tools.verification.auditing.station import EPSILON, FEATURES, WIDE, Station, device_settings, folder

__all__ = ["border", "closed", "once", "order", "restored"]


def order() -> Finding:
    """Two devices whose chunks open early, fall due unopened, are withheld, and come many at once."""

    async def life(station: Station) -> None:
        await station.send(1, range(2), 0.0)
        await station.send(1, range(3), 0.1, "e")
        await station.send(1, range(2, 6), 1.0)
        await station.send(1, range(6, 17), 3.0)
        await station.send(1, range(3, 9), 4.0, "e")
        await station.take(now=60.0)
        await station.send(2, range(40, 52), 61.0)
        await station.send(2, (), 62.0, end=True)
        await station.send(3, range(3), 63.0)
        station.pipeline.close(80.0)

    with folder() as place, silence():
        station = Station(place, ceilings=Ceilings.of(3, 2 * EPSILON, 1e6, 1e6))
        station.run(life)
        odometers = read_ledger(station.path).odometers.values()
    released, bound = sum(odometer.released for odometer in odometers), station.bound
    early = sum(spent <= index for index, spent in enumerate(bound))
    seen, withheld = len(station.published), sum(odometer.withheld for odometer in odometers)
    return first_failure(
        (station.early == 0, f"{station.early} of {seen} chunks left before their charge was durable"),
        (early == 0, f"the noise of {early} of {len(bound)} chunks was drawn before their charge was durable"),
        (
            seen == len(bound) == released >= 5,
            f"{seen} chunks published, {len(bound)} noised, {released} in the ledger",
        ),
        (withheld > 0, "nothing was withheld"),
    )


def once() -> Finding:
    """Duplicates, replays, other sessions, restarts with other chunk lengths, and a link that breaks."""
    rows: Counter[tuple[str, int]] = Counter()
    late = 0
    with folder() as place, silence():
        for n, session in ((4, 2), (8, 2), (2, 2), (4, 3), (8, 4)):
            station = Station(place, n)
            station.run(functools.partial(_sends_all_again, session=session))
            rows.update((raw_topic("d"), tag) for tags in station.releases for tag in tags)
            late = len(station.releases)
        twice = sum(count - 1 for count in rows.values())
        parts = [
            (twice == 0, f"{twice} rows of {len(rows)} went into a second release"),
            (len(rows) > 24 and late > 0, f"only {len(rows)} rows were released"),
            *_refused_at_every_layer(),
        ]
        other = place / "other"
        other.mkdir()
        bytes_sent = asyncio.run(_two_attempts(other))
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


def _refused_at_every_layer() -> list[Part]:
    """The device with a mark, and the account asked by another chunk length, each by itself."""
    device = Device(device_settings(8), RowMark(2, 17))
    rows = range(32)
    taken = [chunk for number in (1, 2) for chunk in device.feed(RawRows(number, 0, tagged(number, rows)), 1.0)]
    again = sum(chunk.span.first_row < 24 or chunk.span.session < 2 for chunk in taken)
    device.feed(RawRows(4, 0, tagged(4, rows)), 2.0)
    again += len(device.feed(RawRows(3, 0, tagged(3, rows)), 3.0))
    account, key, spans = Account(), StreamKey("d", "s"), [(number, 8 * i) for number in (1, 2) for i in range(3)]
    decide(account, Request(key, 2, 14, 17, 4, Charge(1)), WIDE, 0)
    asked = [Request(key, number, first, first + n - 1, n, Charge(1)) for number, first in spans for n in (4, 8)]
    granted = sum(account.obstacle(request, WIDE, 0) is None for request in asked)
    return [
        (again == 0 and len(taken) == 1, f"the device takes {again} chunks with rows before the mark"),
        (granted == 0, f"the account grants {granted} of 12 requests for rows that are gone"),
    ]


async def _two_attempts(place: Path) -> list[bytes]:
    """Payloads that a sidecar hands to two links in turn, for one chunk; the first link acknowledges nothing."""
    names = device_settings(4).names
    settings = settings_for(NO_BROKER, place, names=names, devices=("d",), window_epsilon=1e6)
    sent: list[bytes] = []
    mechanism = build(synthetic("cfpa", 4, FEATURES), EPSILON, k=1)
    with opened(settings, mechanism=mechanism) as sidecar:
        payload = encode_raw(1, 0, tagged(1, range(4)), 1)
        await sidecar.pipeline.run_turn([Arrival(raw_topic("d"), payload, 0.0)], 0.0)
        for breaks in (True, False):
            link = PrivateLink(acknowledges=not breaks)
            link.on_send = lambda topic, payload: sent.append(payload)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(0.2):
                    await hand_over(sidecar, link)
    return sent


class Recorder:
    """A mechanism, and its sessions, that releases what it is given, and notes the first feature."""

    epsilon, delta = EPSILON, 0.0
    baseline_chunks = 0
    sessions = 0
    schema = OutputSchema(("x",), ("1",), (1, 1), 1.0)
    awaits_baseline, state = False, None

    def __init__(self) -> None:
        self.rows: Counter[float] = Counter()

    def session(self, snapshot: bytes | None = None) -> "Recorder":
        return self

    def session_after(self, before: "Recorder | None", /) -> "Recorder":
        return self

    def erase(self) -> None:
        return None

    def faded(self, level: int) -> "Recorder":
        return self

    def continue_session(self, session: "Recorder", /) -> "Recorder":
        return session

    def hindsight(self, states: Sequence[Array | None]) -> None:
        return None

    def snapshot(self) -> bytes:
        return b""

    def anchor(self, chunk: Array) -> None:
        raise AssertionError("there is no baseline")

    def release(self, chunk: Array) -> Array:
        self.rows.update(chunk[0][np.isfinite(chunk[0])].tolist())
        return chunk


def restored() -> Finding:
    """Processes that go back, again and again, to a state of long ago; the ledger on the disk goes on."""
    twice = released = refused = 0
    with folder() as place, silence():
        for seed in range(20):
            path, mechanism = place / f"ledger-{seed}", Recorder()
            create_ledger(path, created=0)
            with Ledger(path, ceilings=WIDE) as ledger:
                refused += _goes_back(
                    random.Random(seed), StreamRelease(device_settings(4), cast(Any, mechanism), int), ledger
                )
            twice += sum(count - 1 for count in mechanism.rows.values())
            released += len(mechanism.rows)
    return first_failure(
        (twice == 0, f"{twice} of {released} rows left a second time"),
        (released > 500 and refused > 50, f"{released} rows left, and {refused} chunks were refused: too few"),
    )


def _goes_back(random_: random.Random, stream: StreamRelease, ledger: Ledger) -> int:
    """One life; how many chunks were refused because their rows had been reserved before."""
    states, row, at = [stream.snapshot()], 0, 0.0
    for _ in range(80):
        at += 0.5
        if random_.random() < 0.15:
            outcome = stream.restore(random_.choice(states[-8:]))
            row = max(0, row - random_.randint(0, 12))
        else:
            rows = range(row, row + random_.randint(1, 6))
            outcome, row = stream.feed(RawRows(1, row, tagged(1, rows)), at), rows.stop
        states.append(stream.snapshot())
        stream.answer(ledger.reserve(outcome.requests, 100))
        states.append(stream.snapshot())
    return stream.counters.withheld["rows"]


_BROKEN = (
    "Domain.admit",
    "ball factor",
    "L2Lattice.snap",
    "SecureNoise.draw",
    "RealFourier.signals",
    "stream encoder",
)
"""Seams, each a step of a release."""


def closed() -> Finding:
    """Every step of a release fails in turn, with the rows in its message."""
    left = stopped = 0
    said: set[str] = set()
    with folder() as place, silence() as lines:
        for number, target in enumerate(_BROKEN):
            seen: list[int] = []

            async def life(station: Station, target: str = target, seen: list[int] = seen) -> None:
                with replaced(target, mock.Mock(side_effect=RuntimeError(f"rows: {tagged(1, range(4))}"))):
                    await station.send(1, range(8), 1.0)
                seen.append(len(station.published))
                await station.send(1, range(8, 12), 5.0)
                seen.append(len(station.published))

            Station(place / f"life-{number}").run(life)
            left, stopped = left + seen[0], stopped + (seen[1] != seen[0] + 1)
            said |= {line for line in lines for raw in ("4242", "1001") if raw in line}
        warned = _warned(place / "special")
    return first_failure(
        (left == 0, f"{left} payloads left though a step of the release had failed"),
        (not said, f"{len(said)} log lines carry raw values"),
        (not warned, f"numpy warns of special values: {', '.join(sorted(warned))}"),
        (stopped == 0, f"{stopped} of {len(_BROKEN)} faults stopped the chunks that came later"),
    )


def _warned(place: Path) -> set[str]:
    """What warnings tell of rows of which each holds a special value: a signalling NaN, infinities, the largest."""
    bits = np.array([0x7F800001, 0xFF800001, 0x7F800000, 0xFF800000, 0x7F7FFFFF, 0x00000001, 0x7FC00000, 0], np.uint32)
    rows = np.repeat(bits.view(np.float32)[:, None], FEATURES, axis=1)

    async def life(station: Station) -> None:
        await station.take(station.sent(rows, 0, 1, device="d"))

    before = np.seterr(all="warn")
    try:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            Station(place).run(life)
    finally:
        np.seterr(**before)
    return {str(warning.message) for warning in told}


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
                own = tagged(chunk.span.session, range(chunk.span.first_row, chunk.span.last_row + 1))[:, 0]
                strange += int((np.isfinite(tags) & (tags != own)).sum())
                chunks += 1
    return first_failure(
        (strange == 0, f"{strange} rows stand in a chunk that is not theirs"),
        (chunks > 200, f"only {chunks} chunks fell due"),
    )
