"""A broker's bytes in MQTT 5: whole, ragged, foreign."""

import itertools
import tracemalloc

from hypothesis import given
from hypothesis import strategies as st

from eyestream.errors import LinkError
from eyestream.wire import mqtt5
from eyestream.wire.mqtt5_properties import MAX_USER
from eyestream.wire.mqtt_packets import (
    MAX_PAYLOAD_KEPT,
    Connack,
    Disconnect,
    Limits,
    Message,
    Packet,
    Pingresp,
    Properties,
    Puback,
    Suback,
)

STREAM: list[tuple[bytes, Packet]] = [
    (
        b"\x20\x17\x01\x00\x14\x21\x00\x0a\x27\x00\x01\x00\x00\x24\x01\x25\x00\x13\x00\x1e\x1f\x00\x02hi",
        Connack(0, True, Limits(10, 65_536, True, False, 30), "hi"),
    ),
    (b"\x90\x06\x12\x34\x00\x00\x01\x87", Suback(0x1234, (True, True, False), (0, 1, 0x87))),
    (b"\x40\x02\x00\x01", Puback(1)),
    (b"\x40\x03\x00\x02\x10", Puback(2, 0x10)),
    (b"\x40\x08\x00\x03\x97\x04\x1f\x00\x01q", Puback(3, 0x97, "q")),
    (b"\xd0\x00", Pingresp()),
    (b"\x30\x06\x00\x03a/b\x00", Message("a/b", b"", False)),
    (b"\x33\x0d\x00\x01t\x00\x07\x05\x02\x00\x00\x00\x09xy", Message("t", b"xy", True, 7, Properties(expiry_s=9))),
    (b"\x30\xcc\x01\x00\x01t\x00" + bytes(200), Message("t", bytes(200), False)),
    (b"\xe0\x00", Disconnect(0)),
    (b"\xe0\x06\x8b\x04\x1f\x00\x01q", Disconnect(0x8B, "q")),
]
BYTES = b"".join(data for data, _ in STREAM)


def test_every_packet_of_a_broker() -> None:
    assert mqtt5.Decoder().feed(BYTES) == [packet for _, packet in STREAM]


@given(st.lists(st.integers(0, len(BYTES)), max_size=40))
def test_how_the_bytes_come_does_not_matter(cuts: list[int]) -> None:
    decoder, packets, edges = mqtt5.Decoder(), list[Packet](), [0, *sorted(cuts), len(BYTES)]
    for begin, end in itertools.pairwise(edges):
        packets += decoder.feed(BYTES[begin:end])
    assert packets == [packet for _, packet in STREAM]


@given(st.binary(max_size=300), st.integers(0, 300))
def test_any_bytes_are_packets_or_a_lost_link(data: bytes, cut: int) -> None:
    def read(*pieces: bytes) -> list[Packet] | None:
        decoder, packets = mqtt5.Decoder(), list[Packet]()
        decoder.feed(b"\x20\x03\x00\x00\x00")
        try:
            for piece in pieces:
                packets += decoder.feed(piece)
        except LinkError:
            return None
        return packets

    assert read(data) == read(data[:cut], data[cut:])


_TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=50)
_TOPICS = st.text(st.characters(exclude_characters="+#\0", exclude_categories=["Cs"]), min_size=1, max_size=50)
_PROPERTIES = st.builds(
    Properties,
    st.none() | st.integers(1, (1 << 32) - 1),
    st.none() | _TOPICS,
    st.none() | st.binary(max_size=100),
    st.lists(st.tuples(_TEXTS, _TEXTS), max_size=MAX_USER).map(tuple),
)


@given(_TOPICS, st.binary(max_size=70_000), st.integers(0, 0xFFFF), st.booleans(), _PROPERTIES)
def test_what_one_client_publishes_another_reads(
    topic: str, payload: bytes, packet_id: int, retain: bool, more: Properties
) -> None:
    data = mqtt5.encode_publish(topic, payload, packet_id=packet_id, retain=retain, more=more)
    [_, message] = mqtt5.Decoder().feed(b"\x20\x03\x00\x00\x00" + data)
    assert message == Message(topic, payload, retain, packet_id, more)


def test_an_endless_packet_costs_no_more_than_the_longest_we_know() -> None:
    """Cut where it is longer than any message of ours, while it comes in; what follows is read."""
    length = 40_000_000
    digits = bytes([length & 0x7F | 0x80, length >> 7 & 0x7F | 0x80, length >> 14 & 0x7F | 0x80, length >> 21])
    start = b"\x00\x01t\x00"
    decoder = mqtt5.Decoder()
    tracemalloc.start()
    packets = decoder.feed(b"\x20\x03\x00\x00\x00" + b"\x30" + digits + start)
    piece, left = bytes(65_536), length - len(start)
    while left:
        packets += decoder.feed(piece[: min(left, len(piece))])
        left -= min(left, len(piece))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    packets += decoder.feed(b"\xd0\x00")
    _, message, after = packets
    assert isinstance(message, Message)
    assert (message.topic, len(message.payload)) == ("t", MAX_PAYLOAD_KEPT)
    assert after == Pingresp()
    assert peak < 4 * MAX_PAYLOAD_KEPT
