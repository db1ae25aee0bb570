"""A sidecar whose private broker is the MQTT listener of NATS reaches NATS applications. No file of ours is for it."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from eyestream.sdk.publisher import Publisher
from eyestream.sdk.subscriber import subscribe
from eyestream.wire.release import decode_meta, decode_private
from eyestream.wire.status import decode_status
from eyestream_lab.embedded import embedded_broker
from eyestream_lab.testing.clocks import until
from tests.rigs.nats import NatsServer, patiently
from tests.rigs.payloads import rows_of_a_stranger
from tests.rigs.sidecar import running, settings_for
from tests.rigs.storms import NAMES

if TYPE_CHECKING:
    from nats.aio.msg import Msg
    from nats.js import JetStreamContext

pytestmark = pytest.mark.needs("nats")
STREAM, SUBJECT, CHUNKS = "EYESTREAM_LAST", "eyestream.v1.hmd-1.features", 10


@pytest.fixture
def server(tmp_path: Path) -> Iterator[NatsServer]:
    made = NatsServer(tmp_path / "nats", 1)
    made.start()
    yield made
    made.kill()


@pytest.fixture
async def raw() -> AsyncIterator[str]:
    async with embedded_broker() as url:
        yield url


async def last(jetstream: "JetStreamContext", leaf: str, wanted: Callable[[bytes], bool]) -> bytes:
    """What NATS kept last at a subject, as soon as it is what is wanted."""
    async with asyncio.timeout(60):
        while True:
            found = await patiently(lambda: jetstream.get_last_msg(STREAM, f"{SUBJECT}.{leaf}"))
            if found.data is not None and wanted(found.data):
                return found.data
            await asyncio.sleep(0.02)


async def test_nats_applications_read_what_mqtt_applications_read(server: NatsServer, raw: str, tmp_path: Path) -> None:
    """Each chunk once and in order; what the stream is, and how it is, also for who comes late."""
    from nats.js.api import StreamConfig

    from eyestream_fleet.nats.log import connected

    heard: list[bytes] = []

    async def note(message: "Msg") -> None:
        heard.append(message.data)

    async with connected([server.url]) as client:
        jetstream, kept = client.jetstream(), [f"eyestream.v1.*.*.{leaf}" for leaf in ("meta", "status", "budget")]
        await jetstream.add_stream(StreamConfig(STREAM, subjects=kept, max_msgs_per_subject=1))
        await client.subscribe(f"{SUBJECT}.private", cb=note)
        await client.flush()
        async with running(settings_for(server.mqtt_url, tmp_path, raw_url=raw)) as sidecar:
            await until(lambda: sidecar.raw_stands and sidecar.private_stands, 60.0)
            async with subscribe(server.mqtt_url, "hmd-1") as chunks, Publisher(raw, "hmd-1", NAMES, 2.0) as tracker:
                for _ in range(CHUNKS):
                    assert await tracker.send(rows_of_a_stranger(32, len(NAMES)))
                over_mqtt = [await anext(chunks) for _ in range(CHUNKS)]
            await until(lambda: len(heard) == CHUNKS, 60.0)
            over_nats = [decode_private(payload) for payload in heard]
            assert [chunk.chunk for chunk in over_nats] == [chunk.index for chunk in over_mqtt] == list(range(CHUNKS))
            assert all((a.values == b.values).all() for a, b in zip(over_nats, over_mqtt, strict=True))
            meta = await last(jetstream, "meta", lambda payload: decode_meta(payload).names == NAMES)
            assert chunks.meta is not None
            assert decode_meta(meta).guarantee == chunks.meta.guarantee
            await last(jetstream, "status", lambda payload: decode_status(payload).state == "online")
            await until(lambda: sidecar.outbox.delivered == CHUNKS, 60.0)  # acknowledged by NATS
        await last(jetstream, "status", lambda payload: decode_status(payload).state == "offline")
