"""A whole sidecar without a broker: messages go in where the raw link delivers them, chunks come out to a link of ours.

What the process holds is measured at the process, and what became of everything is asked of its own counters.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

from eyestream.rim.config import LimitSettings
from eyestream.rim.files import calibrations
from eyestream.rim.mqtt.messages import NO_PROPERTIES, Properties
from eyestream.rim.mqtt.transport import Message
from eyestream.rim.sidecar.sidecar import Sidecar
from eyestream.streams import StreamKey
from eyestream.wire.messages import encode_raw, rows_per_message
from tests.rigs.payloads import rows_of_a_stranger
from tests.rigs.sidecar import NO_BROKER, opened, settings_for

__all__ = ["FEATURES", "MOST_ROWS", "Flood", "N", "PrivateLink", "flooding", "hand_over"]

SCHEMA, N = 1, 32
CALIBRATION = calibrations.load("everyday-cfpa-32")
FEATURES = len(CALIBRATION.names)
MOST_ROWS = rows_per_message(FEATURES)


class PrivateLink:
    """A broker that acknowledges at once, or, while it is blocked, never; or, without `acknowledges`, no chunk at all.

    `on_send` is told each chunk that is handed over, `on_chunk` each that is acknowledged.
    """

    def __init__(self, *, acknowledges: bool = True) -> None:
        self._acknowledges = acknowledges
        self._free = asyncio.Event()
        self._free.set()
        self._unacknowledged: list[tuple[str, bytes, Callable[[], None]]] = []
        self._statements: list[Callable[[], None]] = []
        self.chunks = 0
        self.statements = 0
        self.oldest_s = 0.0
        """The longest that a delivered chunk had waited when it was handed over."""
        self.on_chunk: Callable[[str, bytes], None] = lambda topic, payload: None
        self.on_send: Callable[[str, bytes], None] = lambda topic, payload: None

    def block(self, blocked: bool) -> None:
        """Stop acknowledging, or go on."""
        if blocked:
            self._free.clear()
        else:
            self._free.set()
            asyncio.get_running_loop().call_soon(self._acknowledge)

    resumed = False

    async def state(self, statements: Sequence[tuple[str, bytes]]) -> dict[str, str]:
        """As the link's: returns with the acknowledgements."""
        await self._free.wait()
        await asyncio.sleep(0)
        self.statements += len(statements)
        return {}

    def send(
        self,
        topic: str,
        payload: bytes,
        acknowledged: Callable[[], None],
        refused: Callable[[str], None],
        *,
        retain: bool = False,
        more: Properties = NO_PROPERTIES,
    ) -> None:
        """As the link's: a chunk or a statement, acknowledged later."""
        if retain:
            self._statements.append(acknowledged)
        else:
            self.on_send(topic, payload)
            self._unacknowledged.append((topic, payload, acknowledged))
        asyncio.get_running_loop().call_soon(self._acknowledge)

    def _acknowledge(self) -> None:
        while self._free.is_set() and self._statements:
            self.statements += 1
            self._statements.pop(0)()
        while self._acknowledges and self._free.is_set() and self._unacknowledged:
            topic, payload, acknowledged = self._unacknowledged.pop(0)
            self.chunks += 1
            self.on_chunk(topic, payload)
            acknowledged()


class Flood:
    """The sidecar under load and those who send to it."""

    def __init__(self, sidecar: Sidecar, link: PrivateLink, devices: int) -> None:
        self.sidecar, self.link = sidecar, link
        self.devices = [f"d{i}" for i in range(devices)]
        self.seq = dict.fromkeys(self.devices, 0)
        self.session = dict.fromkeys(self.devices, 1)
        self._rows = rows_of_a_stranger(MOST_ROWS, FEATURES)

    def send(self, payload: bytes, device: str = "d0", *, retain: bool = False) -> None:
        """A message arrives."""
        self.sidecar.worker.receive(Message(f"eyestream/v1/{device}/features/raw", payload, retain))

    def rows(self, m: int, device: str = "d0", *, end: bool = False) -> bytes:
        """The next `m` rows of a device."""
        payload = encode_raw(self.session[device], self.seq[device], self._rows[:m], SCHEMA, end=end)
        self.seq[device] += m
        return payload

    def next_session(self, device: str = "d0") -> None:
        """The tracker begins anew."""
        self.session[device] += 1
        self.seq[device] = 0

    async def room(self, most: int) -> None:
        """Wait until no more than `most` messages wait: the fastest sender that loses nothing."""
        await asyncio.sleep(0)
        while self.sidecar.worker.held > most:  # noqa: ASYNC110  there is no event for it
            await asyncio.sleep(0.001)

    async def quiet(self) -> None:
        """Wait until nothing is under way inside; what waits for the broker may go on waiting."""
        still = 0
        while still < 3:
            await asyncio.sleep(0.01)
            counters = self.sidecar.pipeline.counters
            busy = self.sidecar.worker.held or counters.due != self.settled
            still = 0 if busy else still + 1

    def lose_messages(self) -> None:
        """Let what waits to be read vanish uncounted: a fault."""
        inbox = self.sidecar.worker._inbox
        while inbox:
            inbox.pop()

    def lose_chunk(self) -> None:
        """Let the last released chunk vanish uncounted: a fault."""
        self.sidecar.outbox._waiting.pop()

    @property
    def settled(self) -> int:
        """Chunks whose fate is known."""
        counters = self.sidecar.pipeline.counters
        return counters.released + counters.withheld.total() + counters.dropped.total()

    def check(self, *, quiet: bool) -> None:
        """The law of conservation; chunks between due and settled only while a write to the ledger is under way."""
        sidecar = self.sidecar
        counters, outbox = sidecar.pipeline.counters, sidecar.outbox
        messages = counters.rejected.total() + sidecar.worker.dropped + counters.taken + sidecar.worker.held
        assert sidecar.worker.received == messages, "messages"
        for device in self.devices:
            c = sidecar.pipeline.rows(StreamKey(device, "features"))
            assert c.rows == c.accepted + c.duplicate + c.late + c.refused + c.stale_session + c.jump + c.wearer, "rows"
        assert counters.due == self.settled if quiet else counters.due >= self.settled, "chunks"
        held = outbox.delivered + outbox.expired + outbox.overflow + outbox.refused + len(outbox)
        assert counters.released == held, "released chunks"


@contextlib.asynccontextmanager
async def flooding(
    folder: Path, *, devices: int = 1, limits: LimitSettings | None = None, **stream: Any
) -> AsyncIterator[Flood]:
    """A sidecar at work, with a private link that stands."""
    limits = limits or LimitSettings(raw_messages=256, released_chunks=256, deadline_s=1.0)
    names = tuple(f"d{i}" for i in range(devices))
    settings = settings_for(NO_BROKER, folder, devices=names, limits=limits, **stream)
    link = PrivateLink()
    with opened(settings) as sidecar:
        _note_age(sidecar, link)
        work = asyncio.create_task(sidecar.worker.run(), name="devices")
        private = asyncio.create_task(hand_over(sidecar, link), name="private link")
        try:
            yield Flood(sidecar, link, devices)
        finally:
            sidecar.worker.stop()
            await work
            private.cancel()
            await asyncio.gather(private, return_exceptions=True)


async def hand_over(sidecar: Sidecar, link: PrivateLink) -> None:
    """Let the sidecar publish through `link`, for as long as that stands."""
    await sidecar._sender.serve(link)  # type: ignore[arg-type]


def _note_age(sidecar: Sidecar, link: PrivateLink) -> None:
    """Let the link note how long each chunk had waited when it was handed over."""
    outbox, clock = sidecar.outbox, asyncio.get_running_loop().time
    first = outbox.first

    def noted(now: float) -> Any:
        entry = first(now)
        if entry is not None:
            link.oldest_s = max(link.oldest_s, clock() - (entry.deadline - outbox._lifetime_s))
        return entry

    outbox.first = noted  # type: ignore[method-assign]
