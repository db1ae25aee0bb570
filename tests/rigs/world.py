"""A tracker's world around a rig: processes that come and go, and what an outsider saw.

Three features, four rows a chunk, the real mechanism with fresh noise, a ledger on disk that outlives each process.
Every row that is sent carries a serial number of its own in its first feature, so that what is released says which
arrivals it was made of. `World.check` holds at any quiet moment, whatever came in.
"""

import itertools
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import msgpack
import numpy as np

from eyestream.core.charge import Ceilings, Charge
from eyestream.core.mechanism import Mechanism
from eyestream.core.mechanisms import build
from eyestream.rim.sidecar.outbox import Outbox
from eyestream.rim.sidecar.pipeline import Arrival
from tests.rigs.calibrations import few_features
from tests.rigs.rig import EPSILON, Rig

__all__ = ["CHARGE", "FEATURES", "N", "World"]

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
