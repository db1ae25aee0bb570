"""A tracker's world around a real pipeline and a real ledger: processes that come and go, and what an outsider saw.

Three features, four rows a chunk, the real mechanism with fresh noise, a ledger on disk that outlives each process.
Every row that is sent carries a serial number of its own in its first feature, so that what is released says which
arrivals it was made of. `World.check` holds at any quiet moment, whatever came in.
"""

import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import msgpack
import numpy as np

from eyestream.chunking.settings import DeviceSettings
from eyestream.privacy.accountant import Obstacle, Request
from eyestream.privacy.calibration import Calibration, PerFeatureTables, declared_range
from eyestream.privacy.charge import Ceilings, Charge
from eyestream.privacy.mechanisms import CFPA
from eyestream.privacy.noise import SecureNoise
from eyestream.privacy.reservation import Granted, Withheld
from eyestream.rim.files import calibrations
from eyestream.rim.ledger.ledger import Ledger
from eyestream.rim.ledger.reading import create_ledger
from eyestream.rim.sidecar.outbox import Outbox
from eyestream.rim.sidecar.pipeline import Arrival, Pipeline
from eyestream.wire.messages import encode_raw

FEATURES, SCHEMA, N = 3, 7, 4
EPSILON = 4.8
CHARGE = Charge.of(EPSILON)
LIFETIME_S = 8.0


@cache
def calibration(n: int = N) -> Calibration:
    """Three features of a shipped calibration, for chunks of `n` rows."""
    known = calibrations.load("everyday-cfpa-32")
    tables = known.tables
    assert isinstance(tables, PerFeatureTables)
    few = np.flatnonzero(~known.constant)[:FEATURES]
    narrow = replace(
        known,
        names=("a", "b", "c"),
        units=tuple(known.units[i] for i in few),
        declared=known.declared[few],
        lo=known.lo[few],
        hi=known.hi[few],
        fill=known.fill[few],
        tables=PerFeatureTables(**{name: array[few] for name, array in vars(tables).items()}),
    )
    return declared_range(narrow, n)


class WatchedMechanism(CFPA):
    """The real one, that notes the serial numbers in each chunk it is given."""

    releases: list[list[int]]

    def release(self, chunk: np.ndarray) -> np.ndarray:
        self.releases.append([int(serial) for serial in chunk[0] if not np.isnan(serial)])
        return super().release(chunk)


@cache
def _mechanism() -> WatchedMechanism:
    """One for all worlds, one after the other: to build it takes longer than most lives in the fuzzer."""
    return WatchedMechanism(calibration(), EPSILON, noise=SecureNoise())


class WatchedLedger(Ledger):
    """The real one, that notes what it has granted, and every answer."""

    granted: list[Request]
    answers: list[tuple[Request, Obstacle | None]]

    def reserve(self, requests: Sequence[Request], day: int) -> list[Granted | Withheld]:
        answers = super().reserve(requests, day)
        self.granted += [answer.request for answer in answers if isinstance(answer, Granted)]
        self.answers += [(a.request, a.obstacle if isinstance(a, Withheld) else None) for a in answers]
        return answers


class World:
    """Devices ``d0``, ``d1`` ... and one process after the other."""

    def __init__(
        self, folder: Path, *, devices: int = 1, ceilings: Ceilings | None = None, held: int = 64, **settings: Any
    ) -> None:
        folder.mkdir(exist_ok=True)
        self._path = folder / "ledger"
        self._ceilings = ceilings or Ceilings()
        self._held = held
        given = {"rate_hz": 2.0, "n": N, "grace_s": 0.5, "idle_s": 30.0, "jump_chunks": 3} | settings
        self.settings = [
            DeviceSettings(id=f"d{i}", stream="features", schema=SCHEMA, names=calibration().names, **given)
            for i in range(devices)
        ]
        self.day = 20_000
        self.sent = 0
        self.serials = itertools.count(1)
        self.origin: dict[int, tuple[str, int, int]] = {}
        self.releases: list[list[int]] = []
        self.granted: list[Request] = []
        self.answers: list[tuple[Request, Obstacle | None]] = []
        self.published: list[tuple[str, bytes]] = []
        self.delivered: list[bytes] = []
        create_ledger(self._path, created=0)
        self.start()

    def start(self) -> None:
        """A new process on the same ledger; whatever the last one had in memory is gone."""
        self.received = 0
        self.now = 0.0
        self.ledger = WatchedLedger(self._path, ceilings=self._ceilings)
        self.ledger.granted, self.ledger.answers = self.granted, self.answers
        mechanism = _mechanism()
        mechanism.releases = self.releases
        self.outbox = Outbox(self._held, LIFETIME_S)
        self.pipeline = Pipeline(
            self.settings,
            mechanism,
            self.ledger,
            today=lambda: self.day,
            publish=self._publish,
            changed=lambda: None,
        )

    def kill(self) -> None:
        """The process ends without a word."""
        self.ledger.close()

    def restart(self) -> None:
        """Killed, and started again."""
        self.kill()
        self.start()

    def _publish(self, topic: str, payload: bytes) -> None:
        self.published.append((topic, payload))
        self.outbox.put(topic, payload, self.now)

    def rows(self, seq: int, m: int = 1, session: int = 1, *, end: bool = False, device: int = 0) -> Arrival:
        """A message with `m` rows that nobody sent before, to arrive now."""
        rows = np.zeros((m, FEATURES), np.float32)
        for i in range(m):
            serial = next(self.serials)
            rows[i, 0] = serial
            self.origin[serial] = (f"d{device}", session, seq + i)
        return self.arrival(encode_raw(session, seq, rows, SCHEMA, end=end), device)

    def arrival(self, payload: bytes, device: int = 0) -> Arrival:
        """Bytes that arrive now."""
        return Arrival(f"eyestream/v1/d{device}/features/raw", payload, self.now)

    async def take(self, *arrivals: Arrival, now: float | None = None) -> None:
        """Let the pipeline take messages and the time."""
        self.received += len(arrivals)
        await self.pipeline.take(arrivals, self.now if now is None else now)

    async def wait(self, seconds: float) -> None:
        """Let time pass, and the pipeline wake up when it asked for it."""
        end = self.now + seconds
        for _ in range(10_000):
            due = self.pipeline.next_due()
            if due is None or due > end:
                break
            self.now = max(self.now, due)
            await self.take()
        else:
            raise AssertionError("the pipeline asks to be woken again and again, and time does not pass")
        self.now = end
        await self.take()

    def deliver(self, *, acknowledge: bool = True) -> bytes | None:
        """Send the first entry; without an acknowledgement it will be sent again."""
        entry = self.outbox.first(self.now)
        if entry is None:
            return None
        self.delivered.append(entry.payload)
        if acknowledge:
            self.outbox.acknowledge(entry, self.now)
        return entry.payload

    def device(self, index: int = 0) -> Any:
        """The device behind a topic; its counters are not on the pipeline's face."""
        return self.pipeline._lines[f"eyestream/v1/d{index}/features/raw"].device

    def check(self) -> None:
        """What holds at any quiet moment."""
        counters, outbox = self.pipeline.counters, self.outbox
        assert self.received == counters.rejected.total() + counters.taken
        for index in range(len(self.settings)):
            c = self.pipeline.rows(f"d{index}")
            assert c.rows == c.accepted + c.duplicate + c.late + c.refused + c.stale_session + c.jump
        assert counters.due == counters.released + counters.withheld.total() + counters.dropped.total()
        assert self.pipeline.failed or counters.dropped["ledger"] == 0, "a chunk that nobody asked for"
        assert counters.released == outbox.delivered + outbox.expired + outbox.overflow + len(outbox)
        self._check_privacy()

    def _check_privacy(self) -> None:
        rows = Counter(self.origin[serial] for released in self.releases for serial in released)
        assert all(count == 1 for count in rows.values()), "a row is in two releases"
        rows_of = ((grant, row) for grant in self.granted for row in range(grant.first_row, grant.last_row + 1))
        spans = Counter((grant.key.device, grant.session, row) for grant, row in rows_of)
        assert all(count == 1 for count in spans.values()), "a row is charged twice"
        assert rows.keys() <= spans.keys(), "a row is released and not charged"
        assert len(self.published) <= len(self.releases) <= len(self.granted)
        spent = sum(
            odometer.epsilon
            for settings in self.settings
            if (odometer := self.ledger.odometer(settings.id)) is not None
        )
        assert spent == len(self.granted) * CHARGE.epsilon
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
