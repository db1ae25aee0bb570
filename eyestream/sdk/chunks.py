"""The chunks of one stream as an application takes them, and what else happens on it."""

import asyncio
import contextlib
import logging
import re
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Generic, TypeVar

import numpy as np

from eyestream.errors import PayloadError
from eyestream.rim.mqtt.transport import Link, Message, RefusedError
from eyestream.sdk.chunk import Chunk
from eyestream.sdk.chunk_clock import ChunkClock
from eyestream.sdk.odometer import OdometerWatch, OtherLedger, WentBack
from eyestream.wire import topics
from eyestream.wire.release import CLAIM, Meta, PrivateChunk, decode_meta, decode_private
from eyestream.wire.status import Budget, Reading, Status, decode_budget, decode_reading, decode_status

Item = TypeVar("Item")

_LOG = logging.getLogger("eyestream.odometer")

_SILENT_CHUNKS = 3
"""Chunk lengths without a chunk, while the sidecar says that it is online, after which a stream counts as silent."""

_EARLY_S = 1e-6
"""A loop may wake a waiter so much too early. The rest of the wait may be less than its clock can show: then the waiter
would wait for no time at all, again and again."""

_REACH = re.compile(r"enters every row of its session within (\d{1,9}(?:\.\d{1,9})?) s of it")
"""The words of a guarantee that say how far back a row reaches."""

_SESSIONS = 64
"""Latest sessions whose chunks are known again; more than there can be among chunks that are sent a second time."""


class DropOldest(Generic[Item]):
    """Queue of at most `length` items between a client that must never wait and one consumer that may be slow.

    >>> queue = DropOldest(2)
    >>> for item in "abc":
    ...     queue.put(item)
    >>> queue.pop(), queue.pop(), queue.pop(), queue.dropped
    ('b', 'c', None, 1)
    """

    def __init__(self, length: int) -> None:
        self._items: deque[Item] = deque()
        self._length = length
        self._filled = asyncio.Event()
        self.dropped = 0
        """Items forgotten since the start."""

    def __len__(self) -> int:
        return len(self._items)

    def put(self, item: Item) -> None:
        """Append `item`; of a full buffer the oldest one is dropped and counted."""
        if len(self._items) == self._length:
            self._items.popleft()
            self.dropped += 1
        self._items.append(item)
        self._filled.set()

    async def wait(self) -> None:
        """Wait until there is an item."""
        if not self._items:
            self._filled.clear()
            await self._filled.wait()

    async def get(self) -> Item:
        """Take the oldest item, waiting for one. Cancellation takes nothing."""
        while not self._items:
            await self.wait()
        return self._items.popleft()

    def pop(self) -> Item | None:
        """Remove and return the oldest item, or None when there is none."""
        return self._items.popleft() if self._items else None


@dataclass(frozen=True, slots=True)
class Gap:
    """Chunks of a session that did not come: withheld, or lost on the way. The next event is the chunk after them.

    Attributes
    ----------
    session
        The sidecar's number of the session.
    first
        Number of the first chunk that is missing.
    count
        How many are missing.
    """

    session: int
    first: int
    count: int


@dataclass(frozen=True, slots=True)
class Silence:
    """No chunk for three chunk lengths, although the sidecar says that the stream is online. Said once.

    The tracker is off, or its headset is, or the sidecar was lost without a word.
    """

    seconds: float


@dataclass(frozen=True, slots=True)
class Connection:
    """The link to the broker was lost, or stands again."""

    up: bool


Event = Chunk | Gap | Silence | Connection | Status | Budget | WentBack | OtherLedger
"""Items of `Chunks.events`, in order. The sidecar's own words come as they are: how the stream is, what is left."""


def _gap_between(last: Chunk | None, chunk: Chunk) -> Gap | None:
    """Chunks that are missing between two others; a session that begins, or that one joins, has no gap."""
    if last is None or last.session != chunk.session or chunk.index == last.index + 1:
        return None
    return Gap(chunk.session, last.index + 1, chunk.index - last.index - 1)


class Chunks:
    """The chunks of one stream of one device as they arrive; an async iterator. Made by `subscribe`."""

    def __init__(
        self,
        device: str,
        buffer: int,
        stream: str = topics.FEATURE_STREAM,
        clock: Callable[[], float] = time.monotonic,
        odometer: OdometerWatch | None = None,
    ) -> None:
        self._place = f"{device}/{stream}"
        self._topics = (
            topics.meta_topic(device, stream),
            topics.status_topic(device, stream),
            topics.private_topic(device, stream),
        )
        self._budget_topic = topics.budget_topic(device, stream)
        self._odometer_topic = topics.odometer_topic(device, stream)
        self._known = frozenset((*self._topics, self._budget_topic, self._odometer_topic))
        self._arrived: DropOldest[Chunk] = DropOldest(buffer)
        # Kept by the broker, before the description:
        self._early: DropOldest[tuple[PrivateChunk, str | None, float]] = DropOldest(buffer)
        self._last: dict[int, int] = {}  # last chunk of each of the latest sessions
        self._clock, self._clocks = clock, dict[int, ChunkClock]()  # by session, as long as its last chunk is known
        self._subscribed = asyncio.Event()
        self._told, self._changed = asyncio.Event(), asyncio.Event()
        self.meta: Meta | None = None
        """The sidecar's description of the stream: names, units, mechanism, noise; None until it has come."""
        self.status: Status | None = None
        """The sidecar's last word on the device; None until it has said one."""
        self.budget: Budget | None = None
        """The rest of the budget: it comes after each chunk; None until then. A sidecar of 0.1.0 sends none."""
        self.odometer = odometer or OdometerWatch()
        """The watch of what the stream has spent, which notices that its ledger went back."""
        self._noticed: dict[type, WentBack | OtherLedger] = {}
        self.refusals: Counter[str] = Counter()
        """Messages that were no message of ours, or not of the stream that was described, by reason."""
        self.connected = False
        """Whether the link to the broker stands."""
        self.foreign = 0
        """Messages of topics that were not asked for: the client id has a session with other subscriptions."""

    def __aiter__(self) -> "Chunks":
        return self

    async def __anext__(self) -> Chunk:
        return await self._arrived.get()

    @property
    def exhausted(self) -> bool:
        """Whether a ceiling of the session, of the day or of all time withholds what comes, and all before has arrived.

        The sidecar says so in `status` at once; that `budget` has nothing left is said behind the last chunk.
        """
        said, left = self.status, self.budget
        spent = said is not None and said.state == "exhausted" and said.reason != "window"
        return spent and (left is None or left.chunks == 0)

    async def until_exhausted(self) -> AsyncIterator[Chunk]:
        """The chunks as they arrive, until the budget is spent; `budget` says when there is more.

        It ends when `exhausted` holds and what has arrived is taken. What a session had stays exhausted until the
        next one releases a chunk: who begins in between ends at once. Wait for what comes later with a plain
        ``async for chunk in chunks``.

        Examples
        --------
        >>> async def watch(chunks):
        ...     async for chunk in chunks.until_exhausted():
        ...         print(chunk.values.mean(axis=1))
        ...     print(chunks.budget)
        """
        while True:
            if (chunk := self._arrived.pop()) is not None:
                yield chunk
            elif self.exhausted:
                return
            else:
                await self._told.wait()

    async def events(self) -> AsyncIterator[Event]:
        """Chunks, and what happens between them: see `eyestream.sdk.chunks`.

        Of several states between two chunks that are taken, the latest one comes.

        Examples
        --------
        >>> async def watch(chunks):
        ...     async for event in chunks.events():
        ...         match event:
        ...             case Chunk():
        ...                 print(event.values.mean(axis=1))
        ...             case Gap() | Silence() | Connection():
        ...                 print("no gaze for now:", event)
        """
        said: dict[type, object] = {Connection: Connection(True)}
        last: Chunk | None = None
        clock = asyncio.get_running_loop().time
        since = clock()
        while True:
            told = self._told
            if (chunk := self._arrived.pop()) is not None:
                if (gap := _gap_between(last, chunk)) is not None:
                    yield gap
                yield chunk
                last, since = chunk, clock()
                said.pop(Silence, None)
                continue
            states = (Connection(self.connected), self.status, self.budget, self._silence(clock() - since))
            for now in (*self._noticed.values(), *states):
                before = said.get(type(now))
                # A ledger that changes to another one, and again, says the same words of each change.
                if now is not None and now is not before and (now != before or isinstance(now, OtherLedger)):
                    said[type(now)] = now
                    if isinstance(now, Connection | Status):  # from here on a chunk may be expected
                        since = clock()
                    yield now
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._patience_s(clock() - since)):
                    await told.wait()

    def _silence(self, silent_s: float) -> Silence | None:
        """The event of no chunk for so long; none while the stream is described as not releasing."""
        online = self.connected and self.status is not None and self.status.state == "online"
        length = self._chunk_s
        return Silence(_SILENT_CHUNKS * length) if online and length and self._patience_s(silent_s) is None else None

    def _patience_s(self, silent_s: float) -> float | None:
        left = _SILENT_CHUNKS * self._chunk_s - silent_s
        return left if left > _EARLY_S else None

    @property
    def _chunk_s(self) -> float:
        return 0.0 if self.meta is None else self.meta.n / self.meta.rate_hz

    @property
    def refused(self) -> int:
        """Messages that were refused, for whatever reason."""
        return self.refusals.total()

    async def changed(self) -> None:
        """Return when the sidecar has said something new of the stream: `meta`, `status` or `budget`."""
        await self._changed.wait()

    @property
    def dropped(self) -> int:
        """Chunks that were not taken in time; the oldest go first."""
        return self._arrived.dropped + self._early.dropped

    async def _serve(self, link: Link) -> None:
        with contextlib.suppress(RefusedError):  # rights of before there was this topic: all else works without it
            await link.subscribe(self._odometer_topic, 0)  # of QoS 0 nothing is queued, and nothing comes again
        with contextlib.suppress(RefusedError):
            await link.subscribe(self._budget_topic, topics.QOS)  # first: who hears `exhausted` knows what is left
        await link.subscribe_all(self._topics, topics.QOS)  # the description before the chunks
        self._subscribed.set()
        self._stand(True)
        try:
            await asyncio.Event().wait()
        finally:
            self._stand(False)

    def _stand(self, connected: bool) -> None:
        self.connected = connected
        self._tell(True)

    def _deliver(self, message: Message) -> None:
        meta, status, private = self._topics
        if message.topic not in self._known:  # nobody asked for it here: another's is never taken for this device's
            self.foreign += 1
            return
        try:
            if message.topic == meta:
                self.meta = decode_meta(message.payload)
                while (early := self._early.pop()) is not None:
                    self._accept(*early)
            elif message.topic == status:
                self.status = decode_status(message.payload)
            elif message.topic == private:
                claim = dict(message.more.user).get(CLAIM)
                self._accept(decode_private(message.payload), claim, self._clock())
            elif message.topic == self._budget_topic:
                self.budget = decode_budget(message.payload)
            else:
                self._note_reading(decode_reading(message.payload), kept=message.retain)
        except PayloadError as error:
            self.refusals[error.reason] += 1
        self._tell(message.topic != private)

    def _note_reading(self, reading: Reading, *, kept: bool) -> None:
        found = self.odometer.note(reading, kept=kept)
        if found is not None:
            self._noticed[type(found)] = found
            level = logging.INFO if isinstance(found, OtherLedger) and found.moved else logging.WARNING
            _LOG.log(level, "%s: %s", self._place, found)

    def _tell(self, changed: bool) -> None:
        """Wake whoever waits for something new."""
        told, self._told = self._told, asyncio.Event()
        told.set()
        if changed:
            before, self._changed = self._changed, asyncio.Event()
            before.set()

    def _accept(self, chunk: PrivateChunk, claim: str | None, received: float) -> None:
        if self.meta is None:
            self._early.put((chunk, claim, received))
            return
        if len(self.meta.names) != len(chunk.values):
            self.refusals["shape"] += 1
            return
        last = self._last.pop(chunk.session, -1)
        self._last[chunk.session] = max(last, chunk.chunk)
        if len(self._last) > _SESSIONS:
            oldest = next(iter(self._last))
            del self._last[oldest]
            self._clocks.pop(oldest, None)
        if chunk.chunk <= last:
            return  # at-least-once delivery: the same bytes again
        t = chunk.t0 + chunk.dt * np.arange(chunk.values.shape[1], dtype=np.float64)
        when, error_s = self._clocks.setdefault(chunk.session, ChunkClock()).take(t, received)
        self._arrived.put(
            Chunk(
                session=chunk.session,
                index=chunk.chunk,
                names=tuple(self.meta.names),
                t=t,
                values=chunk.values,
                epsilon=chunk.epsilon,
                delta=chunk.delta,
                guarantee=self.meta.guarantee,
                at=chunk.at,
                claim=claim,
                units=tuple(self.meta.units),
                noise_sd=self.meta.noise_sd,
                when=when,
                when_error_s=error_s,
                received=received,
                mechanism=self.meta.mechanism,
                reach_s=_reach(self.meta.guarantee, 0.0 if len(t) > 1 else chunk.dt),
            )
        )


@lru_cache(maxsize=8)
def _reach(guarantee: str, column_s: float) -> float | None:
    """Seconds of gaze before the moment of a column that it may depend on: of its rows, and of what a row describes.

    A column that is alone in its chunk may stand for rows of all of it, and has its first moment.
    """
    found = _REACH.search(guarantee)
    return None if found is None else float(found[1]) + column_s
