"""Our codec against paho's, packet by packet, in both directions; it is used by its public face alone.

Paho says and hears everything over a socket pair of the loopback: what it writes is compared with what we would have
written, and what we write, and what a broker says, is given to both.
"""

import contextlib
import random
import socket
import time
from collections.abc import Callable, Iterator
from typing import Any

import paho.mqtt.client as paho
import pytest
from paho.mqtt.enums import CallbackAPIVersion

from eyestream.wire.mqtt import (
    PINGREQ,
    Connack,
    Decoder,
    Message,
    Packet,
    Pingresp,
    Puback,
    Suback,
    Will,
    encode_connect,
    encode_pubacks,
    encode_publish,
    encode_subscribe,
)

HELLO = encode_connect(None, keepalive_s=60, clean_session=True, will=None, username=None, password=None)
CONNACK = b"\x20\x02\x00\x00"
ALPHABET = "ab/-_ 0\u00e9\u20ac\U0001f441$"
LENGTHS = (0, 1, 50, 113, 122, 200, 5000, 16_370, 16_380, 70_000)
"""Of payloads: on both sides of where the length of a packet takes another byte."""


class Paho:
    """Paho at one end of a connection, the test at the other."""

    def __init__(self, client: paho.Client, **more: Any) -> None:
        self.client = client
        with socket.create_server(("127.0.0.1", 0)) as listener:
            client.connect("127.0.0.1", listener.getsockname()[1], keepalive=60, **more)
            self.end, _ = listener.accept()
        for end in (self.end, client.socket()):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.end.settimeout(5)

    def said(self, count: int) -> bytes:
        """The next `count` bytes that paho writes."""
        data = b""
        while len(data) < count:
            self.client.loop_write()
            data += self.end.recv(min(count - len(data), 1 << 16))
        return data

    def hear(self, data: bytes, done: Callable[[], bool]) -> None:
        """Let paho read `data` until `done()`."""
        deadline = time.monotonic() + 5
        for at in range(0, len(data), 1 << 15):
            self.end.sendall(data[at : at + (1 << 15)])
            self.client.loop_read()
        while not done():
            assert time.monotonic() < deadline, "paho does not read what it is told"
            self.client.loop_read()

    def close(self) -> None:
        """Hang up at both ends."""
        self.end.close()
        self.client.loop_read()


def topic_of(chance: random.Random) -> str:
    return "".join(chance.choices(ALPHABET, k=chance.choice((1, 2, 8, 40, 300))))


@contextlib.contextmanager
def connected() -> Iterator[Paho]:
    client = paho.Client(CallbackAPIVersion.VERSION2, protocol=paho.MQTTv311)
    client.max_inflight_messages_set(0)
    peer = Paho(client)
    try:
        peer.said(len(HELLO))
        peer.hear(CONNACK, client.is_connected)
        yield peer
    finally:
        peer.close()


@pytest.mark.parametrize("seed", range(40))
def test_connect(seed: int) -> None:
    chance = random.Random(seed)
    client_id = chance.choice(["", "me", topic_of(chance)])
    clean = client_id == "" or chance.random() < 0.5
    client = paho.Client(CallbackAPIVersion.VERSION2, client_id=client_id, clean_session=clean, protocol=paho.MQTTv311)
    will = None
    if chance.random() < 0.7:
        will = Will(topic_of(chance), chance.randbytes(chance.choice(LENGTHS[:6])))
        client.will_set(will.topic, will.payload, qos=1, retain=True)
    name = chance.choice([None, "user", topic_of(chance)])
    word = None if name is None else chance.choice([None, "word", topic_of(chance)])
    client.username_pw_set(name, word)
    peer = Paho(client)
    ours = encode_connect(client_id, keepalive_s=60, clean_session=clean, will=will, username=name, password=word)
    assert peer.said(len(ours)) == ours
    peer.close()


@pytest.mark.parametrize("seed", range(5))
def test_what_paho_publishes_is_what_we_would_write_and_what_we_read(seed: int) -> None:
    chance = random.Random(seed)
    with connected() as peer:
        theirs, expected = b"", list[Message]()
        for _ in range(400):
            topic, payload = topic_of(chance), chance.randbytes(chance.choice(LENGTHS[:8]))
            qos, retain = chance.randrange(2), chance.random() < 0.5
            info = peer.client.publish(topic, payload, qos, retain)
            packet_id = info.mid if qos else 0
            ours = encode_publish(topic, payload, packet_id=packet_id, retain=retain)
            assert peer.said(len(ours)) == ours
            theirs += ours
            expected.append(Message(topic, payload, retain, packet_id))
    decoder = Decoder()
    assert decoder.feed(CONNACK) == [Connack(0)]
    read: list[Packet] = []
    while theirs:
        size = chance.randint(1, 30_000)
        read += decoder.feed(theirs[:size])
        theirs = theirs[size:]
    assert read == expected


@pytest.mark.parametrize("seed", range(5))
def test_what_we_write_is_what_paho_reads_and_it_acknowledges_as_we_would(seed: int) -> None:
    chance = random.Random(seed)
    got: list[Message] = []
    with connected() as peer:
        peer.client.on_message = lambda client, data, message: got.append(
            Message(message.topic, message.payload, message.retain, message.mid)
        )
        expected = []
        for _ in range(300):
            topic, payload = topic_of(chance), chance.randbytes(chance.choice(LENGTHS))
            expected.append(
                Message(topic, payload, chance.random() < 0.5, chance.choice([0, chance.randint(1, 0xFFFF)]))
            )
        data = b"".join(encode_publish(m.topic, m.payload, packet_id=m.packet_id, retain=m.retain) for m in expected)
        acknowledgements = encode_pubacks(m.packet_id for m in expected if m.packet_id)
        peer.hear(data, lambda: len(got) == len(expected))
        assert peer.said(len(acknowledgements)) == acknowledgements
    assert got == expected


@pytest.mark.parametrize("seed", range(5))
def test_subscriptions_and_what_a_broker_answers(seed: int) -> None:
    chance = random.Random(seed)
    heard: list[Packet] = []
    with connected() as peer:
        client = peer.client
        client.on_publish = lambda client, data, mid, code, more: heard.append(Puback(mid))
        client.on_subscribe = lambda client, data, mid, codes, more: heard.append(
            Suback(mid, tuple(code.value < 3 for code in codes))
        )
        stream = CONNACK
        for _ in range(100):
            filters = [topic_of(chance) for _ in range(chance.randint(1, 20))] + ["+/a/#"]
            qos = chance.randrange(2)
            _, mid = client.subscribe([(name, qos) for name in filters])
            assert mid is not None
            ours = encode_subscribe(mid, filters, qos)
            assert peer.said(len(ours)) == ours
            codes = bytes(chance.choices([0, 1, 2, 0x80], k=len(filters)))
            published = client.publish("t", b"", 1).mid
            assert peer.said(7) == encode_publish("t", b"", packet_id=published, retain=False)
            answers = b"\x90" + bytes([2 + len(codes)]) + mid.to_bytes(2, "big") + codes
            answers += b"\x40\x02" + published.to_bytes(2, "big")
            stream += answers
            before = len(heard)
            peer.hear(answers, lambda before=before: len(heard) == before + 2)
    assert Decoder().feed(stream) == [Connack(0), *heard]
    assert len(heard) == 200


def test_a_ping_is_paho_s_and_its_answer_ours() -> None:
    assert Decoder().feed(CONNACK + b"\xd0\x00") == [Connack(0), Pingresp()]
    assert bytes([paho.PINGREQ, 0]) == PINGREQ
