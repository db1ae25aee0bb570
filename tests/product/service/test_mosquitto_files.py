"""The broker configurations that we ship start, and carry a message."""

import asyncio
from pathlib import Path

import pytest

from eyestream.rim.config import BrokerSettings
from eyestream.rim.mqtt.endpoint import Endpoint
from eyestream.rim.mqtt.transport import Message, connect
from eyestream_lab.testing.clocks import PATIENCE_S, until
from tests.rigs.mosquitto import Mosquitto

FOLDER = Path(__file__).resolve().parents[3] / "config" / "mosquitto"


@pytest.mark.needs("mosquitto")
async def test_the_plain_one(tmp_path: Path) -> None:
    broker = Mosquitto(tmp_path)
    text = (FOLDER / "plain.conf").read_text()
    assert "listener 1883 127.0.0.1" in text
    as_root = "\nuser root\n" if "user root" in broker._configuration.read_text() else ""
    broker._configuration.write_text(text.replace("1883", str(broker.port)) + as_root)
    broker.start()
    try:
        got: list[Message] = []
        async with asyncio.timeout(PATIENCE_S):
            async with connect(Endpoint.of(BrokerSettings(broker.url)), client_id=None, deliver=got.append) as link:
                await link.subscribe("t", 1)
                await link.publish("t", bytes(60_000), qos=1)
                await until(lambda: len(got) == 1)
    finally:
        broker.stop()
