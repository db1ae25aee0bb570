"""Messages as large as MQTT allows, through a broker that refuses none: no memory is lost, and the next row counts."""

import asyncio
import socket
import tracemalloc
from pathlib import Path

import pytest

from eyestream.sdk.publisher import Publisher
from eyestream.wire.topics import raw_topic
from eyestream_lab.testing.clocks import until
from tests.rigs.mosquitto import Mosquitto
from tests.rigs.payloads import rows_of_a_stranger
from tests.rigs.sidecar import running, settings_for
from tests.rigs.storms import NAMES
from tests.rigs.strangers import connect_packet, publish_packet

MOST_BYTES = 1 << 23
TOPIC = raw_topic("hmd-1")
LARGEST = 2**28 - 1 - len(TOPIC) - 3
"""Of a payload at QoS 0: what remains of the 268,435,455 bytes of a packet, with properties of no length (MQTT 5)."""


def throw(port: int, packet: bytes) -> None:
    """Send it on a socket of our own."""
    with socket.create_connection(("127.0.0.1", port)) as link:
        link.sendall(connect_packet("thrower"))
        link.sendall(packet)
        link.sendall(b"\xe0\0")
        while link.recv(4096):
            pass


@pytest.mark.parametrize("size", [2**20, 2**24, LARGEST])
async def test_a_bomb_through_the_broker(mosquitto: Mosquitto, tmp_path: Path, size: int) -> None:
    packet = publish_packet(TOPIC, bytes(size))
    async with (
        running(settings_for(mosquitto.url, tmp_path)) as sidecar,
        Publisher(mosquitto.url, "hmd-1", NAMES, 2.0) as publisher,
    ):
        await until(lambda: sidecar.raw_stands)
        assert await publisher.send(rows_of_a_stranger(16, len(NAMES)))
        await until(lambda: sidecar.pipeline.counters.taken == 1)
        tracemalloc.start()
        try:
            before, _ = tracemalloc.get_traced_memory()
            await asyncio.to_thread(throw, mosquitto.port, packet)
            await until(lambda: sidecar.pipeline.counters.rejected["oversize"] == 1)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert await publisher.send(rows_of_a_stranger(16, len(NAMES)))
        await until(lambda: sidecar.pipeline.counters.released == 1)
        assert sidecar.links == {"raw": 1, "private": 1}
    assert peak - before < MOST_BYTES
