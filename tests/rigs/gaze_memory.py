"""A hunt for memory in live gaze: streams that differ in one event, lived side by side, and rows that tell it later.

Both go through the whole live path of the sidecar, `GazeFeeder`, on a loop whose clock is simulated. Rows further from
the event than the stated memory must then be the same to the last bit, and all rows must come at the same moments.
"""

import asyncio
import itertools
import math
import struct
from collections import Counter
from dataclasses import dataclass

import numpy as np

from eyestream.gaze.features import STEP_S, WINDOW_S
from eyestream.gaze.profile import Algorithm, Columns, Detection, Profile
from eyestream.rim.files.gaze_columns import GazeColumns
from eyestream.rim.files.profiles import load_profile
from eyestream.rim.sources.gaze import DeliverGaze, GazeFeeder, GazeSource
from eyestream.rim.sources.neon import _Stream
from eyestream.wire.raw import RawRows
from eyestream.wire.rtsp import Description
from eyestream_lab.testing.clocks import simulated
from tests.rigs.gaze_streams import RATES_HZ, Event, Sent, glimpse, neighbour, ordinary, set_by, stream
from tests.rigs.neon import CLOCK_HZ, KIND, payload_of, report_of

__all__ = [
    "Datagrams",
    "Made",
    "Report",
    "Trace",
    "border",
    "degrees",
    "glimpses",
    "hunt",
    "lived",
    "lived_neon",
    "origin_of",
    "packets",
    "reports",
    "switched_off",
    "trace",
]

_EVENTS = 3
"""Neighbours of one stream."""

_LEAST_ROWS = 8
_AT_ONCE_S = 1e-6

Report = tuple[float, float]
"""When a sender report is sent, and by how much its pairing is off, in seconds."""

_SOURCE, _AHEAD_S, _PPM = 7, 1.7e9, 20.0
_PX_PER_DEG = 15.5


def packets(sent: Sent, reports: list[Report]) -> list[tuple[float, bytes]]:
    """Arrivals and datagrams: the stream's own clock is 20 ppm fast beside the phone's."""

    def count(t: float) -> int:
        return round((t * (1.0 + 1e-6 * _PPM) + 77.0) * CLOCK_HZ) % 2**32

    parts = [(at, report_of(_SOURCE, _AHEAD_S + at + error, count(at))) for at, error in reports]
    rows = zip(sent.t.tolist(), sent.gaze.tolist(), sent.arrived.tolist(), strict=True)
    for number, (t, (x, y), arrived) in enumerate(rows):
        head = struct.pack("!BBHII", 0x80, KIND, number % 2**16, count(t), _SOURCE)
        parts.append((arrived, head + payload_of(65, 800.0 + _PX_PER_DEG * x, 600.0 - _PX_PER_DEG * y)))
    return sorted(parts)


class Datagrams:
    """A source of gaze: one link to a phone."""

    def __init__(self, parts: list[tuple[float, bytes]]) -> None:
        self._parts = parts

    async def run(self, deliver: DeliverGaze) -> None:
        """Hear every datagram at its moment, and end two seconds after the last one."""
        loop = asyncio.get_running_loop()
        stream = _Stream("phone", Description("rtsp://phone/", KIND, CLOCK_HZ), deliver, Counter())
        for at, data in self._parts:
            loop.call_at(at, stream.datagram_received, data, ("phone", 1))
        await asyncio.sleep(self._parts[-1][0] + 2.0)


@dataclass(frozen=True, eq=False)
class Made:
    """Rows of one message, and when they were delivered."""

    moment: float
    rows: RawRows


@dataclass(frozen=True)
class Trace:
    """What an event has left in the rows.

    Attributes
    ----------
    rows
        From the first row that differs to the last one.
    spare
        How many more may differ, as `StreamSpec.rows_touched` counts them.
    escape
        What must not be so; empty when all holds.
    """

    rows: int
    spare: int
    escape: str


def degrees(rate_hz: float, algorithm: Algorithm = 1) -> Profile:
    """Gaze in degrees, pupils in mm, frozen values a loss."""
    columns, found = (
        Columns("t_s", ("x_deg", "y_deg"), pupil=("pupil_mm",)),
        Detection(frozen_s=1.0, algorithm=algorithm),
    )
    return Profile("hunted", rate_hz, "s", "deg", "up", columns, detection=found, pupil_unit="mm")


def lived(profile: Profile, sent: Sent) -> list[Made]:
    """The rows of a sidecar's source, until two seconds after the last sample's arrival."""
    edges = [0, *(np.flatnonzero(np.diff(sent.arrived)) + 1).tolist(), len(sent.t)]
    parts = [
        (float(sent.arrived[a]), GazeColumns(sent.t[a:b], sent.gaze[a:b], pupil=sent.pupil[a:b, None]))
        for a, b in itertools.pairwise(edges)
    ]
    return simulated(_life(profile, _Played(parts)))


def lived_neon(sent: Sent, told: list[Report]) -> list[Made]:
    """The same of a phone that sends them, and sender reports."""
    return simulated(_life(load_profile("neon"), Datagrams(packets(sent, told))))


def switched_off(seen_s: float) -> list[tuple[float, bool]]:
    """When each row came, of a tracker that answers each 2 s until 44 s and sees the eye until `seen_s`."""
    profile, sent = degrees(60.0), ordinary(60.0, 50.0)
    parts = [(at, GazeColumns(sent.t[:0], sent.gaze[:0])) for at in np.arange(0.0, 45.0, 2.0).tolist()]
    samples = zip(sent.arrived.tolist(), sent.t[:, None], sent.gaze[:, None], strict=True)
    parts += [(at, GazeColumns(t, gaze)) for at, t, gaze in samples if t[0] < seen_s]
    parts.append((120.0, GazeColumns(sent.t[:1], sent.gaze[:1])))  # of long ago: it begins nothing
    return [(one.moment, one.rows.end) for one in simulated(_life(profile, _Played(parts), answers=True))]


async def _life(profile: Profile, source: GazeSource, answers: bool = False) -> list[Made]:
    made: list[Made] = []
    loop, feeder = asyncio.get_running_loop(), GazeFeeder(source, profile, answers)
    async with asyncio.TaskGroup() as group:
        group.create_task(feeder.rows(lambda rows: made.append(Made(loop.time(), rows))))
        group.create_task(feeder.run(feeder.take))
    return made


class _Played:
    """A source that delivers portions at their moments."""

    def __init__(self, parts: list[tuple[float, GazeColumns]]) -> None:
        self._parts = parts

    async def run(self, deliver: DeliverGaze) -> None:
        loop = asyncio.get_running_loop()
        for at, records in self._parts:
            loop.call_at(at, deliver, records)
        await asyncio.sleep(self._parts[-1][0] + 2.0)


def origin_of(made: list[Made]) -> float:
    """The time of the session's first sample, by the tracker; RuntimeError where there is no row."""
    t = made[0].rows.t if made else None
    if t is None or len(t) == 0:
        raise RuntimeError("expected a row")
    return float(t[0]) - WINDOW_S


def trace(before: list[Made], after: list[Made], event: Event, profile: Profile) -> Trace:
    """Compare the rows of two streams that differ in an event after the session's first sample."""
    spare = math.ceil((WINDOW_S + event.end - event.begin + profile.memory_s) / STEP_S)
    one, other = ([made for made in life if not made.rows.end] for life in (before, after))
    wrong = _otherwise(before, after)
    if wrong:
        return Trace(0, spare, wrong)
    differ = [a.rows.rows.tobytes() != b.rows.rows.tobytes() for a, b in zip(one, other, strict=True)]
    which = np.flatnonzero(differ)
    if len(which) == 0:
        return Trace(0, spare, "")
    ends = _ends(one)
    rows, early = int(which[-1] - which[0]) + 1, event.begin - ends[which[0]]
    late = ends[which[-1]] - WINDOW_S - event.end
    if rows > spare:
        wrong = f"{rows} rows, {spare} claimed; the window of the last one begins {late:.2f} s after the event"
    elif late >= profile.memory_s - profile.ahead_s:
        wrong = f"the window of a row that differs begins {late:.2f} s after the event"
    elif early > profile.ahead_s:
        wrong = f"a row that differs ends {early:.2f} s before the event"
    return Trace(rows, spare - rows, wrong)


def _otherwise(before: list[Made], after: list[Made]) -> str:
    """What differs beside the values of rows, of which there must be some; empty: nothing."""
    one, other = ([made for made in life if not made.rows.end] for life in (before, after))
    if len(one) < _LEAST_ROWS or before[-1] is one[-1]:
        return f"only {len(one)} rows, or no end"
    if any(made.rows.end for life in (before, after) for made in life[:-1]):
        return "a session ended in the middle"
    if [made.rows.seq for made in one] != [made.rows.seq for made in other]:
        return "other rows"
    moved = max(abs(a.moment - b.moment) for a, b in zip(one, other, strict=True))
    if moved > _AT_ONCE_S:
        return f"a row comes {1e3 * moved:.3f} ms earlier or later"
    return "" if _ends(one) == _ends(other) else "a window ends at another time"


def _ends(made: list[Made]) -> list[float]:
    return [float(one.rows.t[0]) for one in made if one.rows.t is not None]


def hunt(times: int, seed: int, rates_hz: tuple[float, ...] = RATES_HZ, algorithm: Algorithm = 1) -> list[Trace]:
    """The traces of so many events."""
    rng, found = np.random.default_rng(seed), list[Trace]()
    while len(found) < times:
        rate_hz = float(rng.choice(rates_hz))
        whole = rate_hz < 100.0  # all rows that an event enters; of more samples those at the end, where memory shows
        profile, sent = degrees(rate_hz, algorithm), stream(rng, rate_hz, 73.0 if whole else 39.5)
        before = lived(profile, sent)
        for _ in range(min(times - len(found), _EVENTS)):
            begin = origin_of(before) + rng.uniform(0.1, 2.0) + 32.0 * whole
            event = Event(begin, begin + float(rng.choice([0.05, 0.3, 1.0])))
            found.append(trace(before, lived(profile, neighbour(rng, sent, event, rate_hz)), event, profile))
    return found


def glimpses(times: int, seed: int) -> list[Trace]:
    """The traces of so many glimpses of the eye in silence, which take longer than others."""
    rng, found, rate_hz = np.random.default_rng(seed), list[Trace](), 60.0
    for _ in range(times):
        begin = rng.uniform(34.0, 38.0)
        event = Event(begin, begin + float(rng.choice([0.3, 1.0])))
        silence = float(rng.choice([0.0, 2.0, 9.0])), float(rng.choice([0.0, 2.0, 9.0]))
        pair = glimpse(ordinary(rate_hz, 78.0), event, silence, rng.uniform(0.5, 4.0))
        before, after = (lived(degrees(rate_hz), sent) for sent in pair)
        found.append(trace(before, after, event, degrees(rate_hz)))
    return found


def reports() -> list[Trace]:
    """The traces of one sender report of Neon's: in a blink it is paired 5 ms later, or not sent."""
    sent, event = ordinary(200.0, 45.0), Event(6.0, 6.3)
    usual = [(at, 2e-4 * (-1.0) ** index) for index, at in enumerate(np.arange(0.5, 45.0, 5.6).tolist())]
    before, profile = lived_neon(sent, usual), load_profile("neon")
    later = [(at, error + 0.005 * (event.begin <= at < event.end)) for at, error in usual]
    none = [(at, error) for at, error in usual if not event.begin <= at < event.end]
    shifted = Event(1.7e9 + event.begin, 1.7e9 + event.end)
    return [trace(before, lived_neon(sent, told), shifted, profile) for told in (later, none)]


def border(times: int, seed: int) -> list[str]:
    """What is another thing in the next session because of an event before a border that the event leaves closed.

    The tracker's clock is set; the event is anywhere in the 14 s before the vote by which the session ends.
    """
    rng, rate_hz, wrong = np.random.default_rng(seed), 60.0, list[str]()
    sent = set_by(ordinary(rate_hz, 90.0), 44.5, 3600.0)
    before = lived(degrees(rate_hz), sent)
    for _ in range(times):
        begin = rng.uniform(36.0, 46.5)
        begin += 3600.0 * (begin > 44.5)
        event = Event(begin, begin + float(rng.choice([0.05, 0.3, 1.0])))
        after = lived(degrees(rate_hz), neighbour(rng, sent, event, rate_hz))
        one, other = (_borders_of(made) for made in (before, after))
        if one != other:
            wrong.append(f"event at {begin % 3600.0:.2f} s: the border or what comes after it is another one")
    return wrong


def _borders_of(made: list[Made]) -> list[tuple[float, int, bytes]]:
    """Moments, numbers and rows from the first end of a session on; RuntimeError where another one does not follow."""
    first = next(index for index, one in enumerate(made) if one.rows.end)
    if len(made) < first + _LEAST_ROWS:
        raise RuntimeError("expected another session")
    return [(round(one.moment, 6), one.rows.seq, one.rows.rows.tobytes()) for one in made[first:]]
