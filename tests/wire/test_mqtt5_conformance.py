"""The client against what MQTT 5 demands of one: a table of what it must refuse, and a judge of what it says."""

import asyncio
import random
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest

from eyestream.errors import LinkError
from eyestream.rim.mqtt.client import Client
from eyestream.rim.mqtt.outgoing import Outgoing
from eyestream.wire import mqtt, mqtt5
from eyestream.wire.mqtt5_properties import MAX_USER
from eyestream.wire.mqtt5_reasons import REASONS
from eyestream.wire.mqtt_packets import Limits, Message, Properties, Suback, Will
from tests.wire.mqtt5_judge import Judge5
from tests.wire.mqtt5_statements import CONNACK, REFUSED, SHOWN, TAKEN, Refused5, page
from tests.wire.mqtt_judge import ViolationError
from tests.wire.pipes import Pipe, said

ROOT = Path(__file__).resolve().parents[2]


def joined(
    deliver: Callable[[Message], None] = lambda message: None,
    keepalive_s: float = 60,
    outgoing: Outgoing | None = None,
    connected: bool = True,
) -> tuple[Client, Pipe, Judge5]:
    """A client whose every word is judged."""
    judge = Judge5(connected=connected)
    client, pipe = Client(deliver, keepalive_s, mqtt5, outgoing), Pipe(judge)
    client.connection_made(pipe)
    return client, pipe, judge


def publish_to(client: Client, topic: str, done: list[str], name: str = "", **said: Any) -> None:
    """Publish; note in `done` what becomes of it."""
    client.publish(
        topic,
        b"x",
        said.pop("retain", False),
        acknowledged=partial(done.append, name),
        refused=lambda why: done.append(f"{name}: {why}"),
        **said,
    )


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: f"{case.number} {case.what}")
@pytest.mark.parametrize("piecewise", [False, True])
async def test_a_broker_that_breaks_a_rule_of_5_loses_the_link_and_is_told_why(case: Refused5, piecewise: bool) -> None:
    delivered: list[Message] = []
    client, pipe, judge = joined(delivered.append)
    for piece in [case.stream[at : at + 1] for at in range(len(case.stream))] if piecewise else [case.stream]:
        if not pipe.closed:
            client.data_received(piece)
    assert pipe.closed
    assert pipe.written == said(0xE0, bytes([case.code]))
    assert judge.gone
    client.connection_lost(None)
    with pytest.raises(LinkError, match=rf"does not speak MQTT 5 as we know it: .+ \(0x{case.code:02x}\)"):
        await client.ended
    assert delivered == []


@pytest.mark.parametrize(("data", "what"), TAKEN, ids=lambda part: part if isinstance(part, str) else "")
async def test_what_comes_close_is_taken_in_5(data: bytes, what: str) -> None:
    delivered: list[Message] = []
    client, pipe, judge = joined(delivered.append)
    judge.owed = [1]
    client.data_received(CONNACK + data)
    assert not pipe.closed
    assert len(delivered) == (data[0] >> 4 == 3)
    client.connection_lost(None)


def test_what_a_message_says_beside_its_payload() -> None:
    more = b"\x02\x00\x00\x00\x07\x08\x00\x01r\x09\x00\x02\x00\xff" + b"\x26\x00\x01a\x00\x01b" * (MAX_USER + 3)
    body = b"\x00\x01t" + bytes([len(more) % 128 | 128, len(more) // 128]) + more + b"x"
    data = bytes([0x30, len(body) % 128 | 128, len(body) // 128]) + body
    [_, message] = mqtt5.Decoder().feed(CONNACK + data)
    assert message == Message("t", b"x", False, 0, Properties(7, "r", b"\x00\xff", (("a", "b"),) * MAX_USER))


def test_properties_of_a_stranger_that_are_too_large_cost_no_more_than_a_payload_that_is() -> None:
    """The broker hands them on: the link stays, and whoever gets the message refuses it for its size."""
    pairs = b"\x26\x00\x00\x00\x00" * 2_000_000
    length = len(pairs)
    digits = bytes([length & 127 | 128, length >> 7 & 127 | 128, length >> 14 & 127 | 128, length >> 21])
    body = b"\x00\x01t" + digits + pairs + b"payload"
    size = len(body)
    frame = bytes([0x30, size & 127 | 128, size >> 7 & 127 | 128, size >> 14 & 127 | 128, size >> 21])
    decoder = mqtt5.Decoder()
    data, packets = CONNACK + frame + body + b"\xd0\x00", []
    for at in range(0, len(data), 1 << 16):
        packets += decoder.feed(data[at : at + (1 << 16)])
    _, message, pong = packets
    assert isinstance(message, Message)
    assert (message.topic, message.more) == ("t", Properties())
    assert len(message.payload) == mqtt.MAX_PAYLOAD_KEPT
    assert type(pong).__name__ == "Pingresp"


def publish(topic: str = "t", **more: Any) -> bytes:
    return mqtt5.encode_publish(topic, b"", packet_id=1, retain=False, more=Properties(**more))


def subscribe(*filters: str) -> bytes:
    return mqtt5.encode_subscribe(1, filters, 1)


def connect(**given: Any) -> bytes:
    plain = {"client_id": None, "keepalive_s": 60, "clean_session": True}
    return mqtt5.encode_connect(**{**plain, "will": None, "username": None, "password": None, **given})


WRITTEN: list[tuple[str, str, Callable[[], bytes]]] = [
    ("1.5.4-1", "a topic with a surrogate", lambda: publish("\ud800")),
    ("1.5.4-2", "a topic with U+0000", lambda: publish("a\0")),
    ("3.3.2-2", "a topic with '+'", lambda: publish("a/+")),
    ("4.7.0-1", "a topic with '#'", lambda: publish("#")),
    ("4.7.3-1", "an empty topic", lambda: publish("")),
    ("4.7.3-3", "a topic of 65,536 bytes", lambda: publish("x" * 65_536)),
    ("3.3.2-14", "a response topic with a wildcard", lambda: publish(response_topic="a/+")),
    ("3.3.2-14", "an empty response topic", lambda: publish(response_topic="")),
    ("1.5.7-1", "a user property with U+0000", lambda: publish(user=(("a", "\0"),))),
    ("1.5.4-1", "a user property with a surrogate", lambda: publish(user=(("\ud800", ""),))),
    ("3.3.2-6", "an expiry of 0", lambda: publish(expiry_s=0)),
    ("3.3.2-6", "an expiry of five bytes", lambda: publish(expiry_s=1 << 32)),
    ("4.7.3-3", "correlation data of 65,536 bytes", lambda: publish(correlation=bytes(65_536))),
    ("3.8.3-1", "a filter with a surrogate", lambda: subscribe("\ud800")),
    ("1.5.4-2", "a filter with U+0000", lambda: subscribe("a\0")),
    ("4.7.3-1", "an empty filter", lambda: subscribe("")),
    ("4.7.3-3", "a filter of 65,536 bytes", lambda: subscribe("x" * 65_536)),
    ("4.7.1-1", "'#' before another level", lambda: subscribe("a/#/b")),
    ("4.7.1-2", "'+' in a level", lambda: subscribe("a+/b")),
    ("3.8.3-2", "no filter", subscribe),
    ("1.5.4-2", "a client id with U+0000", lambda: connect(client_id="\0")),
    ("3.3.2-2", "a will with a wildcard", lambda: connect(will=Will("a/#", b""))),
    ("4.7.3-1", "a will without a topic", lambda: connect(will=Will("", b""))),
    ("3.1.2-3", "a kept session without a name", lambda: connect(clean_session=False)),
]
"""What is asked of our encoder, and what it would violate."""


@pytest.mark.parametrize(("number", "what", "write"), WRITTEN, ids=lambda part: part if isinstance(part, str) else "")
def test_what_is_against_a_rule_of_5_is_not_written(number: str, what: str, write: Callable[[], bytes]) -> None:
    with pytest.raises(ValueError, match=r"."):
        write()


def test_what_we_say_in_5_is_what_the_standard_prints() -> None:
    assert connect(keepalive_s=20) == b"\x10\x0d\x00\x04MQTT\x05\x02\x00\x14\x00\x00\x00"
    full = connect(
        client_id="me", clean_session=False, will=Will("w", b"\x01", 5), username="u", password="p", session_s=5
    )
    assert full == (
        b"\x10\x26\x00\x04MQTT\x05\xec\x00\x3c\x05\x11\x00\x00\x00\x05\x00\x02me"
        b"\x05\x18\x00\x00\x00\x05\x00\x01w\x00\x01\x01\x00\x01u\x00\x01p"
    )
    assert mqtt5.encode_subscribe(10, ["a/b"], 1) == b"\x82\x09\x00\x0a\x00\x00\x03a/b\x01"
    assert mqtt5.encode_publish("a/b", b"", packet_id=10, retain=False) == b"\x32\x08\x00\x03a/b\x00\x0a\x00"
    more = Properties(2, "r", b"c", (("n", "v"),))
    assert mqtt5.encode_publish("t", b"x", packet_id=0, retain=True, more=more) == (
        b"\x31\x19\x00\x01t\x14\x02\x00\x00\x00\x02\x08\x00\x01r\x09\x00\x01c\x26\x00\x01n\x00\x01vx"
    )
    assert mqtt5.DISCONNECT == b"\xe0\x00"
    assert mqtt5.DISCONNECT_AND_FORGET == b"\xe0\x07\x00\x05\x11\x00\x00\x00\x00"


def random_connect(chance: random.Random) -> bytes:
    """CONNECT as any of our callers might ask for it."""
    return mqtt5.encode_connect(
        chance.choice([None, "me", "x" * 100]),
        keepalive_s=60,
        clean_session=True,
        will=chance.choice([None, Will("w", b""), Will("w/\u20ac", bytes(300), 5)]),
        username=(name := chance.choice([None, "u", ""])),
        password=None if name is None else chance.choice([None, "p", ""]),
        session_s=chance.choice([0, 5, mqtt5.FOR_EVER]),
    )


def random_properties(chance: random.Random) -> Properties:
    return Properties(
        chance.choice([None, 1, 60, (1 << 32) - 1]),
        chance.choice([None, "r", "\u20ac/" * 100]),
        chance.choice([None, b"", bytes(200)]),
        (("claim", "x" * chance.randrange(100)),) * chance.randrange(3),
    )


@pytest.mark.parametrize("seed", range(60))
async def test_what_we_say_in_5_keeps_every_rule_in_every_order(seed: int) -> None:
    """Greeting, publishing, subscribing, being sent messages and leaving, with late answers and little room."""
    chance = random.Random(seed)
    delivered: list[Message] = []
    done: list[str] = []
    client, pipe, judge = joined(delivered.append, connected=False)
    greeting = asyncio.create_task(client.greet(random_connect(chance)))
    await asyncio.sleep(0)
    judge.receive_maximum = chance.choice([1, 3, 20])
    client.data_received(b"\x20\x06\x00\x00\x03\x21" + judge.receive_maximum.to_bytes(2, "big"))
    assert (await greeting).limits == Limits(receive_maximum=judge.receive_maximum)
    asked: list[asyncio.Task[Suback]] = []
    sent = published = 0
    for _ in range(200):
        step = chance.randrange(6)
        if step == 0:
            published += 1
            publish_to(client, "t/1", done, more=random_properties(chance))
        elif step == 1:
            await client.publish_at_most_once("t/0", b"", chance.random() < 0.5, random_properties(chance))
        elif step == 2:
            filters = chance.sample(["a", "+/b", "#", "c/+/#", "/"], chance.randint(1, 5))
            asked.append(asyncio.create_task(client.subscribe(filters, chance.randrange(2))))
            await asyncio.sleep(0)
        elif step == 3:
            ids = [chance.choice([0, 0, *range(1, 9)]) for _ in range(chance.randint(1, 4))]
            judge.owed += [number for number in ids if number]
            sent += len(ids)
            client.data_received(
                b"".join(mqtt5.encode_publish("m", b"x", packet_id=number, retain=False) for number in ids)
            )
        elif step == 4 and judge.publishes:
            client.data_received(judge.acknowledge(chance.choice(judge.publishes)))
        elif step == 5 and judge.subscribes:
            number = chance.choice(list(judge.subscribes))
            codes = bytes([1] * judge.subscribes.pop(number))
            client.data_received(said(0x90, number.to_bytes(2, "big") + b"\x00" + codes))
            await asyncio.sleep(0)
    while judge.publishes:  # what waited for room comes now
        client.data_received(judge.acknowledge(judge.publishes[0]))
    assert (len(delivered), judge.owed, judge.held) == (sent, [], b"")
    assert len(done) == published
    assert sum(task.done() for task in asked) == len(asked) - len(judge.subscribes)
    goodbye = chance.choice([mqtt5.DISCONNECT, mqtt5.DISCONNECT_AND_FORGET, mqtt5.encode_disconnect(0x04)])
    leaving = asyncio.create_task(client.leave(1.0, goodbye=goodbye))
    await asyncio.sleep(0)
    assert judge.gone
    assert pipe.closed
    client.connection_lost(None)
    await leaving
    for task in asked:
        if not task.done():
            with pytest.raises(LinkError):
                await task


@pytest.mark.parametrize("seed", range(20))
async def test_a_session_that_the_broker_continues_is_continued(seed: int) -> None:
    """Links are lost at any moment; what is unacknowledged is sent again, or forgotten where the broker forgot."""
    chance = random.Random(seed)
    outgoing, done, published = Outgoing(), list[str](), 0
    held: dict[int, bytes] = {}
    for _ in range(30):
        client, pipe, judge = joined(outgoing=outgoing)
        judge.receive_maximum = chance.choice([1, 2, 10])
        present = bool(held) and chance.random() < 0.7
        judge.resumed = dict(held) if present else {}
        before = len(done)
        client.data_received(said(0x20, bytes([present, 0, 3, 0x21]) + judge.receive_maximum.to_bytes(2, "big")))
        assert client.resumed == present
        if not present:
            assert outgoing.oldest == 0  # forgotten, and nobody is told that it arrived
            assert len(done) == before
        for _ in range(chance.randrange(12)):
            if chance.random() < 0.5:
                published += 1
                publish_to(client, "t", done, str(published))
            elif judge.publishes:
                number = chance.choice(judge.publishes)
                answer = judge.acknowledge(number)
                client.data_received(answer if chance.random() < 0.8 else answer[:1] + b"\x03" + answer[2:] + b"\x97")
        held = {**judge.bodies, **judge.resumed}
        pipe.close()
        client.connection_lost(None)
    assert len(set(done)) == len(done)


def test_a_session_out_of_nowhere() -> None:
    """Known to the one who asked: `tests/service/test_mqtt5.py` sees the link refused."""
    [answer] = mqtt5.Decoder().feed(b"\x20\x03\x01\x00\x00")
    assert answer.resumed  # type: ignore[union-attr]


async def test_what_the_broker_does_not_take_is_not_sent() -> None:
    done: list[str] = []
    client, pipe, judge = joined()
    judge.receive_maximum, judge.packet_bytes, judge.retain = 2, 40, False
    client.data_received(said(0x20, b"\x00\x00\x0a\x21\x00\x02\x25\x00\x27\x00\x00\x00\x28"))
    publish_to(client, "t" * 40, done, "large")
    publish_to(client, "t", done, "kept", retain=True)
    with pytest.raises(ValueError, match=r"takes 40 .*max_packet_size"):
        await client.publish_at_most_once("t" * 40, b"", False)
    with pytest.raises(LinkError, match="takes 40"):
        await client.subscribe(["t" * 40], 1)
    await asyncio.sleep(0)
    assert done == ["large: of 48 bytes, and it takes 40 (max_packet_size)", "kept: it keeps no retained messages"]
    done.clear()
    for number in range(5):
        publish_to(client, "t", done, str(number))
    assert judge.publishes == [4, 5]  # room for two
    asking = asyncio.create_task(client.subscribe(["t"], 1))
    await asyncio.sleep(0)
    judge.owed = [7]
    client.data_received(b"\x32\x06\x00\x01t\x00\x07\x00")
    assert (len(judge.subscribes), judge.owed) == (1, [])  # neither waits for room
    judge.publishes.remove(4)
    client.data_received(b"\x40\x03\x00\x04\x97")
    assert done == ["0: quota exceeded (0x97)"]
    assert judge.publishes == [5, 6]
    client.data_received(b"\x40\x02\x00\x08")  # not sent yet: an answer to nothing
    assert judge.publishes == [5, 6]
    for number in (5, 6, 7, 8):
        client.data_received(judge.acknowledge(number))
    assert done == ["0: quota exceeded (0x97)", "1", "2", "3", "4"]
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    pipe.close()
    client.connection_lost(None)


async def test_a_broker_without_qos_1() -> None:
    done: list[str] = []
    client, pipe, judge = joined()
    client.data_received(said(0x20, b"\x00\x00\x02\x24\x00"))
    publish_to(client, "t", done, "one")
    await asyncio.sleep(0)
    assert done == ["one: it takes QoS 0 only"]
    await client.publish_at_most_once("t", b"", False)
    assert judge.publishes == []
    pipe.close()
    client.connection_lost(None)


async def test_the_broker_s_keep_alive_is_kept() -> None:
    client, pipe, judge = joined(keepalive_s=60)
    client.data_received(said(0x20, b"\x00\x00\x03\x13\x00\x01"))
    deadline = asyncio.get_running_loop().time() + 10
    while judge.pings == 0:
        assert asyncio.get_running_loop().time() < deadline
        await asyncio.sleep(0.02)
    pipe.close()
    client.connection_lost(None)


@pytest.mark.parametrize("code", [0x8B, 0x8E, 0x95, 0x97, 0x00])
async def test_why_the_broker_ends_the_link(code: int) -> None:
    client, pipe, _ = joined()
    client.data_received(CONNACK + said(0xE0, bytes([code]) + b"\x06\x1f\x00\x03a\x07b"))
    assert pipe.closed
    assert pipe.written == b""
    client.connection_lost(None)
    with pytest.raises(LinkError) as caught:
        await client.ended
    words = str(caught.value)
    assert words == f"the broker ends the link: {REASONS.get(code, 'no reason')} (0x{code:02x}): ab"


HELLO = said(0x10, b"\x00\x04MQTT\x05\x02\x00\x14\x00\x00\x00")
VIOLATIONS = [
    ("3.1.0-1", b"\xc0\x00"),
    ("3.1.0-2", HELLO + HELLO),
    ("2.1.3-1", b"\x11" + HELLO[1:]),
    ("3.1.2-1", said(0x10, b"\x00\x04MQTT\x04\x02\x00\x14\x00\x00")),
    ("3.1.2-3", said(0x10, b"\x00\x04MQTT\x05\x03\x00\x14\x00\x00\x00")),
    ("3.1.2-9", said(0x10, b"\x00\x04MQTT\x05\x06\x00\x14\x00\x00\x00\x00\x00\x01w")),
    ("3.1.2-11", said(0x10, b"\x00\x04MQTT\x05\x0a\x00\x14\x00\x00\x00")),
    ("3.1.2-12", said(0x10, b"\x00\x04MQTT\x05\x1e\x00\x14\x00\x00\x00\x00\x00\x01w\x00\x00")),
    ("3.1.2-13", said(0x10, b"\x00\x04MQTT\x05\x22\x00\x14\x00\x00\x00")),
    ("3.1.3-1", said(0x10, b"\x00\x04MQTT\x05\x82\x00\x14\x00\x00\x00")),
    ("1.5.4-1", HELLO + said(0x30, b"\x00\x01\xff\x00")),
    ("1.5.4-2", HELLO + said(0x30, b"\x00\x01\x00\x00")),
    ("1.5.5-1", HELLO + said(0x30, b"\x00\x01t\x80\x00")),
    ("1.5.7-1", HELLO + said(0x30, b"\x00\x01t\x04\x26\x00\x01a")),
    ("2.2.2-1", HELLO + said(0x30, b"\x00\x01t")),
    ("2.2.2-1", HELLO + said(0x30, b"\x00\x01t\x05\x11\x00\x00\x00\x01")),
    ("2.2.2-1", HELLO + said(0x30, b"\x00\x01t\x0a" + b"\x02\x00\x00\x00\x01" * 2)),
    ("3.2.2-18", HELLO + said(0x30, b"\x00\x01t\x03\x23\x00\x01")),
    ("3.3.1-2", HELLO + said(0x38, b"\x00\x01t\x00")),
    ("3.3.1-4", HELLO + said(0x36, b"\x00\x01t\x00\x01\x00")),
    ("3.3.2-1", HELLO + said(0x30, b"\x00\x09t")),
    ("3.3.2-2", HELLO + said(0x30, b"\x00\x01#\x00")),
    ("3.3.2-14", HELLO + said(0x30, b"\x00\x01t\x04\x08\x00\x01#")),
    ("4.3.2-2", HELLO + said(0x3A, b"\x00\x01t\x00\x01\x00")),
    ("4.7.3-1", HELLO + said(0x30, b"\x00\x00\x00")),
    ("2.2.1-3", HELLO + said(0x32, b"\x00\x01t\x00\x00\x00")),
    ("2.2.1-3", HELLO + said(0x32, b"\x00\x01t\x00\x01\x00") * 2),
    ("2.2.1-5", HELLO + said(0x40, b"\x00\x01")),
    ("3.8.1-1", HELLO + said(0x80, b"\x00\x01\x00\x00\x01t\x00")),
    ("3.8.3-1", HELLO + said(0x82, b"\x00\x01\x00\x00\x09t\x00")),
    ("3.8.3-2", HELLO + said(0x82, b"\x00\x01\x00")),
    ("3.8.3-5", HELLO + said(0x82, b"\x00\x01\x00\x00\x01t\x40")),
    ("4.7.1-1", HELLO + said(0x82, b"\x00\x01\x00\x00\x03#/t\x00")),
    ("4.7.1-2", HELLO + said(0x82, b"\x00\x01\x00\x00\x02t+\x00")),
    ("3.14.1-1", HELLO + b"\xe1\x00"),
    ("3.14.2-1", HELLO + b"\xe0\x01\x8b"),
    ("3.14.4-1", HELLO + b"\xe0\x00\xc0\x00"),
    ("4.13.1-1", HELLO + b"\xd0\x00"),
]
"""What a client that violates a statement says."""


@pytest.mark.parametrize(("number", "data"), VIOLATIONS)
def test_control_the_judge_of_5_sees_every_violation(number: str, data: bytes) -> None:
    with pytest.raises(ViolationError) as caught:
        Judge5().hear(data)
    assert caught.value.number == number


@pytest.mark.parametrize(
    ("number", "judge", "data"),
    [
        ("4.6.0-2", Judge5(connected=True, owed=[1, 2]), said(0x40, b"\x00\x02")),
        ("3.4.2-1", Judge5(connected=True, owed=[1]), said(0x40, b"\x00\x01\x01")),
        ("3.2.2-14", Judge5(connected=True, retain=False), said(0x31, b"\x00\x01t\x00")),
        ("3.2.2-15", Judge5(connected=True, packet_bytes=5), said(0x30, b"\x00\x01t\x00")),
        ("3.3.4-7", Judge5(connected=True, receive_maximum=0), said(0x32, b"\x00\x01t\x00\x01\x00")),
        ("4.4.0-1", Judge5(connected=True, resumed={2: b""}), said(0x32, b"\x00\x01t\x00\x01\x00")),
        (
            "4.6.0-1",
            Judge5(connected=True, resumed={2: b"", 1: b"\x00\x01t\x00\x01\x00"}),
            said(0x3A, b"\x00\x01t\x00\x01\x00"),
        ),
        (
            "3.3.1-1",
            Judge5(connected=True, resumed={1: b"\x00\x01t\x00\x01\x00"}),
            said(0x32, b"\x00\x01t\x00\x01\x00"),
        ),
    ],
    ids=lambda part: part if isinstance(part, str) else "",
)
def test_control_the_judge_of_5_knows_what_went_before(number: str, judge: Judge5, data: bytes) -> None:
    with pytest.raises(ViolationError) as caught:
        judge.hear(data)
    assert caught.value.number == number


def test_the_page_of_5_is_what_the_tables_say() -> None:
    written = (ROOT / "docs" / "mqtt5-conformance.md").read_text()
    assert written == page(), "python -m tests.wire.mqtt5_statements > docs/mqtt5-conformance.md"


def test_every_statement_of_5_is_shown_by_tests_that_there_are_and_that_name_it() -> None:
    defined = set()
    for path in (ROOT / "tests").rglob("test_*.py"):
        defined |= set(re.findall(r"^(?:async )?def (test_\w+)", path.read_text(), re.MULTILINE))
    refused = {case.number for case in REFUSED}
    written = {number for number, *_ in WRITTEN}
    judged = set(re.findall(r'"(\d\.\d+\.\d+-\d+)"', (ROOT / "tests" / "wire" / "mqtt5_judge.py").read_text()))
    source = Path(__file__).read_text()
    assert {number for number in judged if f'"{number}"' not in source} == set()
    for number, _, shown in SHOWN:
        tests = cast(list[str], re.findall(r"test_\w+", shown))
        assert set(tests) <= defined, (number, set(tests) - defined)
        if tests[0] == "test_a_broker_that_breaks_a_rule_of_5_loses_the_link_and_is_told_why":
            assert number in refused | written, number
        if tests[0] == "test_what_is_against_a_rule_of_5_is_not_written":
            assert number in written, number
    assert refused <= {number for number, *_ in SHOWN}
