"""aiomqtt in the place of our own client: a life of a sidecar, and what a configuration says."""

import asyncio
import sys
from pathlib import Path

import msgspec
import pytest

import eyestream
from eyestream.errors import ConfigError, LinkError
from eyestream.rim.config import BrokerSettings
from eyestream.rim.mqtt.endpoint import Endpoint
from eyestream.rim.mqtt.foreign import ForeignClient
from eyestream.rim.mqtt.transport import Message, Properties, Will, connect
from eyestream.rim.sdk.publisher import Publisher
from eyestream.testing.clocks import until
from tests.rigs.mosquitto import Mosquitto
from tests.rigs.payloads import rows_of_a_stranger
from tests.rigs.sidecar import raw_stands, running, settings_for
from tests.rigs.spy import spying
from tests.rigs.storms import NAMES


def on_aiomqtt(url: str, **more: str) -> BrokerSettings:
    return msgspec.convert({"url": url, "client": "aiomqtt", **more}, BrokerSettings)


@pytest.mark.parametrize("version", ["5", "3.1.1"])
async def test_a_life(mosquitto: Mosquitto, tmp_path: Path, version: str) -> None:
    """Tracker, sidecar and application, all on aiomqtt, heard by a spy on an own link of ours."""
    broker = on_aiomqtt(mosquitto.url, version=version)
    settings = msgspec.structs.replace(settings_for(mosquitto.url, tmp_path), private=broker)
    heard: list[Message] = []
    async with connect(Endpoint.of(BrokerSettings(mosquitto.url)), client_id=None, deliver=heard.append) as ours:
        await ours.subscribe("eyestream/v1/hmd-1/features/private", 1)
        async with running(settings) as sidecar, eyestream.subscribe(broker, "hmd-1") as chunks:
            await until(lambda: raw_stands(sidecar) and sidecar.private_stands)
            async with Publisher(broker, "hmd-1", NAMES, 2.0) as publisher:
                for _ in range(5):
                    assert await publisher.send(rows_of_a_stranger(32, len(NAMES)))
                got = [await asyncio.wait_for(anext(chunks), 20) for _ in range(5)]
            await until(lambda: len(heard) == 5)
            assert sidecar.outbox.delivered == 5
            assert chunks.refused == 0
    assert [chunk.index for chunk in got] == list(range(5))
    assert {chunk.claim is not None for chunk in got} == {version == "5"}
    assert {message.more.expiry_s is not None for message in heard} == {version == "5"}


async def test_who_falls_over_says_the_will(mosquitto: Mosquitto) -> None:
    async def work() -> None:
        async with connect(where, client_id="me", deliver=print, will=Will("will", b"gone", 5)):
            raise ZeroDivisionError

    where = Endpoint.of(on_aiomqtt(mosquitto.url))
    async with spying(mosquitto.url) as spy:
        async with connect(where, client_id="me", deliver=print, will=Will("will", b"gone", 5)) as link:
            assert isinstance(link._client, ForeignClient)
        with pytest.raises(ZeroDivisionError):
            await work()
        await until(lambda: spy.messages != [])
    assert spy.messages == [("will", b"gone", False)]


async def test_a_question_over_aiomqtt(mosquitto: Mosquitto) -> None:
    where = Endpoint.of(on_aiomqtt(mosquitto.url))
    asked: list[Message] = []
    async with (
        connect(where, client_id=None, deliver=asked.append) as service,
        connect(where, client_id=None, deliver=print) as application,
    ):
        await service.subscribe("ask", 1)
        asking = asyncio.create_task(application.request("ask", b"2", respond_at="answers/me", wait_s=20))
        await until(lambda: asked != [])
        await service.respond(asked[0], b"4")
        assert (await asking).payload == b"4"


async def test_what_cannot_be_written_is_refused_in_the_same_words(mosquitto: Mosquitto) -> None:
    where = Endpoint.of(on_aiomqtt(mosquitto.url))
    async with connect(where, client_id=None, deliver=print) as link:
        with pytest.raises(LinkError, match="cannot publish: a topic"):
            await link.publish("t/#", b"", qos=1)
        with pytest.raises(LinkError, match="cannot publish: a message expires"):
            await link.publish("t", b"", qos=1, more=Properties(expiry_s=0))
        with pytest.raises(LinkError, match="cannot subscribe: in a topic filter"):
            await link.subscribe("a+", 1)
        with pytest.raises(ConfigError, match="no ledger"):
            await link.subscribe("$share/x/t", 1)
    with pytest.raises(LinkError, match="NUL"):
        async with connect(where, client_id="\0", deliver=print):
            pass


async def test_without_the_extra_its_name_is_said(monkeypatch: pytest.MonkeyPatch, mosquitto: Mosquitto) -> None:
    monkeypatch.delitem(sys.modules, "eyestream.rim.mqtt.foreign", raising=False)
    monkeypatch.setitem(sys.modules, "aiomqtt", None)
    with pytest.raises(ConfigError, match=r"eyestream\[aiomqtt\]"):
        async with connect(Endpoint.of(on_aiomqtt(mosquitto.url)), client_id=None, deliver=print):
            pass
