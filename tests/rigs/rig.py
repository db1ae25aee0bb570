"""The shipped pipeline on a ledger of its own, without links: one process after the other, and what an outsider saw.

All that tests and tools know of how a sidecar is put together behind its links stands here: `Rig.start` builds it,
`device_of` reaches into it. When the inside changes, this file changes and no test does. `World` is a rig whose rows
carry serial numbers: `World.check` holds at any quiet moment, whatever came in.
"""

import itertools
import os
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Self, cast
from unittest import mock

import msgpack
import numpy as np
from numpy.typing import NDArray

from eyestream.core.calibration import Calibration
from eyestream.core.charge import Ceilings, Charge
from eyestream.core.chunking.device import Device
from eyestream.core.chunking.settings import DeviceSettings
from eyestream.core.mechanism import Mechanism, Session
from eyestream.core.mechanisms import build
from eyestream.core.reservation import Granted, Obstacle, Request, Withheld
from eyestream.rim.ledger.book import Book
from eyestream.rim.ledger.ledger import Ledger
from eyestream.rim.ledger.reading import create_ledger
from eyestream.rim.sidecar.pipeline import Arrival, Pipeline, PipelineCounters
from eyestream.rim.sidecar.sender import Outbox
from eyestream.streams import StreamKey
from eyestream.wire.raw import encode_raw
from eyestream.wire.topics import raw_topic
from eyestream_lab.testing.clocks import Clock
from eyestream_lab.testing.noise import WatchedNoise
from tests.rigs.calibrations import few_features

__all__ = [
    "CHARGE",
    "EPSILON",
    "FEATURES",
    "SCHEMA",
    "Disk",
    "Event",
    "N",
    "Rig",
    "World",
    "device_of",
    "device_settings",
    "forget_rows",
    "reserved_spans",
]

SCHEMA = 7
EPSILON = 4.8

Event = tuple[str, Any]
"""What happened: ("reserve", Request), ("withhold", Request), ("draw", None) or ("publish", topic)."""


class Disk:
    """Sees every fdatasync: what of the ledger at `path` a power cut would leave."""

    def __init__(self, path: Path, charge: int) -> None:
        self._path, self._charge, self._sync = path, charge, os.fdatasync
        self._durable = path.stat().st_size

    def __call__(self, fd: int) -> None:
        """In the place of os.fdatasync."""
        self._sync(fd)
        self._durable = self._path.stat().st_size

    def charges(self) -> int:
        """Charges in the durable bytes."""
        book = Book([self._path.read_bytes()[: self._durable]])
        return sum(known.account.odometer().epsilon for known in book.streams.values()) // self._charge


def device_settings(names: Sequence[str], n: int, device: str = "d0", **changes: Any) -> DeviceSettings:
    """A device that sends two rows a second of `names`, for chunks of `n`; `changes` are fields of `DeviceSettings`."""
    given = {"stream": "features", "schema": SCHEMA, "rate_hz": 2.0, "grace_s": 0.5, "idle_s": 30.0, "jump_chunks": 3}
    return DeviceSettings(id=device, names=tuple(names), n=n, **(given | changes))  # type: ignore[arg-type]


def device_of(pipeline: Pipeline, device: str) -> Device:
    """The rows' side of one device, which is not on the pipeline's face."""
    return pipeline._served[StreamKey(device, "features")].stream._order._device


def reserved_spans(pipeline: Pipeline) -> int:
    """Spans of rows of all devices that the ledger has answered and no chunk has used yet."""
    return sum(len(served.stream._order._answers) for served in pipeline._served.values())


def forget_rows(pipeline: Pipeline, device: str) -> None:
    """Let a pipeline forget which rows of the session it has closed and asked the ledger for: a fault."""
    order = pipeline._served[StreamKey(device, "features")].stream._order
    order._asked = None
    order._device._session._move_to(0)  # type: ignore[union-attr]


class _Tap:
    """A mechanism or a session of it, of which the first feature of every chunk is noted."""

    def __init__(self, inner: Mechanism | Session, note: list[list[int]]) -> None:
        self._inner, self._note = inner, note

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def session(self, snapshot: bytes | None = None) -> "_Tap":
        assert isinstance(self._inner, Mechanism)
        return _Tap(self._inner.session() if snapshot is None else self._inner.session(snapshot), self._note)

    def release(self, chunk: NDArray[np.float64]) -> NDArray[np.float64]:
        self._note.append([int(value) for value in chunk[0] if np.isfinite(value)])
        return self._inner.release(chunk)


class _WatchedLedger(Ledger):
    """The real one, whose answers are told."""

    tell: Callable[[list[Granted | Withheld]], None]

    def reserve(self, requests: Sequence[Request], day: int) -> list[Granted | Withheld]:
        answers = super().reserve(requests, day)
        self.tell(answers)
        return answers


class Rig:
    """A pipeline at work on the ledger in `folder`; a context manager that ends the process.

    Parameters
    ----------
    folder
        Where the ledger is, or is made; it outlives every process.
    devices
        Their pseudonyms.
    ceilings
        Of every device; none by default.
    calibration
        Of the mechanism, at `EPSILON` unless `epsilon` says otherwise; three features, chunks of four rows by default.
    mechanism
        In the place of one made from `calibration`; then "draw" is no event.
    watch_disk
        Look at every fdatasync: `disk` and `early` count by it.
    on_publish
        Is told each topic and payload beside `published`.
    options
        Fields of `DeviceSettings`.

    Attributes
    ----------
    clock : the time and the day, to be moved by hand.
    events : what was reserved, withheld, drawn and published, in order, over all processes.
    published : topics and payloads.
    answers : every request to the ledger with what stood in the way, None where it was granted.
    releases : first feature of each chunk that the mechanism was given, as integers, missing ones left out.
    bound : charges that were durable at each draw; with `watch_disk` alone.
    early : chunks that left before their charge was durable; with `watch_disk` alone.
    """

    def __init__(
        self,
        folder: Path,
        *,
        devices: Sequence[str] = ("d0",),
        ceilings: Ceilings | None = None,
        calibration: Calibration | None = None,
        epsilon: float = EPSILON,
        mechanism: Mechanism | None = None,
        watch_disk: bool = False,
        on_publish: Callable[[str, bytes], None] = lambda topic, payload: None,
        **options: Any,
    ) -> None:
        folder.mkdir(exist_ok=True)
        self.path = folder / "ledger"
        self.ceilings = ceilings or Ceilings()
        self.mechanism = mechanism or build(calibration or few_features(), epsilon, noise=WatchedNoise(self._drawn))
        self.charge = Charge.of(self.mechanism.epsilon, self.mechanism.delta)
        names, n = self.mechanism.calibration.names, self.mechanism.n
        self.settings = [device_settings(names, n, device, **options) for device in devices]
        self.clock = Clock()
        self.events: list[Event] = []
        self.published: list[tuple[str, bytes]] = []
        self.answers: list[tuple[Request, Obstacle | None]] = []
        self.releases: list[list[int]] = []
        self.bound: list[int] = []
        self.early = 0
        self._on_publish, self._watch_disk = on_publish, watch_disk
        if not self.path.exists():
            create_ledger(self.path, created=0)
        self.start()

    def start(self) -> None:
        """A new process on the same ledger; whatever the last one had in memory is gone."""
        self.clock.now = 0.0
        self.disk = Disk(self.path, self.charge.epsilon)
        self._before = self.disk.charges() - len(self.published) if self._watch_disk else 0
        self._patch = mock.patch("os.fdatasync", self.disk)
        if self._watch_disk:
            self._patch.start()
        self.ledger = _WatchedLedger(self.path, ceilings=self.ceilings)
        self.ledger.tell = self._answered
        self.pipeline = Pipeline(
            [(settings, cast(Mechanism, _Tap(self.mechanism, self.releases))) for settings in self.settings],
            self.ledger,
            today=self.clock.today,
            publish=self._publish,
            changed=lambda: None,
        )

    def kill(self) -> None:
        """The process ends without a word."""
        self.ledger.close()
        if self._watch_disk:
            self._patch.stop()

    def restart(self) -> None:
        """Killed, and started again."""
        self.kill()
        self.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.kill()

    @property
    def counters(self) -> PipelineCounters:
        """What became of messages and chunks in this process."""
        return self.pipeline.counters

    @property
    def granted(self) -> list[Request]:
        """What the ledger has allowed."""
        return [request for request, obstacle in self.answers if obstacle is None]

    def kinds(self) -> list[str]:
        """The kinds of the events, in order."""
        return [kind for kind, _ in self.events]

    def spent(self) -> int:
        """Epsilon of all devices in the ledger, in its units."""
        odometers = (self.ledger.odometer(settings.id) for settings in self.settings)
        return sum(odometer.epsilon for odometer in odometers if odometer is not None)

    def arrival(self, payload: bytes, device: str = "d0", at: float | None = None) -> Arrival:
        """Bytes from a device that arrive at `at`, or now."""
        return Arrival(raw_topic(device), payload, self.clock.now if at is None else at)

    def sent(
        self, rows: NDArray[np.float32], seq: int, session: int = 1, *, end: bool = False, device: str = "d0"
    ) -> Arrival:
        """Rows (m, F) of a tracker, the first of which has the number `seq`, that arrive now."""
        return self.arrival(encode_raw(session, seq, rows, self.settings[0].schema, end=end), device)

    async def take(self, *arrivals: Arrival, now: float | None = None) -> None:
        """Let the pipeline take messages and the time: the clock's, or `now`, which does not move the clock."""
        await self.pipeline.run_turn(arrivals, self.clock.now if now is None else now)

    async def wait(self, seconds: float) -> None:
        """Let time pass, and the pipeline wake up when it asked for it."""
        end = self.clock.now + seconds
        for _ in range(10_000):
            due = self.pipeline.next_due()
            if due is None or due > end:
                break
            self.clock.now = max(self.clock.now, due)
            await self.take()
        else:
            raise AssertionError("the pipeline asks to be woken again and again, and time does not pass")
        self.clock.now = end
        await self.take()

    def close(self) -> None:
        """End every session in order, now."""
        self.pipeline.close(self.clock.now)

    def device(self, device: str = "d0") -> Device:
        """The rows' side of one device."""
        return device_of(self.pipeline, device)

    def _drawn(self) -> None:
        self.events.append(("draw", None))
        if self._watch_disk:
            self.bound.append(self.disk.charges())

    def _answered(self, answers: list[Granted | Withheld]) -> None:
        for answer in answers:
            obstacle = answer.obstacle if isinstance(answer, Withheld) else None
            self.answers.append((answer.request, obstacle))
            self.events.append(("reserve" if obstacle is None else "withhold", answer.request))

    def _publish(self, topic: str, payload: bytes) -> None:
        self.published.append((topic, payload))
        self.events.append(("publish", topic))
        if self._watch_disk:
            self.early += self.disk.charges() - self._before < len(self.published)
        self._on_publish(topic, payload)


FEATURES, N = 3, 4
CHARGE = Charge.of(EPSILON)
LIFETIME_S = 8.0


@cache
def _mechanism() -> Mechanism:
    """One for all worlds, one after the other: to build it takes longer than most lives in the fuzzer."""
    return build(few_features(N, FEATURES), EPSILON)


class World(Rig):
    """Devices ``d0``, ``d1`` ... and one process after the other; `held` chunks fit into the outbox."""

    def __init__(
        self, folder: Path, *, devices: int = 1, ceilings: Ceilings | None = None, held: int = 64, **settings: Any
    ) -> None:
        self._held = held
        self.serials = itertools.count(1)
        self.origin: dict[int, tuple[str, int, int]] = {}
        self.delivered: list[bytes] = []
        names = [f"d{i}" for i in range(devices)]
        super().__init__(
            folder, devices=names, ceilings=ceilings, mechanism=_mechanism(), on_publish=self._put, **settings
        )

    def start(self) -> None:
        """A new process, with an outbox that is empty."""
        self.received = 0
        self.outbox = Outbox(self._held, LIFETIME_S)
        super().start()

    def _put(self, topic: str, payload: bytes) -> None:
        self.outbox.put(topic, payload, self.clock.now)

    def rows(self, seq: int, m: int = 1, session: int = 1, *, end: bool = False, device: str = "d0") -> Arrival:
        """A message with `m` rows that nobody sent before, to arrive now."""
        rows = np.zeros((m, FEATURES), np.float32)
        for i in range(m):
            serial = next(self.serials)
            rows[i, 0] = serial
            self.origin[serial] = (device, session, seq + i)
        return self.sent(rows, seq, session, end=end, device=device)

    async def take(self, *arrivals: Arrival, now: float | None = None) -> None:
        """As the rig's, and the messages are counted."""
        self.received += len(arrivals)
        await super().take(*arrivals, now=now)

    def deliver(self, *, acknowledge: bool = True) -> bytes | None:
        """Send the first entry; without an acknowledgement it will be sent again."""
        entry = self.outbox.first(self.clock.now)
        if entry is None:
            return None
        self.delivered.append(entry.payload)
        if acknowledge:
            self.outbox.acknowledge(entry, self.clock.now)
        return entry.payload

    def check(self) -> None:
        """What holds at any quiet moment."""
        counters, outbox = self.pipeline.counters, self.outbox
        assert self.received == counters.rejected.total() + counters.taken
        for settings in self.settings:
            c = self.pipeline.rows(settings.key)
            assert c.rows == c.accepted + c.duplicate + c.late + c.refused + c.stale_session + c.jump + c.wearer
        settled = counters.released + counters.withheld.total() + counters.dropped.total()
        assert counters.due == settled, "a chunk that nobody asked for"
        assert self.pipeline.failed or counters.dropped["ledger"] == 0
        assert counters.released == outbox.delivered + outbox.expired + outbox.overflow + outbox.refused + len(outbox)
        self._check_privacy()

    def _check_privacy(self) -> None:
        rows = Counter(self.origin[serial] for released in self.releases for serial in released)
        assert all(count == 1 for count in rows.values()), "a row is in two releases"
        granted = self.granted
        spans = Counter((g.key.device, g.session, row) for g in granted for row in range(g.first_row, g.last_row + 1))
        assert all(count == 1 for count in spans.values()), "a row is charged twice"
        assert rows.keys() <= spans.keys(), "a row is released and not charged"
        assert len(self.published) <= len(self.releases) <= len(granted)
        assert self.spent() == len(granted) * CHARGE.epsilon
        self._check_stream()

    def _check_stream(self) -> None:
        """Chunks of a private session follow one another, finite, each said once; a retry is the same bytes."""
        seen: dict[tuple[str, int], int] = {}
        for topic, payload in self.published:
            chunk = msgpack.unpackb(payload)
            key = (topic, chunk["session"])
            assert chunk["chunk"] > seen.get(key, -1)
            seen[key] = chunk["chunk"]
            assert np.isfinite(np.frombuffer(chunk["values"], "<f4")).all()
        assert set(self.delivered) <= {payload for _, payload in self.published}
