"""What tests and tools need to watch a sidecar in bad weather: traffic, an independent ear, laws and memory."""

import asyncio
import contextlib
import hashlib
import resource
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path

import msgpack

from eyestream.rim.config import BrokerSettings
from eyestream.rim.files import calibrations
from eyestream.rim.mqtt.endpoint import Endpoint
from eyestream.rim.mqtt.reconnecting import ReconnectingLink
from eyestream.rim.mqtt.transport import Link, Message
from eyestream.rim.sidecar.sidecar import Sidecar
from eyestream.sdk.publisher import Publisher
from eyestream_lab.testing.clocks import PATIENCE_S, until
from tests.rigs.payloads import rows_of_a_stranger

__all__ = ["NAMES", "Ear", "Traffic", "Watch", "ear", "recovery", "stands", "traffic", "watching"]

NAMES = calibrations.load("everyday-cfpa-32").names

_SAMPLE_SECONDS = 0.1
_PAGE_KIB = resource.getpagesize() // 1024


@dataclass
class Ear:
    """A persistent application that notes every private payload, duplicates included."""

    payloads: dict[tuple[int, int], list[str]] = field(default_factory=lambda: defaultdict(list))
    order: list[tuple[int, int]] = field(default_factory=list)
    stands: bool = False
    on_payload: Callable[[bytes], None] = lambda payload: None

    def take(self, message: Message) -> None:
        """Note one message."""
        self.on_payload(message.payload)
        chunk = msgpack.unpackb(message.payload)
        key = (chunk["session"], chunk["chunk"])
        self.order.append(key)
        self.payloads[key].append(hashlib.sha256(message.payload).hexdigest())

    @property
    def conflicts(self) -> int:
        """Chunks of which two different payloads were seen."""
        return sum(len(set(seen)) > 1 for seen in self.payloads.values())

    @property
    def duplicates(self) -> int:
        """Payloads that came again, unchanged."""
        return len(self.order) - len(self.payloads)

    @property
    def disorder(self) -> int:
        """Chunks whose first copy came after that of a later one of their session."""
        first = list(dict.fromkeys(self.order))
        latest: dict[int, int] = {}
        late = 0
        for session, chunk in first:
            late += chunk < latest.get(session, -1)
            latest[session] = max(chunk, latest.get(session, -1))
        return late


@contextlib.asynccontextmanager
async def ear(url: str, device: str = "hmd-1") -> AsyncIterator[Ear]:
    """An ear on the broker at `url`, back by itself after every outage."""
    heard = Ear()

    async def serve(link: Link) -> None:
        await link.subscribe(f"eyestream/v1/{device}/features/private", 1)
        heard.stands = True
        try:
            await asyncio.Event().wait()
        finally:
            heard.stands = False

    endpoint = Endpoint.of(BrokerSettings(url))
    keeper = ReconnectingLink(endpoint, serve, what="ear", client_id="ear", deliver=heard.take, clean_session=False)
    async with keeper.beside(PATIENCE_S):
        await until(lambda: heard.stands)
        yield heard


@dataclass
class Traffic:
    """A tracker that sends for as long as it may."""

    publisher: Publisher
    messages: int = 0


@contextlib.asynccontextmanager
async def traffic(
    url: str | BrokerSettings, rows: int = 32, pause_s: float = 0.02, device: str = "hmd-1"
) -> AsyncIterator[Traffic]:
    """Send `rows` rows each `pause_s` seconds beside the body."""
    block = rows_of_a_stranger(rows, len(NAMES))
    async with Publisher(url, device, NAMES, 2.0) as publisher:
        load = Traffic(publisher)

        async def send() -> None:
            while True:
                await publisher.send(block)
                load.messages += 1
                await asyncio.sleep(pause_s)

        task = asyncio.create_task(send(), name="traffic")
        try:
            yield load
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


@dataclass
class Watch:
    """Laws and memory of a sidecar, sampled at 10 Hz."""

    samples: int = 0
    broken: int = 0
    first_kib: int = 0
    peak_kib: int = 0
    most_waiting: int = 0

    @property
    def growth_mib(self) -> float:
        """How much larger this process was at most than at the beginning."""
        return (self.peak_kib - self.first_kib) / 1024


def settled(sidecar: Sidecar) -> int:
    """Chunks that were released, withheld or dropped."""
    counters = sidecar.pipeline.counters
    return counters.released + counters.withheld.total() + counters.dropped.total()


def lawful(sidecar: Sidecar) -> bool:
    """Whether what came in is rejected, dropped, taken or held: messages, rows, chunks, and released chunks."""
    counters, outbox = sidecar.pipeline.counters, sidecar.outbox
    messages = counters.rejected.total() + sidecar.worker.dropped + counters.taken + sidecar.worker.held
    released = outbox.delivered + outbox.expired + outbox.overflow + outbox.refused + len(outbox)
    rows = [sidecar.pipeline.rows(key) for key in sidecar.pipeline.keys]
    return (
        sidecar.worker.received == messages
        and all(
            c.rows == c.accepted + c.duplicate + c.late + c.refused + c.stale_session + c.jump + c.wearer for c in rows
        )
        and settled(sidecar) <= counters.due
        and counters.released == released
    )


def resident_kib() -> int:
    """Memory of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE_KIB


@contextlib.asynccontextmanager
async def watching(sidecar: Sidecar) -> AsyncIterator[Watch]:
    """Sample the laws beside the body; at its quiet end they hold exactly."""
    watch = Watch(first_kib=resident_kib())

    async def sample() -> None:
        while True:
            watch.samples += 1
            watch.broken += not lawful(sidecar)
            watch.most_waiting = max(watch.most_waiting, len(sidecar.outbox))
            watch.peak_kib = max(watch.peak_kib, resident_kib())
            await asyncio.sleep(_SAMPLE_SECONDS)

    task = asyncio.create_task(sample(), name="watch")
    try:
        yield watch
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def stands(sidecar: Sidecar, publisher: Publisher) -> bool:
    """Whether all three links are up."""
    return sidecar.raw_stands and sidecar.private_stands and publisher._carrier.stands


async def recovery(holds: Callable[[], bool], seconds: float = 15.0) -> float:
    """Seconds until `holds()`, from now."""
    loop = asyncio.get_running_loop()
    begin = loop.time()
    await until(holds, seconds)
    return loop.time() - begin
