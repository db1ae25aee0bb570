"""Publisher and subscriber: the wire of DESIGN section 4 from both ends, over a real broker."""

import asyncio

import msgpack
import numpy as np
import pytest

from eyestream.errors import ConfigError, LinkError
from eyestream.rim.config import BrokerSettings
from eyestream.rim.mqtt.endpoint import Endpoint
from eyestream.rim.mqtt.transport import Link, Message, connect
from eyestream.sdk.publisher import Publisher
from eyestream.sdk.subscriber import Chunks, subscribe
from eyestream.wire import topics
from eyestream.wire.release import Meta, PrivateChunk, encode_meta, encode_private
from eyestream.wire.status import Status, encode_status
from eyestream_lab.embedded import free_port
from eyestream_lab.testing.clocks import PATIENCE_S, until
from tests.rigs.mosquitto import Mosquitto

NAMES = ("a", "b", "c")


def endpoint(url: str) -> Endpoint:
    return Endpoint.of(BrokerSettings(url))


def meta(names: tuple[str, ...] = NAMES) -> bytes:
    return encode_meta(
        Meta(
            names=names,
            units=("1",) * len(names),
            rate_hz=2.0,
            n=4,
            mechanism="cfpa",
            k=(1,) * len(names),
            epsilon=1.5,
            delta=0.0,
            noise_sd=np.ones(len(names), np.float32),
            guarantee="in words",
            calibration="00",
        )
    )


def chunk(index: int, session: int = 9, features: int = 3) -> bytes:
    values = np.full((features, 4), index, np.float32)
    return encode_private(PrivateChunk(session, index, 2.0 * index, 0.5, values, 1.5, 0.0))


async def test_rows_are_numbered_and_sessions_increase(mosquitto: Mosquitto) -> None:
    got: list[Message] = []
    async with connect(endpoint(mosquitto.url), client_id=None, deliver=got.append) as link:
        await link.subscribe("#", 1)
        async with Publisher(mosquitto.url, "hmd-1", NAMES, 2.0, schema=3) as publisher:
            assert await publisher.send(np.arange(6).reshape(2, 3))
            assert await publisher.send([np.nan, 1, 2])
            assert await publisher.send([0, 0, 0], seq=10)
            await publisher.end_session()
            assert await publisher.send([7, 8, 9])
        await until(lambda: len(got) == 6)
    assert {message.topic for message in got} == {"eyestream/v1/hmd-1/features/raw"}
    assert not any(message.retain for message in got)
    maps = [msgpack.unpackb(message.payload) for message in got]
    assert all(next(iter(entry)) == "v" and entry["v"] == 1 and entry["schema"] == 3 for entry in maps)
    assert [(entry["seq"], entry["shape"][0], entry.get("end", False)) for entry in maps] == [
        (0, 2, False),
        (2, 1, False),
        (10, 1, False),
        (11, 0, True),
        (0, 1, False),
        (1, 0, True),
    ]
    sessions = [entry["session"] for entry in maps]
    assert sessions[0] == sessions[3] < sessions[4] == sessions[5]
    assert np.frombuffer(maps[0]["values"], "<f4").tolist() == [0, 1, 2, 3, 4, 5]


async def test_a_used_number_and_a_wrong_width_are_refused(mosquitto: Mosquitto) -> None:
    async with Publisher(mosquitto.url, "hmd-1", NAMES, 2.0) as publisher:
        await publisher.send(np.zeros((4, 3)))
        with pytest.raises(ValueError, match="seq: expected 4 or more"):
            await publisher.send(np.zeros((1, 3)), seq=3)
        with pytest.raises(ValueError, match=r"expected \(m, 3\)"):
            await publisher.send(np.zeros((1, 2)))


async def test_rows_of_an_outage_are_lost_counted_and_numbered(mosquitto: Mosquitto) -> None:
    async with Publisher(mosquitto.url, "hmd-1", NAMES, 2.0) as publisher:
        assert await publisher.send(np.zeros((1, 3)))
        mosquitto.stop(kill=True)
        async with asyncio.timeout(PATIENCE_S):
            while await publisher.send(np.zeros((1, 3))):
                pass
            assert not await publisher.send(np.zeros((2, 3)))
        lost, numbered, session = publisher.lost, publisher.next_seq, publisher.session
        assert lost >= 3
        mosquitto.start()
        async with asyncio.timeout(PATIENCE_S):
            while not await publisher.send(np.zeros((1, 3))):  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        assert publisher.next_seq > numbered
        assert publisher.session == session


async def test_no_broker_is_an_error_after_a_bounded_wait() -> None:
    url = f"mqtt://127.0.0.1:{free_port()}"
    with pytest.raises(LinkError, match="cannot connect to the broker at 127"):
        async with asyncio.timeout(5), Publisher(url, "hmd-1", NAMES, 2.0, wait_s=0.3):
            pass
    with pytest.raises(LinkError, match="cannot connect to the broker at 127"):
        async with asyncio.timeout(5), subscribe(url, "hmd-1", wait_s=0.3):
            pass


@pytest.mark.parametrize("device", ["", "a/b", "#", "+", "a b"])
async def test_a_device_that_is_no_name_is_refused(device: str) -> None:
    with pytest.raises(ConfigError):
        Publisher("mqtt://localhost", device, NAMES, 2.0)
    with pytest.raises(ConfigError):
        await subscribe("mqtt://localhost", device).__aenter__()


async def say(link: Link, leaf: str, payload: bytes) -> None:
    await link.publish(f"eyestream/v1/hmd-1/features/{leaf}", payload, qos=1, retain=leaf != "private")


async def test_an_application_gets_chunks_with_names_times_and_price(mosquitto: Mosquitto) -> None:
    async with connect(endpoint(mosquitto.url), client_id=None, deliver=print) as link:
        await say(link, "meta", meta())
        await say(link, "status", encode_status(Status("online", "ready")))
        async with subscribe(mosquitto.url, device="hmd-1") as chunks:
            await until(lambda: chunks.status is not None)
            await say(link, "private", chunk(3))
            async with asyncio.timeout(PATIENCE_S):
                got = await anext(aiter(chunks))
    assert (got.session, got.index, got.names) == (9, 3, NAMES)
    assert (got.epsilon, got.delta, got.guarantee) == (1.5, 0.0, "in words")
    assert got.t.tolist() == [6.0, 6.5, 7.0, 7.5]
    assert got.values.dtype == np.float32
    assert got.values.tolist() == [[3.0] * 4] * 3


async def test_duplicates_and_strangers_are_not_chunks(mosquitto: Mosquitto) -> None:
    listening = subscribe(mosquitto.url, device="hmd-1")
    async with connect(endpoint(mosquitto.url), client_id=None, deliver=print) as link, listening as chunks:
        await say(link, "private", chunk(0))  # before its description: kept until that comes
        await say(link, "meta", meta())
        for payload in (chunk(0), chunk(0), chunk(1), b"\xc1", chunk(2, features=2), chunk(1), chunk(0, session=2)):
            await say(link, "private", payload)
        taken = []
        async with asyncio.timeout(PATIENCE_S):
            while len(taken) < 3:
                got = await anext(chunks)
                taken.append((got.session, got.index))
        assert chunks.refused == 2
    assert taken == [(9, 0), (9, 1), (2, 0)]


def test_what_a_sidecar_sends_again_after_an_outage_is_known_across_sessions() -> None:
    """Several chunks are under way at once, and a session may end among them: all of them come a second time."""
    chunks = Chunks("hmd-1", 4096)
    chunks._deliver(Message(topics.meta_topic("hmd-1"), meta(), retain=True))

    def come(session: int, index: int) -> None:
        chunks._deliver(Message(topics.private_topic("hmd-1"), chunk(index, session), retain=False))

    once = [(9, 5), (9, 6), (2, 0), (3, 0)]
    for session, index in [*once, *once, (3, 1)]:
        come(session, index)
    assert [(got.session, got.index) for got in iter(chunks._arrived.pop, None)] == [*once, (3, 1)]
    for session in range(100, 1100):
        come(session, 0)
    assert len(chunks._arrived) == 1000
    assert len(chunks._last) <= 64  # who invents sessions costs a bounded memory
    come(1099, 0)
    come(1040, 0)
    assert len(chunks._arrived) == 1000


async def test_a_slow_application_loses_the_oldest_chunks(mosquitto: Mosquitto) -> None:
    async with connect(endpoint(mosquitto.url), client_id=None, deliver=print) as link:
        await say(link, "meta", meta())
        async with subscribe(mosquitto.url, device="hmd-1", buffer=2) as chunks:
            await until(lambda: chunks.meta is not None)
            for index in range(5):
                await say(link, "private", chunk(index))
            await until(lambda: chunks.dropped == 3)
            assert (await anext(chunks)).index == 3


async def test_a_fixed_client_id_loses_nothing_of_an_absence(mosquitto: Mosquitto) -> None:
    async with connect(endpoint(mosquitto.url), client_id=None, deliver=print) as link:
        await say(link, "meta", meta())
        async with subscribe(mosquitto.url, device="hmd-1", client_id="app") as chunks:
            await until(lambda: chunks.meta is not None)
        for index in range(3):
            await say(link, "private", chunk(index))
        async with subscribe(mosquitto.url, device="hmd-1", client_id="app") as chunks, asyncio.timeout(PATIENCE_S):
            taken = [(await anext(chunks)).index for _ in range(3)]
    assert taken == [0, 1, 2]


async def of(link: Link, device: str, session: int) -> None:
    """One device's whole stream, short: description, status, a chunk."""
    for topic, payload in (
        (topics.meta_topic(device), meta()),
        (topics.status_topic(device), encode_status(Status("online", "ready"))),
        (topics.private_topic(device), chunk(0, session)),
    ):
        await link.publish(topic, payload, qos=1)


async def test_one_client_id_for_one_device_after_the_other_gets_each_its_own_chunks(mosquitto: Mosquitto) -> None:
    """The subscription to the first one lives on at the broker, and nobody takes its chunks for the second one's."""
    async with connect(endpoint(mosquitto.url), client_id=None, deliver=print) as link:
        async with subscribe(mosquitto.url, device="hmd-1", client_id="app"):
            pass
        async with subscribe(mosquitto.url, device="hmd-2", client_id="app") as chunks, asyncio.timeout(PATIENCE_S):
            await of(link, "hmd-1", session=1)
            await of(link, "hmd-2", session=2)
            assert (await anext(chunks)).session == 2
            await asyncio.sleep(0.2)
            assert (len(chunks._arrived), chunks.foreign, chunks.refused) == (0, 0, 0)
        async with subscribe(mosquitto.url, device="hmd-1", client_id="app") as chunks, asyncio.timeout(PATIENCE_S):
            assert (await anext(chunks)).session == 1  # it was kept meanwhile


async def test_one_client_id_for_two_devices_at_once(mosquitto: Mosquitto) -> None:
    """Under one MQTT client id they would take each other's connection over, again and again."""
    first = subscribe(mosquitto.url, device="hmd-1", client_id="app")
    second = subscribe(mosquitto.url, device="hmd-2", client_id="app")
    async with connect(endpoint(mosquitto.url), client_id=None, deliver=print) as link, first as one, second as two:
        for session, device in ((1, "hmd-1"), (2, "hmd-2")):
            await of(link, device, session)
        async with asyncio.timeout(PATIENCE_S):
            assert [(await anext(one)).session, (await anext(two)).session] == [1, 2]
    assert "already connected" not in mosquitto.log.read_text()


async def test_what_was_not_asked_for_is_ignored_and_counted(mosquitto: Mosquitto) -> None:
    """The session of the client id was made by somebody who asked for everything."""
    settings = endpoint(mosquitto.url)
    async with connect(settings, client_id="app:hmd-2", deliver=print, clean_session=False) as link:
        await link.subscribe("#", 1)
    listening = subscribe(mosquitto.url, device="hmd-2", client_id="app")
    async with connect(settings, client_id=None, deliver=print) as link, listening as chunks:
        await of(link, "hmd-1", session=1)
        await until(lambda: chunks.foreign == 3)
        assert (chunks.meta, chunks.status, len(chunks._arrived), len(chunks._early)) == (None, None, 0, 0)
        await of(link, "hmd-2", session=2)
        async with asyncio.timeout(PATIENCE_S):
            assert (await anext(chunks)).session == 2
    assert (chunks.foreign, chunks.refused) == (3, 0)


async def test_an_empty_client_id_is_refused() -> None:
    with pytest.raises(ConfigError, match="client_id: expected at least one character"):
        await subscribe("mqtt://localhost", "hmd-1", client_id="").__aenter__()


def test_topics_of_the_design() -> None:
    assert topics.private_topic("hmd-1") == "eyestream/v1/hmd-1/features/private"
