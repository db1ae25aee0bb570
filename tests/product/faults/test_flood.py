"""A flood and a crowd at a real broker, shortly: tools/verification/flood.py in a process and memory of its own."""

import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from eyestream.sdk.publisher import Publisher
from eyestream.wire.topics import raw_topic
from eyestream_lab.testing.clocks import until
from tests.rigs.mosquitto import Mosquitto
from tests.rigs.payloads import rows_of_a_stranger
from tests.rigs.proxy import Fault, FaultProxy
from tests.rigs.sidecar import running, settings_for
from tests.rigs.storms import NAMES
from tests.rigs.strangers import connect_packet, publish_packet

MATTERS_OF_SPEED = {"late after the flood", "tracker not heard during", "tracker not heard after", "nothing dropped"}
"""Whether three seconds of this machine's fastest flood are more than the sidecar takes; the long form judges them."""

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.long
def test_a_flood_and_a_crowd_cost_neither_memory_nor_the_tracker(mosquitto: Mosquitto) -> None:
    command = [sys.executable, "-m", "tools.verification.flood", "--seconds", "3", "--connections", "200"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=280)
    assert done.stdout, done.stderr
    figures = json.loads(done.stdout)
    assert set(figures["wrong"]) <= MATTERS_OF_SPEED
    assert done.returncode == (1 if figures["wrong"] else 2), "a few seconds tell nothing about a slope"
    assert figures["flood messages"] > 100
    assert figures["received"] > 100
    assert figures["heard in 3 s after"] > 0
    assert len(figures["visits"]) >= 7
    assert figures["rejected"]["not_a_map"] > 0, "wills of those who broke off came as raw messages"
    assert figures["looks"] > 30


@pytest.mark.needs("mosquitto")
async def test_after_a_flood_that_the_broker_had_to_drop_the_tracker_is_heard(tmp_path: Path) -> None:
    """mosquitto 2.0 drops packets for a client that is too slow, at QoS 1 too, and waits for their acknowledgement for
    ever: after twenty of them it sends no more. A sidecar that asks for QoS 0 does not depend on that.
    """
    broker = Mosquitto(tmp_path, "max_queued_messages 100")
    broker.start()
    block = rows_of_a_stranger(32, len(NAMES))
    try:
        async with (
            FaultProxy(broker.port) as proxy,
            Publisher(broker.url, "hmd-1", NAMES, 2.0) as publisher,
            running(settings_for(broker.url, tmp_path, raw_url=proxy.url)) as sidecar,
        ):
            await until(lambda: sidecar.raw_stands)
            assert await publisher.send(block)
            await until(lambda: sidecar.pipeline.counters.released == 1)
            proxy.fault = Fault(stalled=True)
            with socket.create_connection(("127.0.0.1", broker.port)) as link:
                link.sendall(connect_packet("flood"))
                for _ in range(1000):
                    link.sendall(publish_packet(raw_topic("hmd-1"), bytes(65_000)))
                await until(lambda: "being dropped" in broker.log.read_text())
            for _ in range(40):
                assert await publisher.send(block)
            proxy.fault = Fault()
            await until(lambda: sidecar.worker.held == 0 and sidecar.worker.received > 100)
            before = sidecar.pipeline.counters.released
            for _ in range(4):
                assert await publisher.send(block)
            await until(lambda: sidecar.pipeline.counters.released >= before + 3, 3)
    finally:
        broker.stop()


def test_what_strangers_say_is_mqtt() -> None:
    """By the standard's own example of a long packet: 321 bytes are 0xC1 0x02."""
    assert publish_packet("a/b", bytes(316))[:8] == b"\x30\xc1\x02\0\3a/b"
    assert connect_packet("x") == b"\x10\x0d\0\4MQTT\4\2\0\x3c\0\1x"
    assert connect_packet("x", will=("t", b"w")) == b"\x10\x13\0\4MQTT\4\6\0\x3c\0\1x\0\1t\0\1w"
