"""Processor time of a message out and back over mosquitto: our links in both versions, aiomqtt, gmqtt, by turns."""

import asyncio
import math
import socket
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from pathlib import Path

from benchmarks.processes import mosquitto_missing
from benchmarks.report import Result, Table
from eyestream.rim.config import BrokerSettings
from eyestream.rim.mqtt.endpoint import Endpoint
from eyestream.rim.mqtt.transport import connect
from tests.rigs.mosquitto import Mosquitto

__all__ = ["run"]

CHUNK_BYTES, ROW_BYTES = 13_400, 260
Send = Callable[[bytes, int], Awaitable[None]]
"""Publishes a payload at a QoS to the client itself; returns when it may be forgotten."""
Open = Callable[[str, "Count"], AbstractAsyncContextManager[Send]]


class Count:
    """How many messages came back, and who waits for some number of them."""

    def __init__(self) -> None:
        self.seen, self._wanted = 0, 0
        self._reached = asyncio.Event()

    def note(self, *_: object) -> None:
        """One more."""
        self.seen += 1
        if self.seen >= self._wanted:
            self._reached.set()

    async def wait(self, wanted: int) -> None:
        """Return when `wanted` have come in all."""
        self._wanted = wanted
        self._reached.clear()
        if self.seen < wanted:
            async with asyncio.timeout(60):
                await self._reached.wait()


def ours(version: str) -> Open:
    @asynccontextmanager
    async def opened(url: str, count: Count) -> AsyncIterator[Send]:
        endpoint = replace(Endpoint.of(BrokerSettings(url)), version=version)
        async with connect(endpoint, client_id=None, deliver=count.note) as link:
            await link.subscribe("t", 1)

            async def send(payload: bytes, qos: int) -> None:
                await link.publish("t", payload, qos=qos)

            yield send

    return opened


def aiomqtt(version: str) -> Open:
    @asynccontextmanager
    async def opened(url: str, count: Count) -> AsyncIterator[Send]:
        from aiomqtt import Client, ProtocolVersion

        async def read(client: Client) -> None:
            async for _ in client.messages:
                count.note()

        protocol = {"5": ProtocolVersion.V5, "3.1.1": ProtocolVersion.V311}[version]
        nodelay = ((socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),)
        port = int(url.rpartition(":")[2])
        async with Client("127.0.0.1", port, protocol=protocol, socket_options=nodelay) as client:
            await client.subscribe("t", 1)
            reading = asyncio.create_task(read(client))

            async def send(payload: bytes, qos: int) -> None:
                await client.publish("t", payload, qos)

            yield send
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)

    return opened


@asynccontextmanager
async def gmqtt(url: str, count: Count) -> AsyncIterator[Send]:
    from gmqtt import Client
    from gmqtt.mqtt.constants import MQTTv311

    client, ready = Client("benchmark"), asyncio.Event()
    client.on_message = lambda client, topic, payload, qos, properties: count.note() or 0
    client.on_subscribe = lambda client, mid, qos, properties: ready.set()
    await client.connect("127.0.0.1", int(url.rpartition(":")[2]), version=MQTTv311)
    client.subscribe("t", 1)
    await ready.wait()

    async def send(payload: bytes, qos: int) -> None:
        client.publish("t", payload, qos=qos)  # it does not tell when this is acknowledged

    yield send
    await client.disconnect()


CLIENTS: dict[str, Open] = {
    "ours, 3.1.1": ours("3.1.1"),
    "ours, 5": ours("5"),
    "aiomqtt, 3.1.1": aiomqtt("3.1.1"),
    "aiomqtt, 5": aiomqtt("5"),
    "gmqtt, 3.1.1": gmqtt,
}


async def one_by_one(send: Send, count: Count, messages: int) -> None:
    """Chunks at QoS 1, each when the one before is back."""
    for _ in range(messages):
        before = count.seen
        await send(bytes(CHUNK_BYTES), 1)
        await count.wait(before + 1)


async def eight(send: Send, count: Count, messages: int) -> None:
    """Chunks at QoS 1, eight under way."""
    for _ in range(messages // 8):
        before = count.seen
        await asyncio.gather(*(send(bytes(CHUNK_BYTES), 1) for _ in range(8)))
        await count.wait(before + 8)


async def rows(send: Send, count: Count, messages: int) -> None:
    """Rows at QoS 0, four at once."""
    for _ in range(messages // 4):
        before = count.seen
        for _ in range(4):
            await send(bytes(ROW_BYTES), 0)
        await count.wait(before + 4)


WORK = {"a chunk, one at a time": one_by_one, "a chunk, 8 at a time": eight, "a row, 4 at a time": rows}


async def _measure(url: str, opened: Open, messages: int) -> dict[str, float]:
    """Microseconds of processor time a message, by work."""
    found: dict[str, float] = {}
    count = Count()
    async with opened(url, count) as send:
        for name, work in WORK.items():
            await work(send, count, 40)
            before = time.process_time()
            await work(send, count, messages)
            found[name] = (time.process_time() - before) / messages * 1e6
    return found


def run(quick: bool) -> Result:
    """Every client in every round."""
    result = Result("clients")
    if missing := mosquitto_missing():
        result.notes.append(missing)
        return result
    messages, rounds = (200, 2) if quick else (2000, 9)
    taken: dict[str, list[dict[str, float]]] = {name: [] for name in CLIENTS}
    with tempfile.TemporaryDirectory() as folder, Mosquitto(Path(folder), "log_type none") as broker:
        for _ in range(rounds):
            for name, opened in CLIENTS.items():
                try:
                    taken[name].append(asyncio.run(_measure(broker.url, opened, messages)))
                except ImportError:
                    continue
    table = []
    for name, found in taken.items():
        if not found:
            result.notes.append(f"{name}: not installed")
            continue
        cells = [name]
        for work in WORK:
            # by turns: each round's figure beside that of our client in the same round
            ratios = [own[work] and one[work] / own[work] for one, own in zip(found, taken["ours, 3.1.1"], strict=True)]
            median = statistics.median(one[work] for one in found)
            spread = max(ratios) - min(ratios) if ratios else math.nan
            cells.append(f"{median:.0f} us, x {statistics.median(ratios):.2f} (+- {spread / 2:.2f})")
            result.records.append(
                {
                    "benchmark": "clients",
                    "mechanism": "none",
                    "n": 0,
                    "F": 0,
                    "client": name,
                    "work": work,
                    "median_us": median,
                    "p99_us": max(one[work] for one in found),  # of so few rounds the largest
                    "ratio": statistics.median(ratios),
                    "rounds": rounds,
                }
            )
        table.append(cells)
    result.tables.append(
        Table("processor time of a message out and back; its ratio to our client in 3.1.1", ["client", *WORK], table)
    )
    result.notes.append(
        f"{rounds} rounds of {messages} messages, all clients in each; 13.4 kB at QoS 1, 260 bytes at QoS 0, mosquitto "
        "on the loopback; the ratio is the median over rounds, with half of its range"
    )
    return result
