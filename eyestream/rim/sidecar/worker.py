"""The schedule of a sidecar: what arrives is treated as it comes, or in batches; what the clock makes due, in time."""

import asyncio
import contextlib
import math
from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

from eyestream.core.chunking.settings import DeviceSettings
from eyestream.rim.mqtt.transport import Message
from eyestream.rim.refusals import Refusals
from eyestream.rim.sidecar.pipeline import Arrival, Pipeline, RowArrival
from eyestream.streams import StreamKey
from eyestream.wire.envelope import FLOAT32, MAX_PAYLOAD_BYTES
from eyestream.wire.raw import ROWS, RawRows
from eyestream.wire.topics import raw_topic

Item = TypeVar("Item")
Sender = TypeVar("Sender")

_BATCH = 64
"""Messages that are treated together, at most: their reservations share one write to the disk."""

_TIMES = 4
"""Times its rate at which a stream may send, and a burst besides. A stream that sends more counts as a flood."""

_SLICE_S = 0.002
"""Time in a batch for the second and later messages of one stream, where a sidecar has several streams."""

_FLOOD_SLICE_S = 0.0005
"""The same for a stream that floods: the messages of other streams wait for this time."""

_REST = 4
"""After a batch with messages of a stream that floods, that stream waits for this many times as long as the batch took.
So it has a fifth of the time at most, however much work its messages are."""

_LONGEST_REST_S = 0.5
"""A disk that stands still for a minute is nobody's flood."""

_ROW_BYTES = 136
"""Bytes of a message with one row, besides 4 for each value: the keys, and the row's time."""

_FLOOD = {
    "flood": "it sends far more than its rate_hz. Its messages wait for those of other streams, and the oldest are "
    "dropped unread. Look for a sender in a loop, or for two senders at one topic"
}


class FairQueue(Generic[Sender, Item]):
    """Items of many senders, one of each in turn; who sends too many loses their own oldest, and nobody else's.

    >>> queue = FairQueue(3)
    >>> [queue.put(sender, item) for sender, item in [("a", 1), ("a", 2), ("b", 3), ("a", 4)]]
    [None, None, None, 'a']
    >>> [queue.pop() for _ in range(len(queue))]
    [2, 3, 4]

    Every call takes the same short time, however many wait, but one: to make room for a sender with few items, `put`
    looks for the sender with the most.

    Parameters
    ----------
    length
        Items held at most, of all senders together.
    """

    def __init__(self, length: int) -> None:
        self._ready: OrderedDict[Sender, deque[Item]] = OrderedDict()  # whose turn it is comes first; none is empty
        self._paused: dict[Sender, deque[Item]] = {}
        self._length, self._held = length, 0
        self.dropped = 0
        """Items forgotten since the start."""

    def __len__(self) -> int:
        return self._held

    @property
    def next_sender(self) -> Sender | None:
        """Sender of the item that `pop` returns; None when nothing waits but items of senders that are paused."""
        return next(iter(self._ready), None)

    def holds(self, sender: Sender) -> bool:
        """Whether an item of `sender` waits, paused or not: a later one must not go past it."""
        return sender in self._ready or bool(self._paused.get(sender))

    def put(self, sender: Sender, item: Item) -> Sender | None:
        """Append an item of `sender`; returns whose oldest item was dropped for it, None when there was room."""
        dropped = self._make_room(sender) if self._held == self._length else None
        items = self._paused.get(sender)
        (self._ready.setdefault(sender, deque()) if items is None else items).append(item)
        self._held += 1
        return dropped

    def pop(self) -> Item:
        """Remove and return the oldest item of `next_sender`, whose next turn comes last; KeyError: none is ready."""
        sender, items = self._ready.popitem(last=False)
        if len(items) > 1:
            self._ready[sender] = items
        self._held -= 1
        return items.popleft()

    def pause(self, sender: Sender) -> None:
        """Let what `sender` has sent and will send wait until `resume`."""
        self._paused[sender] = self._ready.pop(sender, deque())

    def resume(self, sender: Sender) -> None:
        """Let a sender that was paused have turns again."""
        items = self._paused.pop(sender)
        if items:
            self._ready[sender] = items

    def clear(self) -> int:
        """Forget all items, of senders that are paused too; how many."""
        held, self._held = self._held, 0
        self._ready.clear()
        for items in self._paused.values():
            items.clear()
        return held

    def _make_room(self, sender: Sender) -> Sender:
        """Drop the oldest item of the sender with the most: of `sender`, when that has more than an equal share."""
        most = sender
        if len(self._items(sender)) * (len(self._ready) + len(self._paused)) <= self._held:
            most = max((*self._ready, *self._paused), key=lambda other: len(self._items(other)))
        items = self._items(most)
        items.popleft()
        if not items and most in self._ready:
            del self._ready[most]
        self._held -= 1
        self.dropped += 1
        return most

    def _items(self, sender: Sender) -> deque[Item]:
        return self._paused[sender] if sender in self._paused else self._ready.get(sender, deque())


class _Share:
    """The share that a stream may send; a message counts for the rows that it has room for, one at least.

    `burst` rows may come at once.
    """

    def __init__(self, settings: DeviceSettings, burst: int) -> None:
        self.key = settings.key
        self._row_bytes = _ROW_BYTES + FLOAT32.itemsize * settings.features
        self._per_s, self._burst = _TIMES * settings.rate_hz, burst
        self._left, self._at = float(burst), 0.0

    def note(self, size: int, now: float) -> None:
        """A message of so many bytes came in at `now`."""
        left = min(self._burst, self._left + (now - self._at) * self._per_s)
        self._left, self._at = max(0.0, left - max(1.0, size / self._row_bytes)), now

    @property
    def is_spent(self) -> bool:
        """Whether more came than there can be to say."""
        return self._left == 0


class Worker:
    """Feeds a pipeline in the event loop.

    Parameters
    ----------
    pipeline
        What it feeds.
    length
        Messages that wait at most. Of more, the oldest of the stream with the most are dropped and counted.
    """

    def __init__(self, pipeline: Pipeline, length: int) -> None:
        self._pipeline = pipeline
        self._inbox: FairQueue[str | StreamKey, Arrival | RowArrival] = FairQueue(length)
        self._shares: dict[str | StreamKey, _Share] = {
            raw_topic(*settings.key): _Share(settings, length) for settings in pipeline.settings
        }
        self._alone = len(self._shares) == 1  # then nobody else waits
        self._floods = Refusals(_FLOOD, event="flood", words="its tracker floods")
        self._wake = asyncio.Event()
        self._came_round = asyncio.Event()
        self._fed_in_this_turn = self._busy = self._over = False
        self._wakes_at = math.inf
        self._stopping = False
        self.received = 0
        """Raw messages that came in: rejected, dropped from the inbox, `paused`, taken, or still in the inbox."""
        self.paused = 0
        """Raw messages that a pause dropped unread."""

    @property
    def held(self) -> int:
        """Raw messages that wait."""
        return len(self._inbox)

    @property
    def dropped(self) -> int:
        """Raw messages dropped because too many waited."""
        return self._inbox.dropped

    def receive(self, message: Message) -> None:
        """From the raw link, in the event loop: bounded in number and size, and nothing retained is a live row."""
        self.received += 1
        now = asyncio.get_running_loop().time()
        if self._pipeline.paused:
            self.paused += 1
        elif len(message.payload) > MAX_PAYLOAD_BYTES:
            self._pipeline.reject("oversize", message.topic, now)
        elif message.retain:
            self._pipeline.reject("retained", message.topic, now)
        else:
            share = self._shares.get(message.topic)
            if share is not None:  # what is refused unread takes no time of anybody's
                share.note(len(message.payload), now)
            rows = dict(message.more.user).get(ROWS)
            self._feed_or_queue(message.topic, Arrival(message.topic, message.payload, now, rows), share)

    def receive_rows(self, key: StreamKey, rows: RawRows) -> None:
        """From a source in this process, in the event loop."""
        self.received += 1
        if self._pipeline.paused:
            self.paused += 1
            return
        self._feed_or_queue(key, RowArrival(key, rows, asyncio.get_running_loop().time()))

    def _feed_or_queue(
        self, sender: str | StreamKey, arrival: Arrival | RowArrival, share: _Share | None = None
    ) -> None:
        """Treat it at once when nothing is before it, of this sender or ready of another one.

        In a flood all but one in a turn of the loop queue up. So do all while the ledger is asked: what they complete
        would wait for its answer, without a bound if the disk does not come back.
        """
        floods = share is not None and share.is_spent and not self._alone
        waits = self._inbox.next_sender is not None or self._inbox.holds(sender)
        if waits or self._fed_in_this_turn or self._busy or floods:
            dropped = self._shares.get(self._inbox.put(sender, arrival) or "")
            if dropped is not None and dropped.is_spent:  # else it is the disk that is slow
                self._floods.note(dropped.key, "flood", arrival.at)
            self._wake.set()
        else:
            self._fed_in_this_turn = True
            self._pipeline.feed(arrival)
            asyncio.get_running_loop().call_soon(self._look)

    def pause(self) -> None:
        """Drop what waits, unread, and let the pipeline release nothing."""
        self.paused += self._inbox.clear()
        self._pipeline.pause(asyncio.get_running_loop().time())

    async def run(self) -> None:
        """Take what arrives and what falls due until `stop`; then end every session."""
        loop = asyncio.get_running_loop()
        while not self._stopping:
            if self._inbox.next_sender is None and not self._pipeline.waits:
                await self._sleep(self._pipeline.next_due())
            self._wake.clear()  # who wakes us from here on is heard before the next sleep
            self._busy = True  # while the ledger is asked, arrivals queue up
            began, senders = loop.time(), set[str | StreamKey]()
            await self._pipeline.run_turn(self._batch(senders), began)
            self._rest(senders, loop.time() - began)
            self._busy = False
            self._came_round.set()
            if self._inbox.next_sender is not None:
                await asyncio.sleep(0)  # a flood must not hold up the links
        self._pipeline.close(loop.time())
        self._over = True
        self._came_round.set()

    def _batch(self, senders: set[str | StreamKey]) -> Iterator[Arrival | RowArrival]:
        """Messages that are treated together: of each stream one in turn, and more of a stream while there is time."""
        clock = asyncio.get_running_loop().time
        began = math.inf if self._alone else clock()
        for _ in range(_BATCH):
            sender = self._inbox.next_sender
            if sender is None or (sender in senders and clock() >= began + self._slice_s(sender)):
                return
            senders.add(sender)
            yield self._inbox.pop()

    def _slice_s(self, sender: str | StreamKey) -> float:
        """For how long of a batch a sender's second and later messages are read."""
        share = self._shares.get(sender)
        return _FLOOD_SLICE_S if share is not None and share.is_spent else _SLICE_S

    def _rest(self, senders: Iterable[str | StreamKey], took_s: float) -> None:
        """Let those of them that flood wait: what others send in this time is treated as it comes."""
        rest_s = min(_REST * took_s, _LONGEST_REST_S)
        for sender in senders:
            share = self._shares.get(sender)
            if share is not None and share.is_spent and not self._alone:
                self._inbox.pause(sender)
                asyncio.get_running_loop().call_later(rest_s, self._resume, sender)

    def _resume(self, sender: str | StreamKey) -> None:
        self._inbox.resume(sender)
        self._wake.set()

    def stop(self) -> None:
        """Let `run` come to its end."""
        self._stopping = True
        self._wake.set()

    async def pulse(self) -> None:
        """Return when the work has come round once more, or is over: a sign of life."""
        self._came_round.clear()
        self._wake.set()
        if not self._over:
            await self._came_round.wait()

    async def _sleep(self, until: float | None) -> None:
        """Wait until something is to be done."""
        self._wakes_at = math.inf if until is None else until
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout_at(until):
                await self._wake.wait()

    def _look(self) -> None:
        """After a message that was treated as it came: wake the worker if there is more to do than to wait."""
        self._fed_in_this_turn = False
        due = self._pipeline.next_due()
        if self._inbox.next_sender is not None or self._pipeline.waits or (due is not None and due < self._wakes_at):
            self._wake.set()
