"""The life of a shard between its log and its second place: what is read, when it is published, and again until taken.

What is released goes to the second place's knowledge first, then to the log, in order, until the log acknowledges it.
While too much waits for that, nothing more is read: the log holds what comes.
"""

import asyncio
import contextlib
import logging
import time
from collections import deque
from collections.abc import Iterable, Sequence
from itertools import islice

from eyestream.core.chunking.settings import DeviceSettings
from eyestream.core.mechanism import Mechanism
from eyestream.errors import LinkError
from eyestream.rim.ledger.second_place import Lengths
from eyestream.rim.mqtt.transport import Backoff
from eyestream.streams import StreamKey
from eyestream_fleet.frames import ReleasedChunk
from eyestream_fleet.log import Entry, Log, Publication
from eyestream_fleet.second_place import Life
from eyestream_fleet.shard import Shard

_AT_ONCE = 256
"""Messages that are read together, and chunks that are published together, at most."""

_MOST_WAITING = 4096
"""Chunks that may wait for the log; of more, nothing is read."""

_WAIT_S = 0.1
"""How long a read waits for messages: chunks that the clock closes are this late at most."""

_GOODBYE_S = 3.0

PAUSE_S = 0.4
"""Between two attempts to reach the log, at most: many devices wait for one worker."""

_APART_S = 5.0
"""Clocks that are further apart are warned of: chunks close by the log's clock, and days begin by the host's."""

_LOG = logging.getLogger("eyestream.shard")


class ShardWorker:
    """Serves one shard.

    Parameters
    ----------
    shard
        Open.
    log
        Its partition.
    life
        Begun. Its second place learns how long the files are before anything is published. None: nobody does.

    Attributes
    ----------
    shard : what it serves; to be read for metrics.
    published : chunks that the log acknowledged.
    stands : whether the log is read.
    changed : is set when that has changed, or the condition of a stream, or which streams are served.
    breaks : how often it stopped being read.
    ahead_s : how far the log's clock was ahead of the host's, when a message came that had been waited for.
    """

    def __init__(self, shard: Shard, log: Log, life: Life | None = None) -> None:
        self.shard, self._log, self._life = shard, log, life
        self._waiting: deque[ReleasedChunk] = deque(shard.waiting)
        self._acknowledged: list[ReleasedChunk] = []
        self._lengths, self._remembered = shard.lengths, Lengths(-1, -1)
        self._wake, self._empty = asyncio.Event(), asyncio.Event()
        self._last: tuple[float, float] | None = None
        self.published = self.breaks = 0
        self.stands, self.changed = False, asyncio.Event()
        self._changes, self._served = shard.changes, shard.streams
        self._serving: list[tuple[DeviceSettings, Mechanism]] | None = None
        self.ahead_s, self._waited = 0.0, False

    def serve(self, streams: Iterable[tuple[DeviceSettings, Mechanism]]) -> None:
        """Let the shard serve these streams, as `Shard.serve`, from what is read next on."""
        self._serving = list(streams)

    @property
    def waiting(self) -> int:
        """Released chunks that the log has not acknowledged."""
        return len(self._waiting)

    async def run(self, stop: asyncio.Event) -> None:
        """Serve until `stop` is set; then publish what is released, and return.

        Raises
        ------
        ShardError
            Another worker has begun a life with a copy of the shard. Nothing that it does not have was published.
        LedgerError
            The shard, or its second place, cannot be written any more.
        """
        async with asyncio.TaskGroup() as group:
            publishing = group.create_task(self._publish(), name="publish")
            await group.create_task(self._read(stop), name="log")
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_GOODBYE_S):
                    await self._empty.wait()
            publishing.cancel()

    async def _read(self, stop: asyncio.Event) -> None:
        backoff = Backoff(PAUSE_S)
        while not stop.is_set():
            try:
                await self._log.seek(self.shard.begin(await self._log.bounds()))
                self._note_log(stands=True)
                while not stop.is_set():
                    if len(self._waiting) > _MOST_WAITING:
                        await asyncio.sleep(_WAIT_S)
                        continue
                    entries = await self._log.fetch(_AT_ONCE, _WAIT_S)
                    await self._take(self.shard.position.recognised(entries))
                    backoff.reset()
            except LinkError as error:
                self.breaks += self.stands
                self._note_log(stands=False)
                _LOG.warning("log: %s; trying again until it is back", error)
                await backoff.wait()

    def _note_log(self, *, stands: bool) -> None:
        self.stands = stands
        self.changed.set()

    async def _take(self, entries: Sequence[Entry]) -> None:
        self._compare_clocks(entries)
        acknowledged, self._acknowledged = self._acknowledged, []
        serving, self._serving = self._serving, None
        work = asyncio.ensure_future(asyncio.to_thread(self._work, entries, self._now(entries), acknowledged, serving))
        try:
            released, self._lengths = await asyncio.shield(work)
        except asyncio.CancelledError:
            await asyncio.gather(work, return_exceptions=True)  # the files must not be closed under it
            raise
        if self.shard.changes != self._changes or self.shard.streams is not self._served:
            self._changes, self._served = self.shard.changes, self.shard.streams
            self.changed.set()
        if released:
            self._waiting += released
            self._empty.clear()
            self._wake.set()

    def _work(
        self,
        entries: Sequence[Entry],
        now: float | None,
        acknowledged: list[ReleasedChunk],
        serving: list[tuple[DeviceSettings, Mechanism]] | None,
    ) -> tuple[list[ReleasedChunk], Lengths]:
        """In a thread: it waits for the disk."""
        self.shard.acknowledge(acknowledged)
        if serving is not None:
            self.shard.serve(serving)
        return self.shard.take(entries, now), self.shard.lengths

    def _compare_clocks(self, entries: Sequence[Entry]) -> None:
        """Warn where the clocks of the log and of this host are apart, by a message that was waited for."""
        waited, self._waited = self._waited, not entries
        if not waited or not entries:
            return  # others were there before it, so nobody knows for how long it lay there
        ahead_s = entries[0].at - time.time()
        if abs(ahead_s) > _APART_S >= abs(self.ahead_s):
            _LOG.warning(
                "the log's clock is %.0f s %s this host's: chunks close by the one, and days begin by the other. Keep "
                "both in step", abs(ahead_s), "ahead of" if ahead_s > 0 else "behind",
            )  # fmt: skip
        self.ahead_s = ahead_s

    def _now(self, entries: Sequence[Entry]) -> float | None:
        """The time by the log's clock, from its last message on; None: more messages may wait, or none ever came."""
        loop = asyncio.get_running_loop()
        if entries:
            self._last = entries[-1].at, loop.time()
        if self._last is None or len(entries) == _AT_ONCE:
            return None
        at, heard = self._last
        return at + loop.time() - heard

    async def _publish(self) -> None:
        backoff = Backoff(PAUSE_S)
        while True:
            while not self._waiting:
                self._empty.set()
                self._wake.clear()
                await self._wake.wait()
            chunks = list(islice(self._waiting, _AT_ONCE))
            try:
                await self._remember()
                await self._log.publish(
                    [Publication(one.id, StreamKey(one.device, one.stream), one.payload) for one in chunks]
                )
            except LinkError as error:
                _LOG.warning("log: %s; the same bytes are sent until they are taken", error)
                await backoff.wait()
                continue
            backoff.reset()
            for chunk in chunks:
                self._waiting.popleft()
                self._acknowledged.append(chunk)
            self.published += len(chunks)

    async def _remember(self) -> None:
        """Before anything is published: let the second place know how long the shard's files are."""
        lengths = self._lengths
        if self._life is not None and lengths != self._remembered:
            await self._life.remember(lengths)
            self._remembered = lengths
