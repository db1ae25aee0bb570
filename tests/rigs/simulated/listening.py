"""Applications of a simulated world: who watches the odometers of all streams, and the SDK's own subscriber to one."""

import asyncio
import contextlib
import contextvars

import numpy as np

from eyestream.core.charge import Charge
from eyestream.errors import LinkError
from eyestream.rim.config import BrokerSettings
from eyestream.sdk.chunk import Chunk
from eyestream.sdk.chunks import Chunks, Gap
from eyestream.sdk.odometer import OdometerWatch, OtherLedger, WentBack
from eyestream.sdk.subscriber import subscribe
from eyestream.streams import StreamKey
from eyestream.wire.release import decode_private
from eyestream.wire.status import decode_reading
from tests.rigs.simulated.judge import Judge
from tests.rigs.simulated.network import PROCESS, Process, VirtualLoop

__all__ = ["Application", "Listener"]

_ID = "app"


class Listener:
    """Hears the odometers in the order in which a broker has them.

    Attributes
    ----------
    back : streams whose ledger went back, as far as it was heard.
    doubted : those of which that may be, or else the broker has sent an old message.
    """

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self._watches: dict[StreamKey, OdometerWatch] = {}
        self._first: dict[StreamKey, tuple[int, int]] = {}
        self._spent: dict[StreamKey, int] = {}
        self.back, self.doubted = set[StreamKey](), set[StreamKey]()

    def hear_chunk(self, key: StreamKey, payload: bytes) -> None:
        """A chunk that comes for the first time."""
        self._spent[key] = self.spent(key) + Charge.of(decode_private(payload).epsilon).epsilon

    def spent(self, key: StreamKey) -> int:
        """Epsilon of all that was heard of a stream."""
        return self._spent.get(key, 0)

    def hear(self, key: StreamKey, payload: bytes) -> None:
        """What an odometer reads."""
        said = decode_reading(payload)
        watch = self._watches.setdefault(key, OdometerWatch())
        if any((one.ledger, one.life) == (said.ledger, said.life) and one.reads >= said.reads for one in watch.known):
            return  # a session that is resumed sends again what was not acknowledged, after newer chunks
        found = watch.note(said)
        (self.doubted.discard if watch.doubt is None else self.doubted.add)(key)
        if isinstance(found, WentBack):
            self.back.add(key)
        elif found is not None:
            self._judge.fault(f"{key}: {found}")
        first, before = self._first.setdefault(key, (said.reads, self.spent(key)))
        if key not in self.back | self.doubted and (said.reads - first) * 10**6 < self.spent(key) - before:
            self._judge.fault(f"{key}: the odometer reads {said.reads - first} more, and chunks have cost more")


class Application:
    """A program that takes the events of one stream, and connects again for as long as the world stands.

    Attributes
    ----------
    key : the stream.
    kept : whether the broker keeps its session while it is away.
    owed : chunks that it must get: the broker had it for subscribed.
    honest : whether no ledger went back, so that none may be said to have.
    """

    def __init__(self, loop: VirtualLoop, judge: Judge, key: StreamKey, *, kept: bool) -> None:
        self._loop, self._judge, self.key, self.kept, self.honest = loop, judge, key, kept, True
        self._process, self._gap = Process(lambda: None), Gap(0, 0, 0)
        self._last: dict[int, int] = {}
        self._taken: set[tuple[int, int]] = set()
        self._heard: dict[tuple[int, int], np.ndarray] = {}
        self.owed: set[tuple[int, int]] = set()
        self._remembered = False
        context = contextvars.copy_context()
        context.run(PROCESS.set, self._process)
        self._task = loop.create_task(self._run(), context=context)

    def hear(self, payload: bytes, *, healed: bool) -> None:
        """The broker has a chunk of the stream; whether nothing goes wrong any more, and what is handed on arrives."""
        said = decode_private(payload)
        self._heard[said.session, said.chunk] = said.values
        links = [link for link in self._process.links if not link.gone]
        subscribed = any("/private" in name for link in links for name in link.filters)
        self._remembered |= self.kept and subscribed
        if self._remembered or (healed and subscribed):
            self.owed.add((said.session, said.chunk))

    def forget(self) -> None:
        """The broker has lost what it kept."""
        self._remembered = False
        self.owed &= self._taken

    async def _run(self) -> None:
        broker, name = BrokerSettings("unix:///private", version="5"), _ID if self.kept else None
        while True:
            with contextlib.suppress(LinkError):
                async with subscribe(
                    broker, self.key.device, stream=self.key.stream, client_id=name, clock=self._loop.time
                ) as chunks:
                    await self._take(chunks)

    async def _take(self, chunks: Chunks) -> None:
        async for event in chunks.events():
            if isinstance(event, Gap):
                self._gap = event
            elif isinstance(event, Chunk):
                self._take_chunk(event)
            elif isinstance(event, OtherLedger) or (self.honest and isinstance(event, WentBack)):
                self._judge.fault(f"{self.key}: the SDK says {event}")
            if chunks.foreign or chunks.refused:
                self._judge.fault(f"{self.key}: the SDK refuses {dict(chunks.refusals)}, {chunks.foreign} foreign")

    def _take_chunk(self, chunk: Chunk) -> None:
        name, last = (chunk.session, chunk.index), self._last.get(chunk.session)
        if name not in self._heard or not np.array_equal(self._heard[name], chunk.values):
            self._judge.fault(f"{self.key}: the SDK gives another chunk {chunk.index} than was published")
        if last is not None and last >= chunk.index:
            self._judge.fault(f"{self.key}: the SDK gives chunk {chunk.index} after {last}")
        gap = self._gap if self._gap.session == chunk.session else None
        if gap is not None and last is not None and (gap.first, gap.first + gap.count) != (last + 1, chunk.index):
            self._judge.fault(f"{self.key}: {gap} stands between the chunks {last} and {chunk.index}")
        self._gap = Gap(0, 0, 0)
        self._last[chunk.session] = chunk.index
        self._taken.add(name)

    def end(self) -> None:
        """The world ends; what is owed must have come."""
        self._task.cancel()
        self._loop.run_until_complete(asyncio.wait([self._task]))

    def missing(self) -> set[tuple[int, int]]:
        """What is owed and has not come."""
        return self.owed - self._taken
