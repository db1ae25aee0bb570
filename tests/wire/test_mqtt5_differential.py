"""Our MQTT 5 against paho's, packet by packet, in both directions; it is used by its public face alone.

Paho writes properties in an order of its own, which the standard leaves free, so what it writes is compared by its
meaning, with an independent reading of the bytes by the judge of the conformance test.
"""

import contextlib
import random
from collections.abc import Iterator

import paho.mqtt.client as paho
import pytest
from paho.mqtt.enums import CallbackAPIVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties as PahoProperties

from eyestream.wire import mqtt5
from eyestream.wire.mqtt import encode_pubacks
from eyestream.wire.mqtt_packets import Connack, Limits, Message, Packet, Properties, Puback, Suback, Will
from tests.wire.test_mqtt_differential import LENGTHS, Paho, topic_of

HELLO = mqtt5.encode_connect(None, keepalive_s=60, clean_session=True, will=None, username=None, password=None)
CONNACK = b"\x20\x03\x00\x00\x00"


def properties_of(chance: random.Random) -> Properties:
    return Properties(
        chance.choice([None, chance.randint(1, (1 << 32) - 1)]),
        chance.choice([None, topic_of(chance)]),
        chance.choice([None, chance.randbytes(chance.choice((1, 16, 300)))]),
        tuple((topic_of(chance), topic_of(chance)) for _ in range(chance.choice((0, 0, 1, 3)))),
    )


def as_paho(more: Properties, kind: int = PacketTypes.PUBLISH) -> PahoProperties | None:
    """The same in paho's words; None for none."""
    if more == Properties():
        return None
    said = PahoProperties(kind)
    if more.expiry_s is not None:
        said.MessageExpiryInterval = more.expiry_s
    if more.response_topic is not None:
        said.ResponseTopic = more.response_topic
    if more.correlation is not None:
        said.CorrelationData = more.correlation
    if more.user:
        said.UserProperty = list(more.user)
    return said


def as_ours(said: PahoProperties | None) -> Properties:
    """What paho has read, in our words."""
    return Properties(
        getattr(said, "MessageExpiryInterval", None),
        getattr(said, "ResponseTopic", None),
        getattr(said, "CorrelationData", None),
        tuple(map(tuple, getattr(said, "UserProperty", ()))),
    )


def client_of(client_id: str = "") -> paho.Client:
    client = paho.Client(CallbackAPIVersion.VERSION2, client_id=client_id, protocol=paho.MQTTv5)
    client.max_inflight_messages_set(0)
    return client


@contextlib.contextmanager
def connected() -> Iterator[Paho]:
    client = client_of()
    peer = Paho(client)
    try:
        assert peer.said(len(HELLO)) == HELLO
        peer.hear(CONNACK, client.is_connected)
        yield peer
    finally:
        peer.close()


def packet(peer: Paho) -> bytes:
    """The next packet that paho writes."""
    head = peer.said(2)
    while head[-1] & 0x80:
        head += peer.said(1)
    size = sum((digit & 0x7F) << 7 * place for place, digit in enumerate(head[1:]))
    return head + peer.said(size)


@pytest.mark.parametrize("seed", range(20))
def test_connect(seed: int) -> None:
    chance = random.Random(seed)
    client = client_of(client_id := chance.choice(["", "me", topic_of(chance)]))
    will, session_s = None, chance.choice([0, 5, mqtt5.FOR_EVER])
    if chance.random() < 0.7:
        will = Will(topic_of(chance), chance.randbytes(chance.choice(LENGTHS[:6])), chance.choice([0, 5, 70_000]))
        delay = PahoProperties(PacketTypes.WILLMESSAGE)
        if will.delay_s:
            delay.WillDelayInterval = will.delay_s
        client.will_set(will.topic, will.payload, qos=1, retain=True, properties=delay)
    name = chance.choice([None, "user", topic_of(chance)])
    word = None if name is None else chance.choice([None, "word", topic_of(chance)])
    client.username_pw_set(name, word)
    kept = PahoProperties(PacketTypes.CONNECT)
    if session_s:
        kept.SessionExpiryInterval = session_s
    peer = Paho(client, properties=kept)
    ours = mqtt5.encode_connect(
        client_id, keepalive_s=60, clean_session=True, will=will, username=name, password=word, session_s=session_s
    )
    assert peer.said(len(ours)) == ours
    peer.close()


@pytest.mark.parametrize("seed", range(3))
def test_what_paho_publishes_in_5_is_what_we_read(seed: int) -> None:
    chance = random.Random(seed)
    with connected() as peer:
        theirs, expected = b"", list[Message]()
        for _ in range(300):
            topic, payload = topic_of(chance), chance.randbytes(chance.choice(LENGTHS[:8]))
            qos, retain, more = chance.randrange(2), chance.random() < 0.5, properties_of(chance)
            info = peer.client.publish(topic, payload, qos, retain, properties=as_paho(more))
            packet_id = info.mid if qos else 0
            written = packet(peer)
            ours = mqtt5.encode_publish(topic, payload, packet_id=packet_id, retain=retain, more=more)
            assert len(written) == len(ours)
            if len([part for part in more[:3] if part is not None]) + bool(more.user) < 2:
                assert written == ours  # there is but one order
            theirs += written
            expected.append(Message(topic, payload, retain, packet_id, more))
    decoder = mqtt5.Decoder()
    assert decoder.feed(CONNACK) == [Connack(0)]
    read: list[Packet] = []
    while theirs:
        size = chance.randint(1, 30_000)
        read += decoder.feed(theirs[:size])
        theirs = theirs[size:]
    assert read == expected


@pytest.mark.parametrize("seed", range(3))
def test_what_we_write_in_5_is_what_paho_reads_and_it_acknowledges_as_we_would(seed: int) -> None:
    chance = random.Random(seed)
    got: list[Message] = []
    with connected() as peer:
        peer.client.on_message = lambda client, data, message: got.append(
            Message(message.topic, message.payload, message.retain, message.mid, as_ours(message.properties))
        )
        expected = []
        for _ in range(300):
            packet_id = chance.choice([0, chance.randint(1, 0xFFFF)])
            payload = chance.randbytes(chance.choice(LENGTHS))
            expected.append(Message(topic_of(chance), payload, chance.random() < 0.5, packet_id, properties_of(chance)))
        data = b"".join(
            mqtt5.encode_publish(m.topic, m.payload, packet_id=m.packet_id, retain=m.retain, more=m.more)
            for m in expected
        )
        acknowledgements = encode_pubacks(m.packet_id for m in expected if m.packet_id)
        peer.hear(data, lambda: len(got) == len(expected))
        assert peer.said(len(acknowledgements)) == acknowledgements
    assert got == expected


@pytest.mark.parametrize("seed", range(3))
def test_subscriptions_in_5_and_what_a_broker_answers(seed: int) -> None:
    chance = random.Random(seed)
    heard: list[Packet] = []
    with connected() as peer:
        client = peer.client
        client.on_publish = lambda client, data, mid, code, more: heard.append(
            Puback(mid, code.value, getattr(more, "ReasonString", ""))
        )
        client.on_subscribe = lambda client, data, mid, codes, more: heard.append(
            Suback(mid, tuple(code.value < 3 for code in codes), tuple(code.value for code in codes))
        )
        stream = CONNACK
        for _ in range(100):
            filters = [topic_of(chance) for _ in range(chance.randint(1, 20))] + ["+/a/#"]
            qos = chance.randrange(2)
            _, mid = client.subscribe([(name, paho.SubscribeOptions(qos)) for name in filters])
            assert mid is not None
            ours = mqtt5.encode_subscribe(mid, filters, qos)
            assert peer.said(len(ours)) == ours
            codes = bytes(chance.choices([0, 1, 2, 0x80, 0x87, 0x8F, 0xA2], k=len(filters)))
            published = client.publish("t", b"", 1).mid
            assert peer.said(8) == mqtt5.encode_publish("t", b"", packet_id=published, retain=False)
            answers = b"\x90" + bytes([3 + len(codes)]) + mid.to_bytes(2, "big") + b"\x00" + codes
            number = published.to_bytes(2, "big")
            answers += chance.choice(
                [
                    b"\x40\x02" + number,
                    b"\x40\x03" + number + b"\x10",
                    b"\x40\x04" + number + b"\x87\x00",
                    b"\x40\x08" + number + b"\x97\x04\x1f\x00\x01q",
                ]
            )
            stream += answers
            before = len(heard)
            peer.hear(answers, lambda before=before: len(heard) == before + 2)
    assert mqtt5.Decoder().feed(stream) == [Connack(0), *heard]
    assert len(heard) == 200


@pytest.mark.parametrize("seed", range(40))
def test_a_greeting_of_5_says_the_same_to_both(seed: int) -> None:
    """What paho writes as a broker's properties, we read; what it reads of them is what we do."""
    chance = random.Random(seed)
    said = PahoProperties(PacketTypes.CONNACK)
    names = {
        "ReceiveMaximum": chance.randint(1, 65_535), "MaximumPacketSize": chance.randint(1, (1 << 28) - 1),
        "MaximumQoS": chance.randrange(2), "RetainAvailable": chance.randrange(2),
        "ServerKeepAlive": chance.randrange(65_536), "ReasonString": topic_of(chance),
        "AssignedClientIdentifier": topic_of(chance), "TopicAliasMaximum": chance.randrange(65_536),
        "WildcardSubscriptionAvailable": 1, "SubscriptionIdentifierAvailable": 0, "SharedSubscriptionAvailable": 1,
        "SessionExpiryInterval": chance.randrange(1 << 32), "UserProperty": [("a", "b"), ("a", "c")],
        "ServerReference": topic_of(chance),
    }  # fmt: skip
    chosen = {name for name in names if chance.random() < 0.5}
    for name in chosen:
        setattr(said, name, names[name])
    properties = said.pack()
    body = b"\x00\x00" + properties
    size = bytes([len(body)]) if len(body) < 128 else bytes([len(body) % 128 | 128, len(body) // 128])
    [answer] = mqtt5.Decoder().feed(b"\x20" + size + body)
    plain = Limits()
    assert answer == Connack(
        0,
        False,
        Limits(
            names["ReceiveMaximum"] if "ReceiveMaximum" in chosen else plain.receive_maximum,
            names["MaximumPacketSize"] if "MaximumPacketSize" in chosen else plain.packet_bytes,
            names["MaximumQoS"] == 1 if "MaximumQoS" in chosen else True,
            names["RetainAvailable"] == 1 if "RetainAvailable" in chosen else True,
            names["ServerKeepAlive"] if "ServerKeepAlive" in chosen else None,
        ),
        names["ReasonString"] if "ReasonString" in chosen else "",
    )
