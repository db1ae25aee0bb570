"""Follows every stream of a private broker as applications do, and keeps what a page that opens now must know."""

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Iterator

from eyestream.errors import LinkError
from eyestream.rim.buffer import DropOldest
from eyestream.rim.config import BrokerSettings
from eyestream.rim.monitor.frames import State, chunk_frame, described, sidecar_frame, state_frame
from eyestream.rim.sdk.chunk import Chunk
from eyestream.rim.sdk.chunks import Chunks
from eyestream.rim.sdk.discovery import Found, discovering
from eyestream.rim.sdk.events import Gap, Silence
from eyestream.rim.sdk.subscriber import subscribe
from eyestream.wire.messages import Meta

__all__ = ["Watch"]

KEPT_CHUNKS = 20
"""Of each stream, for a page that opens later."""

MOST_STREAMS = 32
"""Followed at once; each is a connection to the broker."""

LOOK_SECONDS = 0.5
TICK_SECONDS = 0.5
WAITING_FRAMES = 1024
"""For a visitor that reads slowly; then the oldest go."""


class _Followed:
    """What is known of one stream."""

    def __init__(self, found: Found) -> None:
        self.device, self.stream = found.device, found.stream
        self.place = f"{found.device}/{found.stream}"
        self.meta: Meta | None = found.meta
        self.chunks: Chunks | None = None
        self.latest: deque[str] = deque(maxlen=KEPT_CHUNKS)
        self.missing, self.silent = 0, False
        self.shown = ""

    def state(self) -> str:
        """The frame of how it is now."""
        known = self.chunks
        if known is None:
            return state_frame(self.place, State(False, None, None, {}, self.missing, 0, self.silent), self.meta)
        state = State(
            known.connected, known.status, known.budget, known.refusals, self.missing, known.dropped, self.silent
        )
        return state_frame(self.place, state, self.meta)


class Watch:
    """The streams of a broker and the visitors who watch them.

    Parameters
    ----------
    broker
        The private broker, with the login of an application.
    device
        The only device to follow; None for all.
    """

    def __init__(self, broker: BrokerSettings, device: str | None = None) -> None:
        self._broker, self._device = broker, device
        self._followed: dict[str, _Followed] = {}
        self._sidecars: dict[str, str] = {}
        self._visitors: set[DropOldest[str]] = set()

    async def run(self, wait_s: float, ready: asyncio.Event) -> None:
        """Look for streams and follow each, until cancelled; set `ready` when the broker was reached.

        A broker that goes away later is waited for.

        Raises
        ------
        ConfigError
            The broker's settings cannot be used.
        LinkError
            The broker cannot be reached within `wait_s`.
        """
        tasks: dict[str, asyncio.Task[None]] = {}
        async with discovering(self._broker, wait_s=wait_s) as seen, asyncio.TaskGroup() as group:
            ready.set()
            while True:
                for found in list(seen.values()):
                    self._note(found)
                for place, one in self._followed.items():
                    if place not in tasks:
                        tasks[place] = group.create_task(self._follow(one), name=f"follow {place}")
                await asyncio.sleep(LOOK_SECONDS)

    @contextlib.contextmanager
    def visitor(self) -> Iterator[DropOldest[str]]:
        """Frames for one page: all that it must know first, then news."""
        waiting: DropOldest[str] = DropOldest(WAITING_FRAMES)
        for frame in self._snapshot():
            waiting.put(frame)
        self._visitors.add(waiting)
        try:
            yield waiting
        finally:
            self._visitors.discard(waiting)

    def _snapshot(self) -> Iterator[str]:
        yield from self._sidecars.values()
        for one in self._followed.values():
            if one.meta is not None:
                yield described(one.place, one.meta)
            yield from one.latest
            yield one.state()

    def _tell(self, frame: str) -> None:
        for waiting in self._visitors:
            waiting.put(frame)

    def _note(self, found: Found) -> None:
        """Know a stream that is new; say how a sidecar is when it has changed."""
        if found.is_sidecar:
            frame = sidecar_frame(found.device, found.status)
            if self._sidecars.get(found.device) != frame and len(self._sidecars) < MOST_STREAMS:
                self._sidecars[found.device] = frame
                self._tell(frame)
            return
        wanted = self._device in (None, found.device) and found.meta is not None
        place = f"{found.device}/{found.stream}"
        if wanted and place not in self._followed and len(self._followed) < MOST_STREAMS:
            self._followed[place] = one = _Followed(found)
            self._describe(one, found.meta)

    def _describe(self, one: _Followed, meta: Meta | None) -> None:
        one.meta = meta
        if meta is not None:
            self._tell(described(one.place, meta))

    async def _follow(self, one: _Followed) -> None:
        """Frames of a stream, for good; a subscription that is refused is tried again."""
        while True:
            with contextlib.suppress(LinkError):
                async with subscribe(self._broker, one.device, stream=one.stream) as chunks:
                    one.chunks = chunks
                    ticking = asyncio.create_task(self._tick(one), name=f"state of {one.place}")
                    try:
                        await self._take(one, chunks)
                    finally:
                        ticking.cancel()
            await asyncio.sleep(LOOK_SECONDS)

    async def _take(self, one: _Followed, chunks: Chunks) -> None:
        async for event in chunks.events():
            match event:
                case Chunk():
                    if chunks.meta is not one.meta:
                        one.latest.clear()
                        self._describe(one, chunks.meta)
                    one.silent = False
                    frame = chunk_frame(one.place, event, time.time())
                    one.latest.append(frame)
                    self._tell(frame)
                case Gap():
                    one.missing += event.count
                case Silence():
                    one.silent = True

    async def _tick(self, one: _Followed) -> None:
        """Say how the stream is, whenever that is another than before."""
        while True:
            state = one.state()
            if state != one.shown:
                one.shown = state
                self._tell(state)
            await asyncio.sleep(TICK_SECONDS)
