"""A broker's bytes: whole, ragged, cut, foreign; and ours, byte by byte as the standard prints them."""

import itertools
import tracemalloc

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eyestream.errors import LinkError
from eyestream.wire import mqtt
from eyestream.wire.mqtt import (
    MAX_PAYLOAD_KEPT,
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

STREAM: list[tuple[bytes, Packet]] = [
    (b"\x20\x02\x01\x05", Connack(5)),
    (b"\x90\x05\x12\x34\x00\x01\x80", Suback(0x1234, (True, True, False))),
    (b"\x40\x02\x00\x01", Puback(1)),
    (b"\xd0\x00", Pingresp()),
    (b"\x30\x05\x00\x03a/b", Message("a/b", b"", False)),
    (b"\x31\x09\x00\x03\xe2\x82\xacdata", Message("\u20ac", b"data", True)),
    (b"\x3a\x08\x00\x01t\xff\xffxyz", Message("t", b"xyz", False, 0xFFFF)),  # sent again: the flag changes nothing
    (b"\x30\xcb\x01\x00\x01t" + bytes(200), Message("t", bytes(200), False)),
]
BYTES = b"".join(data for data, _ in STREAM)


def greeted() -> Decoder:
    """A decoder that has read CONNACK: before it nothing else is read."""
    decoder = Decoder()
    assert decoder.feed(b"\x20\x02\x00\x00") == [Connack(0)]
    return decoder


def test_every_packet_of_a_broker() -> None:
    assert Decoder().feed(BYTES) == [packet for _, packet in STREAM]


@given(st.lists(st.integers(0, len(BYTES)), max_size=40))
def test_how_the_bytes_come_does_not_matter(cuts: list[int]) -> None:
    decoder, packets, edges = Decoder(), [], [0, *sorted(cuts), len(BYTES)]
    for begin, end in itertools.pairwise(edges):
        packets += decoder.feed(BYTES[begin:end])
    assert packets == [packet for _, packet in STREAM]


def test_byte_by_byte_a_packet_is_there_with_its_last_byte() -> None:
    decoder = Decoder()
    for data, packet in STREAM:
        for byte in data[:-1]:
            assert decoder.feed(bytes([byte])) == []
        assert decoder.feed(data[-1:]) == [packet]


@pytest.mark.parametrize(
    "data",
    [
        b"\x00\x00",  # reserved
        b"\x10\x00",  # what a client says
        b"\x30\x00",  # no topic
        b"\x30\x02\x00\x01",  # shorter than its topic
        b"\x30\x04\x00\x02\xff\xfe",  # no UTF-8
        b"\x32\x03\x00\x01t",  # no packet id
        b"\x32\x05\x00\x01t\x00\x00",  # packet id 0
        b"\x34\x05\x00\x01t\x00\x01",  # QoS 2
        b"\x36\x05\x00\x01t\x00\x01",  # QoS 3
        b"\x40\x03\x00\x01\x00",
        b"\x50\x02\x00\x01",  # of QoS 2
        b"\x62\x02\x00\x01",
        b"\x90\x02\x00\x01",  # answers nothing
        b"\x90\x03\x00\x01\x03",  # reserved code
        b"\xb0\x02\x00\x01",  # we never unsubscribe
        b"\xd0\x01\x00",
        b"\xf0\x00",
        b"\x30\xff\xff\xff\xff",  # a length of five bytes
    ],
)
def test_what_no_broker_says_ends_the_link(data: bytes) -> None:
    with pytest.raises(LinkError):
        greeted().feed(data)
    decoder = greeted()
    with pytest.raises(LinkError):
        [decoder.feed(bytes([byte])) for byte in data]


@pytest.mark.parametrize(
    "data",
    [
        b"\x20\x03\x00\x00\x00",  # too long
        b"\x20\x02\x02\x00",  # reserved bits
        b"\x21\x02\x00\x00",
        b"\x20\x02\x00\x00\x20\x02\x00\x00",  # twice
        b"\xd0\x00",  # something else before it
    ],
)
def test_what_is_no_greeting_ends_the_link(data: bytes) -> None:
    with pytest.raises(LinkError):
        Decoder().feed(data)


@given(st.binary(max_size=300), st.integers(0, 300))
@example(b"\x30\x80\x80\x80\x00", 2)
def test_any_bytes_are_packets_or_a_lost_link(data: bytes, cut: int) -> None:
    def read(*pieces: bytes) -> list[Packet] | None:
        decoder, packets = greeted(), []
        try:
            for piece in pieces:
                packets += decoder.feed(piece)
        except LinkError:
            return None
        return packets

    assert read(data) == read(data[:cut], data[cut:])


@pytest.mark.parametrize("qos", [0, 1])
def test_a_payload_of_any_length_costs_no_more_than_the_longest_we_know(qos: int) -> None:
    """Cut where it is longer than any message of ours, so that it is refused for its size; what follows is read."""
    length = 40_000_000
    head = b"\x32" if qos else b"\x30"
    digits = bytes([length & 0x7F | 0x80, length >> 7 & 0x7F | 0x80, length >> 14 & 0x7F | 0x80, length >> 21])
    start = b"\x00\x01t" + (b"\x00\x05" if qos else b"")
    decoder = greeted()
    tracemalloc.start()
    packets = decoder.feed(head + digits + start)
    piece, left = bytes(65_536), length - len(start)
    while left:
        packets += decoder.feed(piece[: min(left, len(piece))])
        left -= min(left, len(piece))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    packets += decoder.feed(b"\xd0\x00")
    message, after = packets
    assert isinstance(message, Message)
    assert (message.topic, len(message.payload), message.packet_id) == ("t", MAX_PAYLOAD_KEPT, 5 * qos)
    assert after == Pingresp()
    assert peak < 4 * MAX_PAYLOAD_KEPT


def test_a_long_payload_in_small_pieces_is_read_in_linear_time() -> None:
    """A piece costs what it brings: half a million of them take no square of that."""
    payload = bytes(500_000)
    data = encode_publish("t", payload, packet_id=0, retain=False)
    decoder = greeted()
    packets = [packet for byte in data for packet in decoder.feed(bytes([byte]))]
    assert packets == [Message("t", payload, False)]


def test_what_we_say_is_what_the_standard_prints() -> None:
    plain = encode_connect(None, keepalive_s=20, clean_session=True, will=None, username=None, password=None)
    assert plain == b"\x10\x0c\x00\x04MQTT\x04\x02\x00\x14\x00\x00"
    will = Will("w", b"\x00\x01")
    full = encode_connect("me", keepalive_s=60, clean_session=False, will=will, username="u", password="p")
    assert full == b"\x10\x1b\x00\x04MQTT\x04\xec\x00\x3c\x00\x02me\x00\x01w\x00\x02\x00\x01\x00\x01u\x00\x01p"
    assert encode_subscribe(10, ["a/b", "c/d"], 1) == b"\x82\x0e\x00\x0a\x00\x03a/b\x01\x00\x03c/d\x01"
    assert encode_publish("a/b", b"x", packet_id=10, retain=False) == b"\x32\x08\x00\x03a/b\x00\x0ax"
    assert encode_publish("a/b", b"x", packet_id=0, retain=True) == b"\x31\x06\x00\x03a/bx"
    assert encode_pubacks([1, 0x1234]) == b"\x40\x02\x00\x01\x40\x02\x12\x34"
    assert (mqtt.PINGREQ, mqtt.DISCONNECT) == (b"\xc0\x00", b"\xe0\x00")


@given(
    st.text(st.characters(exclude_characters="+#\0", exclude_categories=["Cs"]), min_size=1, max_size=50),
    st.binary(max_size=70_000),
    st.integers(0, 0xFFFF),
    st.booleans(),
)
def test_what_one_client_publishes_another_reads(topic: str, payload: bytes, packet_id: int, retain: bool) -> None:
    data = encode_publish(topic, payload, packet_id=packet_id, retain=retain)
    assert greeted().feed(data) == [Message(topic, payload, retain, packet_id)]


@pytest.mark.parametrize("topic", ["", "a/+", "#", "a\0b", "x" * 65_536, "\ud800"])
def test_what_is_no_topic_is_not_published(topic: str) -> None:
    with pytest.raises(ValueError, match=r"topic|longer|NUL|surrogates"):
        encode_publish(topic, b"", packet_id=1, retain=False)
