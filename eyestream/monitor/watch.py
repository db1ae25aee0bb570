"""Follows every stream of a private broker as applications do, and keeps what a page that opens now must know."""

import asyncio
import contextlib
import math
import time
from collections import Counter, deque
from collections.abc import Iterator

from eyestream.errors import LinkError, PayloadError
from eyestream.monitor.frames import State, chunk_frame, described, state_frame
from eyestream.monitor.headline import HeadlineFacts, Sidecar
from eyestream.rim.config import BrokerSettings
from eyestream.sdk.chunk import Chunk
from eyestream.sdk.chunks import Chunks, Connection, DropOldest, Gap, Silence
from eyestream.sdk.discovery import Found, discovering
from eyestream.sdk.odometer import OdometerWatch
from eyestream.sdk.subscriber import subscribe
from eyestream.wire.release import Meta
from eyestream.wire.status import Status

KEPT_CHUNKS = 20
"""Frames kept of each stream, for a page that opens later."""

MOST_STREAMS = 32
"""Streams that are followed at once; each is a connection to the broker."""

LOOK_SECONDS = 0.5
TICK_SECONDS = 0.5
WAITING_FRAMES = 1024
"""For a visitor that reads slowly; then the oldest go."""


class _Followed:
    """A stream that is followed: its frames, and how it is."""

    def __init__(self, found: Found) -> None:
        self.device, self.stream = found.device, found.stream
        self.place = f"{found.device}/{found.stream}"
        self.meta: Meta | None = None
        self.description: str | None = None
        """The frame of `meta`; None where there is none that can be shown."""
        self.chunks: Chunks | None = None
        self.odometer = OdometerWatch()
        self.chunk_at = -math.inf
        """When the last chunk came, in seconds of `time.monotonic`."""
        self.latest: deque[str] = deque(maxlen=KEPT_CHUNKS)
        self.unshown: Counter[str] = Counter()
        """Messages of which no frame could be made, by reason."""
        self.missing, self.silent = 0, False
        self.shown = ""
        """The frame of its state that visitors had last."""

    def describe(self, meta: Meta | None) -> str | None:
        """Take a new description; gives its frame. Chunks of the old one are forgotten."""
        self.meta, self.description = meta, None
        self.latest.clear()
        if meta is not None:
            with self.counted():
                self.description = described(self.place, meta)
        return self.description

    @contextlib.contextmanager
    def counted(self) -> Iterator[None]:
        """Run a body that makes a frame. Where none can be made, count the reason and leave the body."""
        try:
            yield
        except PayloadError as error:
            self.unshown[error.reason] += 1

    def state(self, sidecar: Sidecar) -> str:
        """The frame of how it is now, where its sidecar is `sidecar`."""
        known = self.chunks
        connected, status = (False, None) if known is None else (known.connected, known.status)
        back = self.odometer.fault is not None
        came = self.chunk_at > -math.inf
        facts = HeadlineFacts(connected, sidecar, status, self.description is not None, self.silent, back, came)
        budget, refusals, dropped = (
            (None, Counter[str](), 0) if known is None else (known.budget, known.refusals, known.dropped)
        )
        return state_frame(self.place, State(facts, budget, refusals + self.unshown, self.missing, dropped), self.meta)


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
        self._sidecars: dict[str, tuple[Status, float]] = {}
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
        for one in self._followed.values():
            if one.description is not None:
                yield one.description
            yield from one.latest
            yield one.state(self._sidecar_of(one))

    def _tell(self, frame: str) -> None:
        for waiting in self._visitors:
            waiting.put(frame)

    def _note(self, found: Found) -> None:
        """Take a new stream, also one that cannot be read, or note since when a sidecar has its status."""
        if found.is_sidecar:
            if found.status is not None and self._sidecars.get(found.device, (None, 0.0))[0] != found.status:
                since = time.monotonic() if found.said_at is None else found.said_at
                self._sidecars[found.device] = found.status, since
            return
        wanted = self._device in (None, found.device) and (found.meta is not None or found.unreadable)
        place = f"{found.device}/{found.stream}"
        if wanted and place not in self._followed and len(self._followed) < MOST_STREAMS:
            self._followed[place] = _Followed(found)

    def _sidecar_of(self, one: _Followed) -> Sidecar:
        """Whether a stream's sidecar runs, as far as `Sidecar` allows: no message names the sidecar of a stream."""
        away = [since for status, since in self._sidecars.values() if status.state == "offline"]
        if away and len(away) == len(self._sidecars):
            return "away"
        return "unsure" if away and one.chunk_at < max(away) else "there"

    def _describe(self, one: _Followed, chunks: Chunks) -> None:
        """Tell visitors what the stream is, where its description is new."""
        if chunks.meta is not one.meta and (frame := one.describe(chunks.meta)) is not None:
            self._tell(frame)

    async def _follow(self, one: _Followed) -> None:
        """Make frames of a stream, for good; a subscription that is lost or refused is tried again."""
        while True:
            with contextlib.suppress(LinkError):
                async with subscribe(self._broker, one.device, stream=one.stream, odometer=one.odometer) as chunks:
                    one.chunks = chunks
                    ticking = asyncio.create_task(self._tick(one, chunks), name=f"state of {one.place}")
                    try:
                        await self._take(one, chunks)
                    finally:  # also when this task is cancelled: nobody else knows of the other one
                        ticking.cancel()
            await asyncio.sleep(LOOK_SECONDS)

    async def _take(self, one: _Followed, chunks: Chunks) -> None:
        async for event in chunks.events():
            match event:
                case Chunk():
                    one.silent, one.chunk_at = False, time.monotonic()
                    self._describe(one, chunks)
                    if one.description is not None:
                        with one.counted():
                            frame = chunk_frame(one.place, event, time.time())
                            one.latest.append(frame)
                            self._tell(frame)
                case Gap():
                    one.missing += event.count
                case Silence():
                    one.silent = True
                case Status() | Connection():
                    one.silent = False  # from here on a chunk may be expected again

    async def _tick(self, one: _Followed, chunks: Chunks) -> None:
        """Tell visitors how the stream is, whenever that has changed; no event says that a chunk is late."""
        while True:
            self._describe(one, chunks)
            state = one.state(self._sidecar_of(one))
            if state != one.shown:
                one.shown = state
                self._tell(state)
            await asyncio.sleep(TICK_SECONDS)
