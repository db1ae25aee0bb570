"""The client against what MQTT 3.1.1 demands of one: a table of what it must refuse, and a judge of what it says."""

import asyncio
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from eyestream.errors import LinkError
from eyestream.rim.mqtt.client import Client
from eyestream.wire import mqtt
from eyestream.wire.mqtt import Decoder, Message, Suback, Will, encode_connect, encode_publish, encode_subscribe
from tests.wire.mqtt_judge import Judge, ViolationError
from tests.wire.mqtt_statements import CONNACK, REFUSED, SHOWN, TAKEN, Refused, page
from tests.wire.pipes import Pipe, said

ROOT = Path(__file__).resolve().parents[2]


def joined(deliver: Callable[[Message], None] = lambda message: None, keepalive_s: float = 60) -> tuple[Client, Pipe]:
    """A client whose every word is judged."""
    client, pipe = Client(deliver, keepalive_s), Pipe(Judge())
    client.connection_made(pipe)
    return client, pipe


def end(client: Client, pipe: Pipe) -> None:
    """What a loop does after a socket is closed."""
    assert pipe.closed
    client.connection_lost(None)


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: f"{case.number} {case.what}")
@pytest.mark.parametrize("piecewise", [False, True])
async def test_a_broker_that_breaks_a_rule_loses_the_link(case: Refused, piecewise: bool) -> None:
    delivered: list[Message] = []
    client, pipe = joined(delivered.append)
    for piece in [case.stream[at : at + 1] for at in range(len(case.stream))] if piecewise else [case.stream]:
        if not pipe.closed:
            client.data_received(piece)
    end(client, pipe)
    with pytest.raises(LinkError, match=r"does not speak MQTT 3\.1\.1"):
        await client.ended
    assert delivered == []


@pytest.mark.parametrize(("data", "what"), TAKEN, ids=lambda part: part if isinstance(part, str) else "")
async def test_what_comes_close_is_taken(data: bytes, what: str) -> None:
    delivered: list[Message] = []
    client, pipe = joined(delivered.append)
    pipe.judge.connected, pipe.judge.owed = True, [1]
    client.data_received(CONNACK + data)
    assert not pipe.closed
    assert len(delivered) == (data[0] >> 4 == 3)
    client.connection_lost(None)


def test_a_byte_order_mark_is_kept() -> None:
    [_, message] = Decoder().feed(CONNACK + b"\x30\x06\x00\x04\xef\xbb\xbft")
    assert isinstance(message, Message)
    assert message.topic == "\ufefft"


def publish(topic: str, payload: bytes = b"") -> bytes:
    return encode_publish(topic, payload, packet_id=1, retain=False)


def subscribe(*filters: str) -> bytes:
    return encode_subscribe(1, filters, 1)


def connect(**given: Any) -> bytes:
    plain = {"client_id": None, "keepalive_s": 60, "clean_session": True}
    return encode_connect(**{**plain, "will": None, "username": None, "password": None, **given})


WRITTEN: list[tuple[str, str, Callable[[], bytes]]] = [
    ("1.5.3-1", "a topic with a surrogate", lambda: publish("\ud800")),
    ("1.5.3-2", "a topic with U+0000", lambda: publish("a\0")),
    ("3.3.2-2", "a topic with '+'", lambda: publish("a/+")),
    ("4.7.1-1", "a topic with '#'", lambda: publish("#")),
    ("4.7.3-1", "an empty topic", lambda: publish("")),
    ("4.7.3-3", "a topic of 65,536 bytes", lambda: publish("x" * 65_536)),
    ("2.2.3", "a packet above 268,435,455 bytes", lambda: publish("t", bytes(268_435_453))),
    ("3.8.3-1", "a filter with a surrogate", lambda: subscribe("\ud800")),
    ("1.5.3-2", "a filter with U+0000", lambda: subscribe("a\0")),
    ("4.7.3-1", "an empty filter", lambda: subscribe("")),
    ("4.7.3-3", "a filter of 65,536 bytes", lambda: subscribe("x" * 65_536)),
    ("4.7.1-2", "'#' before another level", lambda: subscribe("a/#/b")),
    ("4.7.1-2", "'#' in a level", lambda: subscribe("a/b#")),
    ("4.7.1-3", "'+' in a level", lambda: subscribe("a+/b")),
    ("3.8.3-3", "no filter", subscribe),
    ("3.1.3-7", "no client id and a kept session", lambda: connect(clean_session=False)),
    ("3.1.2-22", "a password without a user name", lambda: connect(password="p")),
    ("1.5.3-2", "a client id with U+0000", lambda: connect(client_id="\0")),
    ("3.3.2-2", "a will with a wildcard", lambda: connect(will=Will("a/#", b""))),
    ("4.7.3-1", "a will without a topic", lambda: connect(will=Will("", b""))),
]
"""What is asked of our encoder, and what it would violate."""


@pytest.mark.parametrize(("number", "what", "write"), WRITTEN, ids=lambda part: part if isinstance(part, str) else "")
def test_what_is_against_a_rule_is_not_written(number: str, what: str, write: Callable[[], bytes]) -> None:
    with pytest.raises(ValueError, match=r"."):
        write()


def random_connect(chance: random.Random) -> bytes:
    """CONNECT as any of our callers might ask for it."""
    return encode_connect(
        chance.choice([None, "me", "x" * 100]),
        keepalive_s=60,
        clean_session=True,
        will=chance.choice([None, Will("w", b""), Will("w/\u20ac", bytes(300))]),
        username=(name := chance.choice([None, "u", ""])),
        password=None if name is None else chance.choice([None, "p", ""]),
    )


@pytest.mark.parametrize("seed", range(60))
async def test_what_we_say_keeps_every_rule_in_every_order(seed: int) -> None:
    """Greeting, publishing, subscribing, being sent messages and leaving, in random order, with late answers."""
    chance = random.Random(seed)
    delivered: list[Message] = []
    client, pipe = joined(delivered.append)
    judge = pipe.judge
    greeting = asyncio.create_task(client.greet(random_connect(chance)))
    await asyncio.sleep(0)
    client.data_received(CONNACK)
    assert (await greeting).code == 0
    asked: list[asyncio.Task[Suback]] = []
    acknowledged = sent = published = 0

    def count() -> None:
        nonlocal acknowledged
        acknowledged += 1

    for _ in range(200):
        step = chance.randrange(6)
        if step == 0:
            published += 1
            client.publish("t/1", chance.randbytes(5), chance.random() < 0.5, acknowledged=count, refused=print)
        elif step == 1:
            await client.publish_at_most_once("t/0", b"", chance.random() < 0.5)
        elif step == 2:
            filters = chance.sample(["a", "+/b", "#", "c/+/#", "/"], chance.randint(1, 5))
            asked.append(asyncio.create_task(client.subscribe(filters, chance.randrange(2))))
            await asyncio.sleep(0)
        elif step == 3:
            ids = [chance.choice([0, 0, *range(1, 9)]) for _ in range(chance.randint(1, 4))]
            judge.owed += [number for number in ids if number]
            sent += len(ids)
            client.data_received(b"".join(encode_publish("m", b"x", packet_id=number, retain=False) for number in ids))
        elif step == 4 and judge.publishes:
            number = judge.publishes.pop(chance.randrange(len(judge.publishes)))
            client.data_received(mqtt.encode_pubacks([number]))
        elif step == 5 and judge.subscribes:
            number = chance.choice(list(judge.subscribes))
            codes = bytes([1] * judge.subscribes.pop(number))
            client.data_received(b"\x90" + bytes([2 + len(codes)]) + number.to_bytes(2, "big") + codes)
            await asyncio.sleep(0)
    assert (len(delivered), judge.owed, judge.held) == (sent, [], b"")
    assert acknowledged == published - len(judge.publishes)
    assert sum(task.done() for task in asked) == len(asked) - len(judge.subscribes)
    leaving = asyncio.create_task(client.leave(1.0, goodbye=mqtt.DISCONNECT))
    await asyncio.sleep(0)
    assert judge.gone
    end(client, pipe)
    await leaving
    for task in asked:
        if not task.done():
            with pytest.raises(LinkError):
                await task


HELLO = said(0x10, b"\x00\x04MQTT\x04\x02\x00\x14\x00\x00")
VIOLATIONS = [
    ("3.1.0-1", b"\xc0\x00"),
    ("3.1.0-2", HELLO + HELLO),
    ("2.2.2-1", b"\x11" + HELLO[1:]),
    ("3.1.2-1", said(0x10, b"\x00\x04mqtt\x04\x02\x00\x14\x00\x00")),
    ("3.1.2-2", said(0x10, b"\x00\x04MQTT\x05\x02\x00\x14\x00\x00")),
    ("3.1.2-3", said(0x10, b"\x00\x04MQTT\x04\x03\x00\x14\x00\x00")),
    ("3.1.2-9", said(0x10, b"\x00\x04MQTT\x04\x06\x00\x14\x00\x00\x00\x01w")),
    ("3.1.2-11", said(0x10, b"\x00\x04MQTT\x04\x22\x00\x14\x00\x00")),
    ("3.1.2-14", said(0x10, b"\x00\x04MQTT\x04\x1e\x00\x14\x00\x00\x00\x01w\x00\x00")),
    ("3.1.2-22", said(0x10, b"\x00\x04MQTT\x04\x42\x00\x14\x00\x00\x00\x01p")),
    ("3.1.3-1", said(0x10, b"\x00\x04MQTT\x04\x82\x00\x14\x00\x00")),
    ("3.1.3-1", said(0x10, b"\x00\x04MQTT\x04\x02\x00\x14\x00\x00\x00\x01u")),
    ("3.1.3-7", said(0x10, b"\x00\x04MQTT\x04\x00\x00\x14\x00\x00")),
    ("1.5.3-1", HELLO + said(0x30, b"\x00\x01\xff")),
    ("1.5.3-2", HELLO + said(0x30, b"\x00\x01\x00")),
    ("3.3.1-2", HELLO + said(0x38, b"\x00\x01t")),
    ("3.3.1-4", HELLO + said(0x36, b"\x00\x01t\x00\x01")),
    ("3.3.2-1", HELLO + said(0x30, b"\x00\x09t")),
    ("3.3.2-2", HELLO + said(0x30, b"\x00\x01#")),
    ("4.3.2-1", HELLO + said(0x3A, b"\x00\x01t\x00\x01")),
    ("4.7.3-1", HELLO + said(0x30, b"\x00\x00")),
    ("2.3.1-1", HELLO + said(0x32, b"\x00\x01t\x00\x00")),
    ("2.3.1-1", HELLO + said(0x32, b"\x00\x01t")),
    ("2.3.1-2", HELLO + said(0x32, b"\x00\x01t\x00\x01") * 2),
    ("2.3.1-2", HELLO + said(0x32, b"\x00\x01t\x00\x01") + said(0x82, b"\x00\x01\x00\x01t\x00")),
    ("2.3.1-6", HELLO + said(0x40, b"\x00\x01")),
    ("3.8.1-1", HELLO + said(0x80, b"\x00\x01\x00\x01t\x00")),
    ("3.8.3-3", HELLO + said(0x82, b"\x00\x01")),
    ("3.8.3-4", HELLO + said(0x82, b"\x00\x01\x00\x01t\x03")),
    ("4.7.1-2", HELLO + said(0x82, b"\x00\x01\x00\x03#/t\x00")),
    ("4.7.1-3", HELLO + said(0x82, b"\x00\x01\x00\x02t+\x00")),
    ("3.14.1-1", HELLO + b"\xe1\x00"),
    ("3.14.4-2", HELLO + b"\xe0\x00\xc0\x00"),
    ("4.8.0-1", HELLO + b"\xd0\x00"),
]
"""What a client that violates a statement says."""


@pytest.mark.parametrize(("number", "data"), VIOLATIONS)
def test_control_the_judge_sees_every_violation(number: str, data: bytes) -> None:
    with pytest.raises(ViolationError) as caught:
        Judge().hear(data)
    assert caught.value.number == number


def test_control_the_judge_sees_acknowledgements_in_the_wrong_order() -> None:
    judge = Judge(connected=True, owed=[1, 2])
    with pytest.raises(ViolationError, match=r"4\.6\.0-2"):
        judge.hear(said(0x40, b"\x00\x02"))


async def test_ids_in_use_are_not_taken_again() -> None:
    """65,535 ids in a circle: one that is owed an answer is passed by, also the first, also of a subscription."""
    client, pipe = joined()
    pipe.judge.connected = True
    client.publish("t", b"", False, acknowledged=print, refused=print)
    asking = asyncio.create_task(client.subscribe(["t"], 1))
    await asyncio.sleep(0)
    for _ in range(65_533):
        client.publish("t", b"", False, acknowledged=print, refused=print)
        number = pipe.judge.publishes.pop()
        client._outgoing.sent.pop(number)
    client.publish("t", b"", False, acknowledged=print, refused=print)
    client.publish("t", b"", False, acknowledged=print, refused=print)
    assert pipe.judge.publishes == [1, 3, 4]  # 2 is the subscription's
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)


async def test_an_answer_for_each_topic_filter() -> None:
    for codes, good in ((b"\x01", False), (b"\x01\x01\x01", False), (b"\x01\x80", True)):
        client, pipe = joined()
        pipe.judge.connected = True
        asking = asyncio.create_task(client.subscribe(["a", "b"], 1))
        await asyncio.sleep(0)
        client.data_received(CONNACK + said(0x90, b"\x00\x01" + codes))
        if good:
            assert (await asking).granted == (True, False)
        else:
            with pytest.raises(LinkError, match="answer for each topic filter"):
                await asking
        client.connection_lost(None)


async def test_a_quiet_client_keeps_its_word_to_be_heard() -> None:
    client, pipe = joined(keepalive_s=0.2)
    pipe.judge.connected = True
    client.data_received(CONNACK)
    for pings in (1, 2, 3):
        await asyncio.sleep(0.11)
        assert pipe.judge.pings == pings
        client.data_received(b"\xd0\x00")
    client.connection_lost(None)


def test_the_page_is_what_the_tables_say() -> None:
    written = (ROOT / "docs" / "mqtt-conformance.md").read_text()
    assert written == page(), "python -m tests.wire.mqtt_statements > docs/mqtt-conformance.md"


def test_every_statement_is_shown_by_tests_that_there_are_and_that_name_it() -> None:
    defined = set()
    for path in (ROOT / "tests").rglob("test_*.py"):
        defined |= set(re.findall(r"^(?:async )?def (test_\w+)", path.read_text(), re.MULTILINE))
    refused = {case.number for case in REFUSED}
    written = {number for number, *_ in WRITTEN}
    judged = set(re.findall(r'"(\d\.\d+\.\d+-\d+)"', (ROOT / "tests" / "wire" / "mqtt_judge.py").read_text()))
    assert judged <= {number for number, _ in VIOLATIONS} | {"3.8.3-1", "4.6.0-2"}
    for number, _, shown in SHOWN:
        tests = cast(list[str], re.findall(r"test_\w+", shown))
        assert set(tests) <= defined, number
        if tests[0] == "test_a_broker_that_breaks_a_rule_loses_the_link":
            assert number in refused | written
    assert refused <= {number for number, *_ in SHOWN}
