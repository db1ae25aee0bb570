"""MQTT 5 on the links: which version is spoken, what it says beside payloads, and brokers that misuse it."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path

import aiomqtt
import msgpack
import pytest

import eyestream
from eyestream.errors import LinkError
from eyestream.rim.config import BrokerSettings, LimitSettings
from eyestream.rim.ledger.reading import read_ledger
from eyestream.rim.mqtt import transport
from eyestream.rim.mqtt.endpoint import Endpoint
from eyestream.rim.mqtt.transport import Message, RefusedError, connect
from eyestream.rim.sidecar import sidecar as sidecar_module
from eyestream.sdk.publisher import Publisher
from eyestream.wire.release import claim_hash, decode_meta
from eyestream_lab.embedded import embedded_broker
from eyestream_lab.testing.clocks import PATIENCE_S, until
from tests.rigs.matrix import blocks
from tests.rigs.mosquitto import Mosquitto
from tests.rigs.payloads import rows_of_a_stranger
from tests.rigs.proxy import FaultProxy
from tests.rigs.scripted import ScriptedBroker
from tests.rigs.sidecar import client_ids, running, settings_for
from tests.rigs.spy import spying
from tests.rigs.storms import NAMES
from tests.rigs.strangers import packet

OWN = "eyestream/v1/sidecar/sidecar/status"
RAW = "eyestream/v1/hmd-1/features/raw"
PRIVATE = "eyestream/v1/hmd-1/features/private"
FIVE, THREE = "MQTT 5", "MQTT 3.1.1"
WELCOME = b"\x20\x03\x00\x00\x00"


def endpoint(url: str, version: str = "auto") -> Endpoint:
    return replace(Endpoint.of(BrokerSettings(url)), version=version)


@contextlib.asynccontextmanager
async def peer(*answers: bytes) -> AsyncIterator[tuple[str, list[bytes]]]:
    """Answers what it is told on each connection with the next of `answers`; an empty one hangs up."""
    told: list[bytes] = []

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        told.append(b"")
        place = len(told) - 1
        with contextlib.suppress(OSError):
            for answer in answers:
                told[place] += await reader.read(4096)
                if not answer:
                    break
                writer.write(answer)
            else:
                while data := await reader.read(4096):
                    told[place] += data
        writer.close()

    async with await asyncio.start_server(accept, "127.0.0.1", 0) as server:
        yield f"mqtt://127.0.0.1:{server.sockets[0].getsockname()[1]}", told


@pytest.mark.parametrize(("wanted", "spoken"), [("auto", FIVE), ("5", FIVE), ("3.1.1", THREE)])
async def test_a_broker_of_both_is_spoken_to_as_one_wants(mosquitto: Mosquitto, wanted: str, spoken: str) -> None:
    async with connect(endpoint(mosquitto.url, wanted), client_id=None, deliver=print) as link:
        assert link.version == spoken


async def test_a_broker_of_3_is_spoken_to_in_3() -> None:
    async with ScriptedBroker() as broker:
        async with connect(endpoint(broker.url), client_id=None, deliver=print) as link:
            assert link.version == THREE
        with pytest.raises(LinkError, match=r"does not speak MQTT 5$"):
            async with connect(endpoint(broker.url, "5"), client_id=None, deliver=print):
                pass
    async with embedded_broker() as url:  # it waits for more bytes, or says no
        for client_id in (None, "me"):
            async with connect(endpoint(url), client_id=client_id, deliver=print) as link:
                assert link.version == THREE


@pytest.mark.parametrize("refusal", [b"", b"\x20\x03\x00\x84\x00", b"\x20\x03\x00\x01\x00", b"\x20\x02\x00\x01"])
async def test_ways_to_say_that_one_speaks_no_5(refusal: bytes) -> None:
    """Each is asked again in 3.1.1, which these say no to as well; who wants nothing else than 5 is told at once."""
    async with peer(refusal) as (url, told):
        with pytest.raises(LinkError):
            async with connect(endpoint(url), client_id="me", deliver=print):
                pass
        assert versions(told) == [5, 4]
        with pytest.raises(LinkError):
            async with connect(endpoint(url, "5"), client_id="me", deliver=print):
                pass
        assert versions(told) == [5, 4, 5]


def versions(told: list[bytes]) -> list[int]:
    """Of each CONNECT; a peer that hangs up is also asked whether it speaks TLS."""
    return [hello[8] for hello in told if hello[:1] == b"\x10"]


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"\x20\x03\x00\x87\x00", r"Not authorized \(0x87\): correct the login"),
        (b"\x20\x0c\x00\x86\x09\x1f\x00\x06no\nway", r"Bad user name or password \(0x86\): noway: correct the login"),
        (b"\x20\x03\x01\x00\x00", "continues a session though we began a new one"),
        (b"\x20\x06\x00\x00\x03\x21\x00\x00", "does not speak MQTT as we know it"),
    ],
)
async def test_a_refusal_of_5_is_no_reason_to_try_3(answer: bytes, why: str) -> None:
    async with peer(answer) as (url, told):
        with pytest.raises(LinkError, match=why):
            async with connect(endpoint(url), client_id="me", deliver=print):
                pass
    assert len(told) == 1


@pytest.mark.parametrize(
    ("bytes_of_broker", "why"),
    [
        (b"\x32\x06\x00\x01t\x00\x00\x00", "does not speak MQTT as we know it"),
        (b"\x40\x03\x00\x01\x13", "does not speak MQTT as we know it"),
        (b"\x30\x02\x00\x05", "does not speak MQTT as we know it"),
        (b"\xe0\x01\x8e", r"Session taken over \(0x8e\)"),
        (b"\xe0\x02\x98\x00", r"Administrative action \(0x98\)"),
    ],
)
async def test_a_broker_that_misuses_5_loses_the_link_with_the_reason(bytes_of_broker: bytes, why: str) -> None:
    got: list[Message] = []

    async def body(url: str) -> None:
        async with asyncio.timeout(PATIENCE_S), connect(endpoint(url), client_id=None, deliver=got.append) as link:
            await link.publish("t", b"", qos=1)
            await asyncio.Event().wait()

    async with peer(WELCOME, bytes_of_broker) as (url, _):
        with pytest.raises(LinkError, match=why):
            await body(url)
    assert got == []


async def test_why_a_filter_is_refused() -> None:
    async with (
        peer(WELCOME, b"\x90\x08\x00\x01\x04\x1f\x00\x01q\x87") as (url, _),
        connect(endpoint(url), client_id=None, deliver=print) as link,
    ):
        with pytest.raises(LinkError, match=r"refuses the subscription to t: Not authorized \(0x87\): q$"):
            await link.subscribe("t", 1)


@contextlib.contextmanager
def broker_that_lets(folder: Path, acl: str) -> Iterator[Mosquitto]:
    """A broker at which everybody may do what `acl` says, and nothing else."""
    (folder / "broker").mkdir()
    (folder / "acl").write_text(acl)
    broker = Mosquitto(folder / "broker", f"acl_file {folder / 'acl'}")
    broker.start()
    try:
        yield broker
    finally:
        broker.stop()


async def test_what_is_refused_costs_no_link(mosquitto: Mosquitto, tmp_path: Path) -> None:
    with broker_that_lets(tmp_path, "topic readwrite open\n") as broker:
        async with connect(endpoint(broker.url), client_id=None, deliver=print) as link:
            with pytest.raises(RefusedError, match=r"published at closed: Not authorized \(0x87\)"):
                await link.publish("closed", b"", qos=1)
            assert list(await link.state([("open", b"1"), ("closed", b"2")])) == ["closed"]
            await link.publish("open", b"", qos=1)


async def test_a_chunk_says_when_it_is_over_and_what_is_claimed(mosquitto: Mosquitto, tmp_path: Path) -> None:
    got: list[Message] = []
    settings = settings_for(mosquitto.url, tmp_path, limits=LimitSettings(deadline_s=50))
    async with (
        connect(endpoint(mosquitto.url), client_id=None, deliver=got.append) as link,
        eyestream.subscribe(mosquitto.url, "hmd-1") as chunks,
        running(settings) as sidecar,
    ):
        await link.subscribe("eyestream/v1/hmd-1/features/+", 1)
        await until(lambda: sidecar.raw_stands)
        async with Publisher(mosquitto.url, "hmd-1", NAMES, 2.0) as publisher:
            assert await publisher.send(rows_of_a_stranger(32, len(NAMES)))
            chunk = await asyncio.wait_for(anext(chunks), PATIENCE_S)
        await until(lambda: any(message.topic == PRIVATE for message in got))
    [private] = [message for message in got if message.topic == PRIVATE]
    [meta] = [decode_meta(message.payload) for message in got if message.topic.endswith("/meta")]
    assert private.more.expiry_s is not None
    assert 20 < private.more.expiry_s <= 50
    assert private.more.user == (("claim", claim_hash(meta.guarantee)),)
    assert chunk.claim == claim_hash(chunk.guarantee)


@pytest.mark.long
async def test_what_is_over_does_not_wait_for_who_is_away(mosquitto: Mosquitto, tmp_path: Path) -> None:
    """A session that the broker keeps has no chunk in it that is older than `deadline_s`; in 3.1.1 it would."""
    settings = settings_for(mosquitto.url, tmp_path, limits=LimitSettings(deadline_s=1))
    late: list[Message] = []
    for version in ("5", "3.1.1"):
        where = endpoint(mosquitto.url, version)
        async with connect(where, client_id=version, deliver=print, clean_session=False) as link:
            await link.subscribe(PRIVATE, 1)
    async with running(settings) as sidecar, Publisher(mosquitto.url, "hmd-1", NAMES, 2.0) as publisher:
        await until(lambda: sidecar.raw_stands)
        assert await publisher.send(rows_of_a_stranger(32, len(NAMES)))
        await until(lambda: sidecar.outbox.delivered == 1)
    await asyncio.sleep(2.5)
    for version in ("5", "3.1.1"):
        where = endpoint(mosquitto.url, version)
        async with connect(where, client_id=version, deliver=late.append, clean_session=False):
            await asyncio.sleep(0.3)
    assert late == []  # for both: the publisher's word counts, whatever the reader speaks


def reasons(messages: list[tuple[str, bytes, bool]]) -> list[str]:
    return [msgpack.unpackb(payload)["reason"] for topic, payload, _ in messages if topic == OWN]


@pytest.mark.long
async def test_a_link_that_is_back_at_once_was_never_lost(
    mosquitto: Mosquitto, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The will waits; what was under way goes on; and a sidecar that does not come back is lost all the same."""
    monkeypatch.setattr(transport, "KEEPALIVE_SECONDS", 4)
    monkeypatch.setattr(sidecar_module, "WILL_DELAY_SECONDS", 2)
    monkeypatch.setattr("eyestream.rim.mqtt.reconnecting.STEADY_SECONDS", 0.0)
    async with FaultProxy(mosquitto.port) as proxy, spying(mosquitto.url) as spy:
        settings = settings_for(proxy.url, tmp_path, raw_url=mosquitto.url)
        async with running(settings) as sidecar:
            await until(lambda: reasons(spy.messages)[-1:] == ["ready"])
            for link in range(2, 5):
                proxy.reset()
                await until(lambda link=link: sidecar.links["private"] == link and sidecar.private_stands)
            async with Publisher(mosquitto.url, "hmd-1", NAMES, 2.0) as publisher:
                assert await publisher.send(rows_of_a_stranger(32, len(NAMES)))
                await until(lambda: spy.chunks() == [0])
            await asyncio.sleep(3)
            assert "lost" not in reasons(spy.messages)
            await proxy.down()
            await until(lambda: reasons(spy.messages)[-1] == "lost", 20)
            await proxy.up()
            await until(lambda: reasons(spy.messages)[-1] == "ready" and sidecar.private_stands, 20)
        await until(lambda: reasons(spy.messages)[-1] == "stopped")


async def test_who_takes_the_session_over_has_nothing_of_ours(mosquitto: Mosquitto, tmp_path: Path) -> None:
    async with spying(mosquitto.url) as spy:
        async with running(settings_for(mosquitto.url, tmp_path)) as sidecar:
            await until(lambda: reasons(spy.messages)[-1:] == ["ready"])
            async with aiomqtt.Client("127.0.0.1", mosquitto.port, identifier=client_ids(sidecar)[0]):
                await until(lambda: sidecar.links["private"] == 2 and sidecar.private_stands)
            await until(lambda: reasons(spy.messages)[-1] == "ready")
        await until(lambda: reasons(spy.messages)[-1] == "stopped")


async def test_a_tracker_is_told_once_why_its_rows_are_refused(
    mosquitto: Mosquitto, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "eyestream.link")
    with broker_that_lets(tmp_path, "topic read #\n") as broker:
        async with Publisher(broker.url, "hmd-1", NAMES, 2.0) as publisher:
            for _ in range(3):
                assert not await publisher.send(rows_of_a_stranger(2, len(NAMES)))
            assert publisher.lost == 6
    [line] = [record.getMessage() for record in caplog.records if "refuses" in record.getMessage()]
    assert "Not authorized (0x87)" in line


async def test_a_sidecar_that_may_not_publish_says_so_and_spends_nothing_twice(
    mosquitto: Mosquitto, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "eyestream.link")
    acl = "topic readwrite eyestream/v1/+/features/raw\ntopic write eyestream/v1/+/+/status\n"
    acl += "topic readwrite eyestream/v1/+/sidecar/owner\n"
    with broker_that_lets(tmp_path, acl) as broker:
        async with running(settings_for(broker.url, tmp_path)) as sidecar:
            await until(lambda: sidecar.raw_stands and sidecar.private_stands)
            async with Publisher(broker.url, "hmd-1", NAMES, 2.0) as publisher:
                for _ in range(3):
                    assert await publisher.send(rows_of_a_stranger(32, len(NAMES)))
            await until(lambda: sidecar.outbox.refused == 3)
            assert sidecar.pipeline.counters.released == 3
            assert (len(sidecar.outbox), sidecar.outbox.delivered) == (0, 0)
            assert sidecar.links["private"] == 1
    lines = sorted(line for line in caplog.messages if "refuses what is published" in line and "sidecar/" not in line)
    assert [line.partition("published at ")[2] for line in lines] == [
        f"eyestream/v1/hmd-1/features/{leaf}: Not authorized (0x87)"
        for leaf in ("budget", "meta", "odometer", "private")
    ]


EVIL = [
    b"\x30\x09\x00\x00\x03\x23\x00\x01xxx\x30\x02\x00\x05",  # a topic alias, and a message without its topic
    b"\x40\x03\x00\x01\x13",  # a reason code that there is not
    b"\x20\x03\x00\x00\x00",  # a second greeting
    b"\x30\x0e\x00\x01t\x0a" + 2 * b"\x02\x00\x00\x00\x00" + b"\xd1\x00",  # a property twice, and a flag
    b"\xe0\x07\x00\x05\x11\x00\x00\x00\x01",  # a session's expiry out of place
    b"\xf0\x00",  # authentication
    b"\x30\xff\xff\xff\xff\x01",  # an endless length
    b"\xe0\x01\x8e",  # taken over
]


@pytest.mark.long
async def test_whatever_a_broker_of_5_does_nothing_is_spent_twice(
    mosquitto: Mosquitto, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The same rows on every link, over and over, some of them over already; then what no broker may say."""
    caplog.set_level(logging.WARNING, "eyestream.link")
    [rows] = blocks(1)
    over = b"\x05\x02\0\0\0\0"
    row = packet(0x30, len(RAW).to_bytes(2, "big") + RAW.encode() + over + rows)
    turn = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal turn
        with contextlib.suppress(OSError):
            await reader.read(4096)
            writer.write(WELCOME)
            asked = await reader.read(4096)
            writer.write(b"\x90\x04" + asked[2:4] + b"\x00\x00" + 3 * row + EVIL[turn % len(EVIL)])
            turn += 1
            await reader.read()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        raw = f"mqtt://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        settings = settings_for(mosquitto.url, tmp_path, raw_url=raw)
        async with spying(mosquitto.url) as spy, running(settings) as sidecar:
            await until(lambda: turn >= len(EVIL), 30)
            await until(lambda: spy.chunks() == [0])
            assert sidecar.pipeline.counters.released == 1
        assert spy.chunks() == [0]
    assert read_ledger(settings.sidecar.ledger).odometers["hmd-1"].released == 1
    assert "MQTT as we know it" in caplog.text
