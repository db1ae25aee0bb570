"""The embedded broker instead of mosquitto: hostile payloads, and a broker that comes and goes.

A session taken over is not tried: amqtt leaves the older connection alone.
"""

import asyncio
from pathlib import Path

import pytest

from eyestream.rim.config import BrokerSettings
from eyestream.rim.ledger.reading import read_ledger
from eyestream.rim.mqtt.endpoint import Endpoint
from eyestream.rim.mqtt.transport import connect
from eyestream.rim.sidecar.sidecar import Sidecar
from eyestream.wire.topics import raw_topic
from eyestream_lab.embedded import embedded_broker, free_port
from eyestream_lab.testing.clocks import until
from tests.rigs.hostile.corpus import every, payload
from tests.rigs.sidecar import running, settings_for
from tests.rigs.storms import ear, lawful, recovery, settled, traffic


def junk() -> list[bytes]:
    """A tenth of the corpus of hostile payloads."""
    payloads = [payload(case) for case in every() if case["reason"] is not None]
    return [data for data in payloads if 0 < len(data) < 70_000][::10]


def refused(sidecar: Sidecar) -> int:
    """Payloads; amqtt gives who subscribes the retained messages of other topics too: our own, which are no rows."""
    rejected = sidecar.pipeline.counters.rejected
    return rejected.total() - rejected["retained"]


@pytest.mark.long
async def test_a_life_on_the_embedded_broker(tmp_path: Path) -> None:
    port, payloads = free_port(), junk()
    settings = settings_for(f"mqtt://127.0.0.1:{port}", tmp_path)
    async with asyncio.timeout(60):
        async with embedded_broker(port) as url, ear(url) as heard, running(settings) as sidecar, traffic(url):
            await until(lambda: len(heard.payloads) > 3)
            async with connect(Endpoint.of(BrokerSettings(url)), client_id=None, deliver=print) as link:
                for data in payloads:
                    await link.publish(raw_topic("hmd-1"), data, qos=0)
                # amqtt forgets what it has not looked at when its sender leaves
                await until(lambda: refused(sidecar) == len(payloads))
            before = len(heard.payloads)
            await until(lambda: len(heard.payloads) > before + 3)
        assert lawful(sidecar)
        assert settled(sidecar) == sidecar.pipeline.counters.due
    assert (heard.conflicts, heard.disorder) == (0, 0)
    assert read_ledger(settings.sidecar.ledger).odometers["hmd-1"].released == sidecar.pipeline.counters.released


@pytest.mark.long
async def test_an_embedded_broker_that_comes_and_goes(tmp_path: Path) -> None:
    port = free_port()
    settings = settings_for(f"mqtt://127.0.0.1:{port}", tmp_path)
    async with asyncio.timeout(60), running(settings) as sidecar:
        for turn in range(3):
            async with embedded_broker(port) as url:
                took = await recovery(lambda: sidecar.raw_stands and sidecar.private_stands)
                assert took < 5
                async with traffic(url):
                    before = sidecar.outbox.delivered
                    await until(lambda before=before: sidecar.outbox.delivered > before + 3)
            await until(lambda: not sidecar.private_stands)
            assert sidecar.links["private"] == turn + 1
            assert lawful(sidecar)
