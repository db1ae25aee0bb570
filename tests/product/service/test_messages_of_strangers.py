"""What somebody else wrote ends no link: messages with any properties and any topic, as a broker may hand them on.

Through mosquitto: tests/product/faults/test_messages_of_strangers.py.
"""

import asyncio
import logging
import random
from collections.abc import Callable, Iterator

import pytest

from eyestream.rim.config import BrokerSettings
from eyestream.rim.mqtt import reconnecting
from eyestream.rim.mqtt.endpoint import Endpoint
from eyestream.rim.mqtt.messages import NO_PROPERTIES, TOO_LARGE, Message
from eyestream.rim.mqtt.reconnecting import ReconnectingLink
from eyestream_lab.testing.clocks import until
from tests.rigs.clients import WELCOME, at_a_pipe
from tests.rigs.hostile.properties import KNOWN, cases, message
from tests.rigs.sidecar import NO_BROKER

CASES = {case.name: case for case in cases()}
GOOD = message(b"t", b"\x26\0\x01k\0\x01v", b"good", number=7)
MUTANTS = 4000


class Heard:
    """A client of MQTT 5 at a pipe, greeted: what it hands on and what it acknowledges."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.said = bytearray()
        self.client, self.pipe, self.greeting = at_a_pipe(self.messages.append, self.said.extend, five=True)

    async def greeted(self) -> None:
        await asyncio.sleep(0)
        self.client.data_received(WELCOME[True])
        await self.greeting
        self.said.clear()

    async def take(self, data: bytes) -> list[Message]:
        """Between two good messages; what was handed on of it. The link stands, and all is acknowledged."""
        self.messages.clear()
        self.said.clear()
        for piece in (GOOD, data, GOOD):
            self.client.data_received(piece)
            await until(lambda: not self.pipe.paused)
        assert not self.pipe.closed
        first, *between, last = self.messages
        assert first == last == Message("t", b"good", False, 7, NO_PROPERTIES._replace(user=(("k", "v"),)))
        numbers = [found.packet_id for found in self.messages if found.packet_id]
        assert bytes(self.said) == b"".join(b"\x40\x02" + number.to_bytes(2) for number in numbers)
        return between


@pytest.fixture
async def heard() -> Heard:
    made = Heard()
    await made.greeted()
    return made


@pytest.mark.parametrize("retain", [False, True])
@pytest.mark.parametrize("number", [0, 9])
async def test_every_property_with_every_value_is_a_message_or_cut(heard: Heard, number: int, retain: bool) -> None:
    outcomes: dict[bool, int] = {False: 0, True: 0}
    for name, properties, cut in CASES.values():
        [found] = await heard.take(message(b"t/1", properties, b"payload", number=number, retain=retain))
        assert (found.topic, found.packet_id, found.retain) == ("t/1", number, retain), name
        was_cut = found.payload is TOO_LARGE
        assert was_cut or found.payload == b"payload", name
        assert not was_cut or found.more == NO_PROPERTIES, name
        assert cut in (None, was_cut), name
        outcomes[was_cut] += 1
    assert min(outcomes.values()) > 50
    assert all(CASES[name].cut for name in KNOWN)


@pytest.mark.parametrize(
    ("length", "properties"),
    [(b"\x07", b""), (b"\x02", b"\x01"), (b"\x80\x80\x80\x80", b""), (b"\xff\xff\xff\x7f", b""), (b"\x80", b"")],
)
async def test_a_wrong_length_of_properties_is_cut(heard: Heard, length: bytes, properties: bytes) -> None:
    [found] = await heard.take(message(b"t/1", properties, b"", number=9, length=length))
    assert found == Message("t/1", TOO_LARGE, False, 9)


@pytest.mark.parametrize("topic", [b"", b"#", b"a/+", b"\0", b"a\0b", b"\xff", b"\xed\xa0\x80", b"\xc0\x80"])
async def test_a_topic_that_is_none_is_cut_and_not_handed_on(heard: Heard, topic: bytes) -> None:
    for properties in (b"", b"\x23\0\x01", b"\x03\0\x01\xff"):
        [found] = await heard.take(message(topic, properties, b"x", number=9))
        assert found == Message("", TOO_LARGE, False, 9)


def mutants(seed: int) -> Iterator[bytes]:
    """Properties with changes, of a length that may be wrong, at topics that may be none; else the packet is right."""
    chance = random.Random(seed)
    pool = [case.properties for case in CASES.values() if len(case.properties) < 200]
    good = [case.properties for case in CASES.values() if case.cut is False and len(case.properties) < 200]
    for _ in range(MUTANTS):
        properties = bytearray(chance.choice(good) + chance.choice(good))
        for _ in range(chance.choice([0, 1, 1, 2, 4])):
            at = chance.randrange(len(properties) + 1)
            match chance.randrange(4):
                case 0 if at < len(properties):
                    properties[at] = chance.randrange(256)
                case 1:
                    properties[at:at] = chance.randbytes(chance.randint(1, 5))
                case 2:
                    del properties[at : at + chance.randint(1, 9)]
                case _:
                    properties[at:at] = chance.choice(pool)
        topic = chance.choice([b"t/1"] * 9 + [b"", chance.randbytes(chance.randint(1, 9))])
        length = chance.choice([b""] * 9 + [chance.randbytes(chance.randint(1, 5))])
        yield message(topic, bytes(properties), b"payload", number=chance.choice([0, 9]), length=length)


async def test_mutants_end_no_link(heard: Heard) -> None:
    cut = 0
    for data in mutants(seed=20_261_123):
        try:
            [found] = await heard.take(data)
        except Exception as error:
            error.add_note(f"input: {data.hex()}")
            raise
        cut += found.payload is TOO_LARGE
    assert MUTANTS / 4 < cut < MUTANTS * 0.95


async def test_in_3_1_1_properties_are_payload() -> None:
    taken: list[Message] = []
    client, pipe, greeting = at_a_pipe(taken.append, lambda said: None, five=False)
    await asyncio.sleep(0)
    client.data_received(WELCOME[False] + message(b"t", b"\xff", b"x", number=9))
    await greeting
    assert not pipe.closed
    assert taken == [Message("t", b"\x01\xffx", False, 9)]


async def test_cut_messages_are_counted_and_said_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing of what they hold is said."""
    caplog.set_level(logging.DEBUG)
    taken: list[Message] = []
    endpoint = Endpoint.of(BrokerSettings(NO_BROKER))
    serve: Callable[..., object] = asyncio.Event().wait
    link = ReconnectingLink(endpoint, serve, what="private broker", client_id=None, deliver=taken.append)
    for number in range(1000):
        link._note_and_deliver(Message("their words", TOO_LARGE, False, number))
        link._note_and_deliver(Message("their words", b"good", False))
    assert (link.cut, len(taken)) == (1000, 2000)
    [line] = caplog.messages
    assert line.startswith("private broker: a message of others is left out (1 so far): its MQTT 5 properties or")
    assert "their words" not in caplog.text
    monkeypatch.setattr(reconnecting, "AGAIN_S", 0.0)
    link._note_and_deliver(Message("their words", TOO_LARGE, False))
    assert "(1001 so far)" in caplog.messages[1]
