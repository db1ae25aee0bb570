"""Worlds that alternate at random beside one sidecar, and what an application hears of each chunk."""

import bisect
import heapq
import itertools
import operator
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import msgpack
import numpy as np
from numpy.typing import NDArray

from eyestream.gaze.live import DELAY_S
from eyestream.rim.files import calibrations
from eyestream.rim.sidecar.moments import GRID_S
from eyestream.wire.gaze import encode_gaze
from eyestream.wire.raw import encode_raw, rows_per_message
from eyestream.wire.status import decode_status
from eyestream.wire.topics import gaze_topic, raw_topic
from tools.verification.moments.serving import Served
from tools.verification.moments.tap import Record
from tools.verification.moments.wire import Frame, Heard, Listener, Sender

__all__ = ["SCENARIOS", "Observation", "Scenario", "drive", "observed"]

Array = NDArray[np.float64]
Tags = dict[str, str]
"""By the question, the world of one chunk."""


@dataclass(frozen=True)
class Scenario:
    """One sidecar, and what its trackers do.

    Attributes
    ----------
    served
        Without the brokers' addresses.
    worlds
        Of the chunks: one is drawn for each.
    period_s
        Of a device's chunks.
    pairs
        Questions and two worlds each that are compared.
    judged
        Times that must not tell worlds apart.
    begin_s
        Of the front end's clock: chunk 0 begins so long after the first sample.
    must_find
        Whether a leak is planted; None: the times are shown, and nothing is promised about them.
    part
        Of the usual number of observations.
    tls
        Whether the private link and the application's have TLS, and the sidecar's records are looked at on the way.
    """

    name: str
    served: Served
    worlds: tuple[str, ...]
    period_s: float
    pairs: tuple[tuple[str, str, str], ...]
    judged: tuple[str, ...] = ("moment", "budget", "size")
    begin_s: float = 0.0
    must_find: bool | None = False
    part: float = 1.0
    tls: bool = False

    def seconds(self, pairs: int) -> float:
        """How long it runs for so many chunks of each world."""
        return pairs * self.part * len(self.worlds) * self.period_s / self.watched + 4.0 + self.begin_s

    @property
    def watched(self) -> int:
        """Devices whose chunks are looked at: all but the one that disturbs them."""
        return self.served.devices - (self.name == "neighbour")


def _rows(name: str, calibration: str, release: str, *pairs: tuple[str, str, str], **more: float) -> Scenario:
    """Trackers of rows, 128 a second, in chunks of half a second or less."""
    n = calibrations.load(calibration).n
    served = Served(8, calibration, 4.8, 128.0, release=release, plant_us=more.get("plant_us", 0.0))
    worlds = ("lost", "busy") if more else ("lost", "busy", "same", "noise")
    judged = ("moment", "budget", "size") if release == "on_clock" else ("budget", "size")
    content = (
        (("content", "lost", "busy"),) if more else tuple(("content", "busy", w) for w in ("lost", "same", "noise"))
    )
    return Scenario(
        name, served, worlds, n / 128.0, content + pairs, judged, must_find=bool(more), part=1.5 if more else 1.0
    )


def _gaze(name: str, step_s: float, served: Served) -> Scenario:
    """Trackers of gaze, released slot by slot."""
    other = ("lost", "busy", "none", "double")
    pairs = [("content", "open", world) for world in other]
    pairs += [("under way", "open", world) for world in ("none", "double", "busy")]
    return Scenario(name, served, ("open", *other), step_s, tuple(pairs))


_EARLY_LATE = ("last row", "early", "late")
_NEAR = ("1.3", "3.0", "6.0")

SCENARIOS = (
    *(_rows(f"planted-{late}", "everyday-klt-64", "on_clock", plant_us=float(late)) for late in (500, 100, 50)),
    _rows("klt-on_row", "everyday-klt-64", "on_row"),
    _rows("klt-on_clock", "everyday-klt-64", "on_clock", _EARLY_LATE),
    _rows("cfpa-on_clock", "everyday-cfpa-32", "on_clock", _EARLY_LATE),
    Scenario(
        "tls",
        Served(8, "everyday-klt-64", 4.8, 128.0, release="on_clock"),
        ("lost", "busy"),
        0.5,
        (("content", "lost", "busy"), _EARLY_LATE),
        ("moment", "budget", "size", "sent", "records", "answered"),
        tls=True,
    ),
    Scenario(
        "monitor",
        Served(8, "everyday-klt-64", 4.8, 128.0, release="on_clock"),
        ("lost", "busy"),
        0.5,
        (("content", "lost", "busy"), _EARLY_LATE),
        ("frame",),
    ),
    Scenario(
        "status",
        Served(8, "everyday-klt-64", 4.8, 128.0, release="on_clock", window_epsilon=4.8),
        ("lost", "busy"),
        0.5,
        (("content", "lost", "busy"), _EARLY_LATE),
        ("status",),
        part=2.0,
    ),
    Scenario(
        "neighbour",
        Served(5, "everyday-klt-64", 4.8, 128.0, release="on_clock"),
        tuple(f"{work} {before}" for before in _NEAR for work in ("little", "much")),
        0.5,
        tuple(("neighbour", f"little {before}", f"much {before}") for before in _NEAR),
    ),
    Scenario(
        "fifty",
        Served(50, "everyday-klt-64", 4.8, 16.0, release="on_clock"),
        ("lost", "busy"),
        4.0,
        (("content", "lost", "busy"),),
    ),
    Scenario(
        "shard",
        Served(8, "everyday-klt-64", 4.8, 128.0, release="on_clock", shard=True),
        ("lost", "busy"),
        0.5,
        (("content", "lost", "busy"), _EARLY_LATE),
        ("moment", "size"),
        must_find=None,
    ),
    _gaze("tile", 1.0, Served(12, "everyday-tile", 6.0, 100.0, "slots")),
    _gaze("kaleido", 0.5, Served(6, "kaleido-r2", 360.5, 100.0, "places")),
    Scenario(
        "features",
        Served(8, "everyday-cfpa-32", 4.8, 100.0, "features-52", speed=8.0),
        ("lost", "busy", "open"),
        2.0,
        (("content", "open", "lost"), ("content", "open", "busy")),
        begin_s=30.0,
        part=0.5,
    ),
)


@dataclass
class Worlds:
    """Which world each chunk of each device was of."""

    rng: np.random.Generator
    names: tuple[str, ...]
    drawn: dict[str, list[Tags]] = field(default_factory=lambda: defaultdict(list))
    _rest: dict[str, list[str]] = field(default_factory=dict)

    def of(self, device: str, chunk: int) -> Tags:
        """Of one chunk: every world once in a row of them, in random order."""
        drawn = self.drawn[device]
        while len(drawn) <= chunk:
            rest = self._rest.get(device) or list(self.rng.permutation(self.names))
            shift = "early" if self.rng.random() < 0.5 else "late"
            drawn.append({"content": str(rest.pop()), "last row": shift})
            self._rest[device] = rest
        return drawn[chunk]


Event = tuple[float, str, bytes]
"""When a message is to be sent on the monotonic clock, where, and its payload."""


def _row_messages(scenario: Scenario, worlds: Worlds, device: str, began: float) -> Iterator[Event]:
    """Rows of one device for ever: most of a chunk's rows at its beginning, the last one before it is due."""
    known, rate = calibrations.load(scenario.served.calibration), scenario.served.rate_hz
    n, (low, high), rng = known.n, (known.lo, known.hi), worlds.rng
    chunk_s, topic, chunk = n / rate, raw_topic(device), 0
    while True:
        tags = worlds.of(device, chunk)
        rows = rng.uniform(low, high, (n, len(low)))
        match tags["content"]:
            case "lost":
                rows[:] = np.nan
            case "same":
                rows[:] = (low + high) / 2.0
            case "noise":
                rows = rng.normal(0.0, 1e6, rows.shape)
        at, seq = began + chunk * chunk_s, chunk * n
        late = 0.0006 if tags["last row"] == "late" else 0.0
        yield at, topic, encode_raw(1, seq, rows[: n // 2].astype(np.float32), 1)
        yield at + 0.4 * chunk_s, topic, encode_raw(1, seq + n // 2, rows[n // 2 : -1].astype(np.float32), 1)
        yield at + 0.8 * chunk_s + late, topic, encode_raw(1, seq + n - 1, rows[-1:].astype(np.float32), 1)
        chunk += 1


def _gaze_messages(scenario: Scenario, worlds: Worlds, device: str, began: float) -> Iterator[Event]:
    """Samples of one device for ever, in messages of a twentieth of a second."""
    served, rng, topic = scenario.served, worlds.rng, gaze_topic(device)
    batch_s, chunk_s, number = 0.05, scenario.period_s * served.speed, 0
    count = round(batch_s * served.speed * served.rate_hz)
    while True:
        at = number * batch_s
        since = at * served.speed - scenario.begin_s
        world = worlds.of(device, int((since + 1e-6) // chunk_s))["content"] if since >= -1e-6 else "open"
        samples = 0 if world == "none" and number else count * (2 if world == "double" else 1)
        t = at * served.speed + np.arange(samples) * batch_s * served.speed / max(1, samples)
        gaze = np.array([2.0, 1.0]) + rng.normal(0.0, 0.02, (samples, 2))
        if world == "busy":
            gaze += rng.uniform(-12.0, 12.0, (samples, 2)).repeat(max(1, samples // 5), axis=0)[:samples]
        elif world == "lost":
            gaze[:] = np.nan
        if samples:
            yield began + at, topic, encode_gaze(began * served.speed + t, gaze.astype(np.float32), 1)
        number += 1


def _disturbing(scenario: Scenario, worlds: Worlds, listener: Listener, until: float) -> Iterator[Event]:
    """Messages of a neighbour some milliseconds before the moments of others; all of the same size.

    Those that make little work are of another schema, and those that make much are read and then refused: their session
    is over.
    """
    *watched, device = scenario.served.names
    width = len(calibrations.load(scenario.served.calibration).names)
    rows, topic = np.zeros((rows_per_message(width), width), dtype=np.float32), raw_topic(device)
    yield time.monotonic(), topic, encode_raw(2, 0, rows[:1], 1)
    while len(first := _firsts(listener, watched)) < len(watched):
        yield time.monotonic() + 0.1, topic, encode_raw(1, 0, rows[:1], 1)
    moments = []
    for one, (chunk, heard_at) in first.items():
        moment = int(heard_at / GRID_S) * GRID_S
        for number in range(chunk + 1, chunk + 1 + int((until - moment) / scenario.period_s)):
            moment += scenario.period_s
            tags = worlds.of(one, number)
            tags["neighbour"] = tags["content"]
            work, before = tags["content"].split()
            at = moment - float(before) / 1000.0
            if at > time.monotonic() + 0.5:
                moments.append((at, 1 if work == "much" else 2))
            else:
                tags["neighbour"] = "unknown"
    for at, schema in sorted(moments):
        for _ in range(4):
            yield at, topic, encode_raw(1, 0, rows, schema)


def _firsts(listener: Listener, devices: list[str]) -> dict[str, tuple[int, float]]:
    """Of each device that was heard: number and time of its first chunk."""
    first: dict[str, tuple[int, float]] = {}
    for heard in list(listener.heard):
        device, leaf = heard.topic.split("/")[2::2]
        if leaf == "private" and device in devices and device not in first:
            first[device] = msgpack.unpackb(heard.payload)["chunk"], heard.at
    return first


def drive(scenario: Scenario, sender: Sender, listener: Listener, seconds: float, worlds: Worlds) -> None:
    """Send what the trackers send, each message at its time."""
    until, began = time.monotonic() + seconds, time.monotonic() + 0.5
    make = _gaze_messages if scenario.served.front_end else _row_messages
    spread = scenario.period_s / scenario.served.devices
    watched = scenario.served.names[: scenario.watched]
    streams = [make(scenario, worlds, device, began + i * spread) for i, device in enumerate(watched)]
    if scenario.name == "neighbour":
        streams.append(_disturbing(scenario, worlds, listener, until))
    queue = [(*next(stream), number) for number, stream in enumerate(streams)]
    heapq.heapify(queue)
    while queue and queue[0][0] < until:
        at, topic, payload, number = queue[0]
        if at > time.monotonic():
            time.sleep(max(0.0, at - time.monotonic()))
        sender.send(topic, payload)
        more = next(streams[number], None)
        if more is None:
            heapq.heappop(queue)
        else:
            heapq.heapreplace(queue, (*more, number))
    time.sleep(2.0 + DELAY_S / scenario.served.speed)


@dataclass(frozen=True)
class Observation:
    """What an application saw of one chunk, in microseconds and bytes, and of which worlds it was."""

    tags: Mapping[str, str]
    seen: Mapping[str, float]


def observed(
    scenario: Scenario, heard: list[Heard], worlds: Worlds, records: Sequence[Record] = (), frames: Sequence[Frame] = ()
) -> list[Observation]:
    """Observations in the order of time, each of one chunk, with the scenario's `judged` ones of these.

    ``moment`` is when a chunk came, less the median of its device on the grid of its chunks; ``budget`` how long after
    the chunk the device's next `budget` came; ``size`` the bytes of the chunk's packet; ``status`` the moment of the
    `status` that says that a chunk is withheld.

    With `records` of the sidecar's link: ``sent`` is the moment of the first record from the sidecar for the chunk,
    ``answered`` how long after it the broker's first record came, ``records`` the bytes of all from the sidecar.

    With `frames` of the monitor's page: ``frame`` is the moment of the chunk's own.
    """
    found: list[tuple[float, Observation]] = []
    ahead = round(DELAY_S / scenario.served.speed / scenario.period_s)
    after_it = "private" if scenario.served.shard else "budget"
    shown = {(one["id"], one["index"]): at for at, one in frames if one["kind"] == "chunk"}
    for device in scenario.served.names[: scenario.watched]:
        own = [(one, one.topic.split("/")[4]) for one in heard if one.topic.split("/")[2] == device]
        chunks = _withheld(own) if scenario.judged == ("status",) else _released(own, after_it)
        rows = []
        for number, at, seen in chunks:
            drawn = worlds.drawn[device]
            if number + ahead >= len(drawn) or (scenario.tls and not (seen := seen | _on_the_way(at, records))):
                continue
            if "frame" in scenario.judged:
                frame = shown.get((f"{device}/features", number))
                if frame is None:
                    continue
                seen["frame"] = frame
            rows.append((at, drawn[number] | {"under way": drawn[number + ahead]["content"]}, number, seen))
        for name in ("moment", "sent", "status", "frame"):
            _put_on_grid(name, scenario.period_s, [(number, seen) for _, _, number, seen in rows])
        found += [(at, Observation(tags, {name: seen[name] for name in scenario.judged})) for at, tags, _, seen in rows]
    return [observation for _, observation in sorted(found, key=lambda one: one[0])]


_Seen = tuple[int, float, dict[str, float]]
"""Number of a chunk, when it came, and what was seen; moments in seconds that are not yet on the grid."""


def _released(own: list[tuple[Heard, str]], after_it: str) -> list[_Seen]:
    """Chunks of a device's first session, each with the message right after it: the `budget` of a sidecar."""
    found: list[_Seen] = []
    session = None
    for (one, leaf), (after, other) in itertools.pairwise(own):
        if leaf != "private" or other != after_it:
            continue
        told = msgpack.unpackb(one.payload)
        session = told["session"] if session is None else session
        if told["session"] == session:
            seen = {"moment": one.at, "budget": 1e6 * (after.at - one.at), "size": float(one.size)}
            found.append((told["chunk"], one.at, seen))
    return found


def _withheld(own: list[tuple[Heard, str]]) -> list[_Seen]:
    """Chunks that a `status` says are withheld: each follows a released one."""
    found: list[_Seen] = []
    last = -1
    for one, leaf in own:
        if leaf == "private":
            last = msgpack.unpackb(one.payload)["chunk"]
        elif leaf == "status" and last >= 0 and decode_status(one.payload).state == "exhausted":
            found.append((last + 1, one.at, {"status": one.at}))
    return found


_BESIDE_S = 0.02
"""Records so near to a chunk are of it: devices take turns at larger distances."""


def _on_the_way(at: float, records: Sequence[Record]) -> dict[str, float]:
    """What was seen on the way of a chunk that came at `at`; nothing where the link was silent."""
    near = records[
        bisect.bisect(records, at - _BESIDE_S, key=operator.itemgetter(0)) : bisect.bisect(
            records, at + _BESIDE_S, key=operator.itemgetter(0)
        )
    ]
    sent = [(when, size) for when, outward, size in near if outward]
    answers = [when for when, outward, _ in near if not outward and sent and when >= sent[0][0]]
    if not answers:
        return {}
    size = float(sum(size for _, size in sent))
    return {"sent": sent[0][0], "answered": 1e6 * (answers[0] - sent[0][0]), "records": size}


def _put_on_grid(name: str, period_s: float, chunks: list[tuple[int, dict[str, float]]]) -> None:
    """Make of moments in seconds microseconds, less the median on the grid of the chunks."""
    if chunks and name in chunks[0][1]:
        on_grid = np.array([seen[name] - number * period_s for number, seen in chunks])
        for (_, seen), moment in zip(chunks, 1e6 * (on_grid - np.median(on_grid)), strict=True):
            seen[name] = float(moment)
