"""The schedule of a sidecar: what arrives is treated as it comes, or in batches; what the clock makes due, in time."""

import asyncio
import contextlib
import math

from eyestream.rim.buffer import DropOldest
from eyestream.rim.mqtt.transport import Message
from eyestream.rim.sidecar.pipeline import Arrival, Pipeline, RowArrival
from eyestream.streams import StreamKey
from eyestream.wire.messages import MAX_PAYLOAD_BYTES, ROWS, RawRows

__all__ = ["Worker"]

_BATCH = 64
"""Messages that are treated together, at most: their reservations share one write to the disk."""


class Worker:
    """Feeds a pipeline in the event loop.

    Parameters
    ----------
    pipeline
        What it feeds.
    length
        Messages that wait at most; of more, the oldest are dropped and counted.
    """

    def __init__(self, pipeline: Pipeline, length: int) -> None:
        self._pipeline = pipeline
        self._inbox: DropOldest[Arrival | RowArrival] = DropOldest(length)
        self._wake = asyncio.Event()
        self._came_round = asyncio.Event()
        self._fed_in_this_turn = self._busy = False
        self._wakes_at = math.inf
        self._stopping = False
        self.received = 0
        """Raw messages that came in: always those rejected, dropped from the inbox, taken, and still in the inbox."""

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
        if len(message.payload) > MAX_PAYLOAD_BYTES:
            self._pipeline.reject("oversize", message.topic, now)
        elif message.retain:
            self._pipeline.reject("retained", message.topic, now)
        else:
            self._take(Arrival(message.topic, message.payload, now, dict(message.more.user).get(ROWS)))

    def receive_rows(self, key: StreamKey, rows: RawRows) -> None:
        """From a source in this process, in the event loop."""
        self.received += 1
        self._take(RowArrival(key, rows, asyncio.get_running_loop().time()))

    def _take(self, arrival: Arrival | RowArrival) -> None:
        """Treat it at once when nothing is before it.

        In a flood all but one in a turn of the loop queue up. So do all while the ledger is asked: what they complete
        would wait for its answer, without a bound if the disk does not come back.
        """
        if self._inbox or self._fed_in_this_turn or self._busy:
            self._inbox.put(arrival)
            self._wake.set()
        else:
            self._fed_in_this_turn = True
            self._pipeline.feed(arrival)
            asyncio.get_running_loop().call_soon(self._look)

    async def run(self) -> None:
        """Take what arrives and what falls due until `stop`; then end every session."""
        loop = asyncio.get_running_loop()
        while not self._stopping:
            if not self._inbox and not self._pipeline.waits:
                await self._sleep(self._pipeline.next_due())
            self._wake.clear()  # who wakes us from here on is heard before the next sleep
            self._busy = True
            await self._pipeline.take(self._inbox.take_most(_BATCH), loop.time())
            self._busy = False
            self._came_round.set()
            if self._inbox:
                await asyncio.sleep(0)  # a flood must not hold up the links
        self._pipeline.close(loop.time())

    def stop(self) -> None:
        """Let `run` come to its end."""
        self._stopping = True
        self._wake.set()

    async def pulse(self) -> None:
        """Return when the work has come round once more: a sign of life."""
        self._came_round.clear()
        self._wake.set()
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
        if self._inbox or self._pipeline.waits or (due is not None and due < self._wakes_at):
            self._wake.set()
