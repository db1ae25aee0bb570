"""From raw messages to released payloads, for all devices of one sidecar: everything but the links.

The order is the one that the guarantee needs. A chunk is reserved durably when it opens (or falls due unopened); only
then is noise bound to it; only then are bytes handed on. What the budget withholds takes its slot; what the mechanism
cannot release is dropped and counted. Nothing else ever leaves.
"""

import asyncio
import logging
import secrets
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from eyestream.chunking.chunks import DueChunk, RowSpan
from eyestream.chunking.device import Device
from eyestream.chunking.session import Counters as RowCounters
from eyestream.chunking.settings import DeviceSettings
from eyestream.errors import LedgerError, PayloadError
from eyestream.privacy.accountant import Obstacle, Request, Withheld
from eyestream.privacy.charge import Charge
from eyestream.privacy.mechanism import Mechanism, Releaser
from eyestream.rim.ledger.ledger import Ledger
from eyestream.rim.sidecar.timers import Timers
from eyestream.streams.key import StreamKey
from eyestream.wire.messages import PrivateChunk, Status, decode_raw, encode_private
from eyestream.wire.topics import private_topic, raw_topic

__all__ = ["Arrival", "Counters", "Pipeline"]

_LOG = logging.getLogger("eyestream.release")

_EXHAUSTED: dict[Obstacle, Status] = {
    "window": Status("exhausted", "window"),
    "session": Status("exhausted", "session"),
    "day": Status("exhausted", "day"),
    "lifetime": Status("exhausted", "lifetime"),
    "change": Status("exhausted", "session"),  # another chunk length or window: from the next session on
}
_READY = Status("online", "ready")


@dataclass(frozen=True, slots=True)
class Arrival:
    """A raw message and when it came, on the loop's clock."""

    topic: str
    payload: bytes
    at: float


@dataclass(slots=True)
class Counters:
    """Envelopes and chunks by what became of them; nothing here depends on a value.

    At any quiet moment ``due == released + sum(withheld) + sum(dropped)``.
    """

    taken: int = 0
    """Messages whose rows went to their device."""
    rejected: Counter[str] = field(default_factory=Counter)
    """Messages refused, by reason."""
    due: int = 0
    """Chunks that fell due."""
    released: int = 0
    withheld: Counter[str] = field(default_factory=Counter)
    """Chunks that the ledger did not allow, by obstacle."""
    dropped: Counter[str] = field(default_factory=Counter)
    """Chunks lost to a fault: ``mechanism``, ``ledger``; or not reserved at the end: ``stopped``."""


class _Line:
    """One device and what the sidecar knows of it."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.topic = private_topic(device.settings.id, device.settings.stream)
        self.answers: dict[RowSpan, Obstacle | None] = {}
        self.asked: RowSpan | None = None
        self.private_session = 0
        self.releaser: Releaser | None = None
        self.status = _READY

    def request(self, span: RowSpan, charge: Charge) -> Request:
        settings = self.device.settings
        key = StreamKey(settings.id, settings.stream)
        return Request(key, span.session, span.first_row, span.last_row, settings.n, charge)


class Pipeline:
    """Devices, ledger and mechanism in the right order.

    Parameters
    ----------
    devices
        Settings of every device served; all of one stream.
    mechanism
        What releases their chunks.
    ledger
        Open, and ours alone.
    today
        Days since 1970, UTC.
    publish
        Is given the private topic and the payload of each released chunk.
    changed
        Called when the status of a device has changed.
    """

    def __init__(
        self,
        devices: Sequence[DeviceSettings],
        mechanism: Mechanism,
        ledger: Ledger,
        *,
        today: Callable[[], int],
        publish: Callable[[str, bytes], None],
        changed: Callable[[], None],
    ) -> None:
        self._mechanism = mechanism
        self._charge = Charge.of(mechanism.epsilon, mechanism.delta)
        self._ledger = ledger
        self._today = today
        self._publish = publish
        self._changed = changed
        self._lines = {raw_topic(settings.id, settings.stream): self._line(settings) for settings in devices}
        self._timers: Timers[_Line] = Timers()
        self._asks: list[tuple[_Line, RowSpan]] = []
        self._unreserved: list[tuple[_Line, DueChunk]] = []
        self.counters = Counters()
        self.failed = False
        """The ledger could not be written: nothing is released any more."""

    def _line(self, settings: DeviceSettings) -> _Line:
        return _Line(Device(settings, self._ledger.mark(StreamKey(settings.id, settings.stream))))

    def status(self, device: str) -> Status:
        """The state of one device as far as its chunks go."""
        return Status("degraded", "ledger") if self.failed else self._lines[raw_topic(device)].status

    def rows(self, device: str) -> RowCounters:
        """What became of the rows of one device: live, to be read only."""
        return self._lines[raw_topic(device)].device.counters

    def next_due(self) -> float | None:
        """When `take` must be called if no message comes; None: nothing is awaited."""
        return self._timers.next()

    @property
    def waits(self) -> bool:
        """Whether something is to be reserved: `take` does it."""
        return bool(self._asks or self._unreserved)

    def feed(self, arrival: Arrival) -> None:
        """Take one message: a chunk that it completes is released at once when it is reserved, else by `take`.

        Not to be called while `take` is under way.
        """
        line = self._lines.get(arrival.topic)
        if line is None:
            self.counters.rejected["topic"] += 1
            return
        settings = line.device.settings
        try:
            rows = decode_raw(arrival.payload, settings.features, settings.schema)
        except PayloadError as error:
            self.counters.rejected[error.reason] += 1
            return
        self.counters.taken += 1
        self._collect(line, line.device.feed(rows, arrival.at))

    async def take(self, arrivals: Iterable[Arrival], now: float) -> None:
        """Take messages in the order of their arrival, let the clock close what is due by `now`, then reserve."""
        for arrival in arrivals:
            self.feed(arrival)
        for line in self._timers.due(now):
            awaited = line.device.next_due()
            if awaited is not None and awaited <= now:
                self._collect(line, line.device.tick(now))
            else:
                self._timers.set(line, awaited)
        asks, self._asks = self._asks, []
        unreserved, self._unreserved = self._unreserved, []
        if asks:
            await self._reserve(asks)
        for line, chunk in unreserved:
            self._settle(line, chunk)

    def close(self, now: float) -> None:
        """End every session: what is reserved is released, the rest is dropped."""
        for line in self._lines.values():
            chunks = line.device.close(now)
            self.counters.due += len(chunks)
            for chunk in chunks:
                if chunk.span in line.answers:
                    self._settle(line, chunk)
                else:
                    self.counters.dropped["stopped"] += 1

    def _collect(self, line: _Line, chunks: list[DueChunk]) -> None:
        """Settle what is reserved; note what to reserve (due unasked, or newly sure to come) and when to look again."""
        self.counters.due += len(chunks)
        for chunk in chunks:  # first of all: somebody waits for it
            if chunk.span in line.answers:
                self._settle(line, chunk)
            else:
                self._unreserved.append((line, chunk))
        for span in [*(chunk.span for chunk in chunks), *line.device.coming]:
            if line.asked is None or (line.asked.session, line.asked.first_row) < (span.session, span.first_row):
                line.asked = span
                self._asks.append((line, span))
        self._timers.set(line, line.device.next_due())

    async def _reserve(self, asks: list[tuple[_Line, RowSpan]]) -> None:
        if self.failed:
            return
        requests = [line.request(span, self._charge) for line, span in asks]
        try:
            answers = await asyncio.to_thread(self._ledger.reserve, requests, self._today())
        except LedgerError as error:
            _LOG.error("%s; no chunk is released any more", error)
            self.failed = True
            self._changed()
            return
        for (line, span), answer in zip(asks, answers, strict=True):
            line.answers[span] = answer.obstacle if isinstance(answer, Withheld) else None

    def _settle(self, line: _Line, chunk: DueChunk) -> None:
        """Release, withhold or drop one due chunk; one of index 0 begins another session for those who listen."""
        if chunk.index == 0:
            line.releaser = None
        reserved = chunk.span in line.answers
        obstacle = line.answers.pop(chunk.span, None)
        if self.failed or not reserved:
            self.counters.dropped["ledger"] += 1
        elif obstacle is not None:
            self.counters.withheld[obstacle] += 1
            self._say(line, _EXHAUSTED.get(obstacle, line.status))
        else:
            self._release(line, chunk)

    def _release(self, line: _Line, chunk: DueChunk) -> None:
        if line.releaser is None:
            line.private_session = secrets.randbits(64)
            line.releaser = self._mechanism.session()
        try:
            values = line.releaser.release(chunk.values).astype(np.float32)
            payload = encode_private(
                PrivateChunk(
                    session=line.private_session,
                    chunk=chunk.index,
                    t0=chunk.t0,
                    dt=1.0 / line.device.settings.rate_hz,
                    values=values,
                    epsilon=self._mechanism.epsilon,
                    delta=self._mechanism.delta,
                )
            )
        except Exception as error:  # whatever it is, the chunk is lost and the process lives; only the type is said
            self.counters.dropped["mechanism"] += 1
            _LOG.error("a chunk is dropped: the mechanism failed with %s", type(error).__name__)
            self._say(line, Status("degraded", "internal"))
            return
        self.counters.released += 1
        self._say(line, _READY)
        self._publish(line.topic, payload)

    def _say(self, line: _Line, status: Status) -> None:
        if status != line.status:
            line.status = status
            _LOG.info("device %s: %s, %s", line.device.settings.id, status.state, status.reason)
            self._changed()
