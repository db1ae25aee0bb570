"""What a sidecar must do on any broker, one probe at a time; each has sidecar, tracker and application of its own.

A probe raises AssertionError, TimeoutError or an error of ours where it does not hold. Devices have a random name in
each, so that a broker which keeps things may be used again and again.
"""

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import msgspec

from eyestream.errors import ConfigError
from eyestream.rim.config import BrokerSettings, LimitSettings, Settings
from eyestream.rim.mqtt.endpoint import Endpoint
from eyestream.rim.mqtt.transport import Message, Properties, Will, connect
from eyestream.rim.sidecar.sidecar import Sidecar
from eyestream.sdk.publisher import Publisher
from eyestream.sdk.subscriber import subscribe
from eyestream.wire.raw import encode_raw
from eyestream.wire.release import decode_private
from eyestream.wire.status import decode_status
from eyestream.wire.topics import private_topic, raw_topic, sidecar_status_topic
from eyestream_lab.testing.clocks import PATIENCE_S, until
from tests.rigs.payloads import rows_of_a_stranger
from tests.rigs.proxy import FaultProxy
from tests.rigs.sidecar import opened, running, settings_for
from tests.rigs.storms import NAMES

__all__ = ["PROBES", "Probe", "at_work", "blocks"]

CHUNK_ROWS = 32

Probe = Callable[[BrokerSettings, Path], Awaitable[str]]
"""Is given a broker and an empty folder; what it found, in a word."""


def _settings(broker: BrokerSettings, folder: Path, **limits: float) -> Settings:
    device = f"d{secrets.token_hex(4)}"
    made = settings_for(broker.url, folder, devices=(device,), limits=LimitSettings(**limits))  # type: ignore[arg-type]
    sidecar = msgspec.structs.replace(made.sidecar, name=f"s{secrets.token_hex(4)}")
    return msgspec.structs.replace(made, private=broker, sidecar=sidecar)


@contextlib.asynccontextmanager
async def at_work(
    broker: BrokerSettings, folder: Path, **limits: float
) -> AsyncIterator[tuple[Sidecar, str, Settings]]:
    """A sidecar whose links stand, its device, its settings."""
    settings = _settings(broker, folder, **limits)
    async with running(settings) as sidecar:
        await until(lambda: sidecar.raw_stands and sidecar.private_stands)
        yield sidecar, settings.device[0].id, settings


def blocks(count: int) -> list[bytes]:
    """Payloads for `raw`, of which each fills a chunk; from a tracker in any language."""
    rows = rows_of_a_stranger(CHUNK_ROWS, len(NAMES))
    return [encode_raw(1, CHUNK_ROWS * number, rows, 1) for number in range(count)]


async def life(broker: BrokerSettings, folder: Path) -> str:
    """Ten chunks from our tracker to our application."""
    async with at_work(broker, folder) as (sidecar, device, _), subscribe(broker, device) as chunks:
        async with Publisher(broker, device, NAMES, 2.0) as publisher:
            for _ in range(10):
                assert await publisher.send(rows_of_a_stranger(CHUNK_ROWS, len(NAMES)))
            async with asyncio.timeout(PATIENCE_S):
                got = [(await anext(chunks)).index for _ in range(10)]
        assert got == list(range(10))
        assert (chunks.refused, chunks.foreign) == (0, 0)
        await until(lambda: sidecar.outbox.delivered == 10)
    return "ok"


async def version(broker: BrokerSettings, folder: Path) -> str:
    """Which version of MQTT they agree on."""
    async with connect(Endpoint.of(broker), client_id=None, deliver=print) as link:
        return link.version.removeprefix("MQTT ")


async def retained(broker: BrokerSettings, folder: Path) -> str:
    """Who comes late reads how the sidecar is, and what the stream is."""
    async with at_work(broker, folder) as (_, device, _), subscribe(broker, device) as chunks:
        await until(lambda: chunks.meta is not None and chunks.status is not None)
    return "ok"


async def will(broker: BrokerSettings, folder: Path) -> str:
    """A link that is cut says its will."""
    topic, got = sidecar_status_topic(f"s{secrets.token_hex(4)}"), list[Message]()
    port = Endpoint.of(broker).port
    async with FaultProxy(port) as proxy, connect(Endpoint.of(broker), client_id=None, deliver=got.append) as link:
        await link.subscribe(topic, 1)
        far = Endpoint.of(msgspec.structs.replace(broker, url=proxy.url))
        own = connect(far, client_id=f"c{secrets.token_hex(4)}", deliver=print, will=Will(topic, b"gone", 1))
        with contextlib.suppress(Exception):  # it is lost on purpose
            async with own:
                proxy.reset()
                await asyncio.sleep(10)
        await until(lambda: [message.payload for message in got] == [b"gone"])
    return "ok"


async def lost_links(broker: BrokerSettings, folder: Path) -> str:
    """Links of the sidecar are cut again and again; each chunk arrives, in order, with the same bytes."""
    seen: dict[tuple[int, int], set[bytes]] = {}
    order: list[int] = []

    def note(message: Message) -> None:
        chunk = decode_private(message.payload)
        seen.setdefault((chunk.session, chunk.chunk), set()).add(message.payload)
        order.append(chunk.chunk)

    async with FaultProxy(Endpoint.of(broker).port) as proxy:
        settings = _settings(broker, folder)
        device = settings.device[0].id
        far = msgspec.structs.replace(broker, url=proxy.url)
        settings = msgspec.structs.replace(settings, private=far, raw=broker)
        async with (
            connect(Endpoint.of(broker), client_id=None, deliver=note) as link,
            running(settings) as sidecar,
            Publisher(broker, device, NAMES, 2.0) as publisher,
        ):
            await link.subscribe(private_topic(device), 1)
            await until(lambda: sidecar.raw_stands and sidecar.private_stands)
            for _ in range(5):
                assert await publisher.send(rows_of_a_stranger(CHUNK_ROWS, len(NAMES)))
                proxy.reset()
                assert await publisher.send(rows_of_a_stranger(CHUNK_ROWS, len(NAMES)))
                await until(lambda: sidecar.private_stands)
            await until(lambda: len(seen) == 10)
    assert all(len(payloads) == 1 for payloads in seen.values())
    first = list(dict.fromkeys(order))
    assert first == sorted(first)
    return "ok"


async def kept_session(broker: BrokerSettings, folder: Path) -> str:
    """What was published while an application was away comes when it is back; what was over by then does not."""
    topic, name = private_topic(f"d{secrets.token_hex(4)}"), f"c{secrets.token_hex(4)}"
    where, got = Endpoint.of(broker), list[bytes]()

    def note(message: Message) -> None:
        got.append(message.payload)

    async with connect(where, client_id=name, deliver=note, clean_session=False) as link:
        await link.subscribe(topic, 1)
        expires = link.version == "MQTT 5"
    async with connect(where, client_id=None, deliver=print) as link:
        await link.publish(topic, b"short", qos=1, more=Properties(expiry_s=1))
        await link.publish(topic, b"long", qos=1, more=Properties(expiry_s=600))
        await asyncio.sleep(3)
    async with connect(where, client_id=name, deliver=note, clean_session=False):
        await until(lambda: b"long" in got)
    return "what was over is gone" if b"short" not in got else "nothing expires" if not expires else "does not expire"


async def rivals(broker: BrokerSettings, folder: Path) -> str:
    """A second sidecar for the same device does not start."""
    async with at_work(broker, folder) as (_, device, _):
        (folder / "rival").mkdir()
        other = _settings(broker, folder / "rival")
        other = msgspec.structs.replace(other, device=(msgspec.structs.replace(other.device[0], id=device),))
        with opened(other) as rival:
            try:
                async with asyncio.timeout(PATIENCE_S):
                    await rival.run(asyncio.Event())
            except ConfigError:
                return "ok"
            except TimeoutError:
                return "not seen"
    return "not seen"


async def stopped(broker: BrokerSettings, folder: Path) -> str:
    """A sidecar that ends in order says so, and it stays said."""
    async with at_work(broker, folder) as (_, _, settings):
        topic = sidecar_status_topic(settings.sidecar.name)
    got: list[Message] = []
    async with connect(Endpoint.of(broker), client_id=None, deliver=got.append) as link:
        await link.subscribe(topic, 1)
        await until(lambda: got != [])
    assert decode_status(got[-1].payload).reason == "stopped"
    return "ok"


async def strange_topics(broker: BrokerSettings, folder: Path) -> str:
    """Nothing but rows comes to the sidecar: what is published beside its topics is not delivered to it."""
    async with at_work(broker, folder) as (sidecar, device, _):
        async with connect(Endpoint.of(broker), client_id=None, deliver=print) as link:
            await link.publish(raw_topic(f"{device}x"), b"x", qos=1)
            await link.publish(raw_topic(device), b"x", qos=1)
        await until(lambda: sidecar.pipeline.counters.rejected.total() == 1)
    return "ok"


PROBES: dict[str, Probe] = {
    "version": version,
    "life": life,
    "retained": retained,
    "will": will,
    "lost links": lost_links,
    "kept session": kept_session,
    "two for a device": rivals,
    "stopped": stopped,
    "strange topics": strange_topics,
}
"""By the head of its column."""
