"""A broker's bytes are cut into packets, in whatever pieces they come, and no more of them is held than one message."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eyestream.errors import LinkError
from eyestream.rim.mqtt.carrier import MAX_PROPERTIES_BYTES, MOST_HELD, Frames
from eyestream.rim.mqtt.incoming import read_message
from eyestream.rim.mqtt.messages import TOO_LARGE
from eyestream.wire.envelope import MAX_RELEASE_BYTES
from tests.rigs.strangers import packet

PACKETS = [
    b"\x20\x02\0\0",
    packet(0x30, b"\0\x01t" + bytes(300)),
    b"\xd0\0",
    b"\x40\x02\0\x07",
    packet(0x33, b"\0\x01t\0\x09" + bytes(20_000)),
    b"\x90\x03\0\x01\x01",
]


def fed(pieces: list[bytes]) -> list[tuple[bytes, bool]]:
    frames = Frames()
    return [found for piece in pieces for found in frames.feed(piece)]


@given(st.lists(st.integers(0, sum(map(len, PACKETS))), max_size=12))
def test_in_any_pieces(cuts: list[int]) -> None:
    whole, edges = b"".join(PACKETS), [0, *sorted(cuts), sum(map(len, PACKETS))]
    pieces = [whole[start:end] for start, end in pairwise(edges)]
    assert fed(pieces) == [(one, False) for one in PACKETS]


@pytest.mark.parametrize("size", [MAX_RELEASE_BYTES + (1 << 17), 200 << 20])
def test_what_is_too_large_is_left_out_while_it_comes_in(size: int) -> None:
    frames, block = Frames(), bytes(1 << 16)
    head = b"\x33" + bytes([size & 127 | 128, size >> 7 & 127 | 128, size >> 14 & 127 | 128, size >> 21])
    start = b"\0\x01t\0\x09"
    found, left = list(frames.feed(head + start)), size - len(start)
    while left:
        piece = block[:left]
        found += frames.feed(piece)
        left -= len(piece)
        assert len(frames._held) < 1 << 18
    found += frames.feed(PACKETS[1])
    cut = b"\x33" + bytes([len(start) | 128, 128, 0]) + start
    assert found == [(cut, True), (PACKETS[1], False)]


def test_the_largest_message_of_ours_is_whole() -> None:
    largest = packet(0x30, b"\0\x01t\0" + bytes(MAX_RELEASE_BYTES))
    assert fed([largest[:99], largest[99:]]) == [(largest, False)]
    assert len(largest) <= MOST_HELD


@pytest.mark.parametrize("extra", [0, 1])
def test_more_properties_than_are_read_make_a_message_too_large(extra: int) -> None:
    """A stranger's message costs no more than so many bytes are worth."""
    properties = b"\x26\0\0\0\0" * (MAX_PROPERTIES_BYTES // 5) + (b"\x23\0\1" if extra else b"\x01\0")
    assert len(properties) == MAX_PROPERTIES_BYTES + extra
    length = bytes([len(properties) & 127 | 128, len(properties) >> 7])
    found = read_message(packet(0x32, b"\0\x01t\0\x09" + length + properties + bytes(5000)), five=True)
    assert (found.topic, found.packet_id) == ("t", 9)
    assert (found.payload is TOO_LARGE) == bool(extra)
    assert read_message(packet(0x30, b"\0\x01t" + length + properties), five=False).payload == length + properties


MAY_COME = {0x20, 0x30, 0x31, 0x32, 0x33, 0x3A, 0x3B, 0x40, 0x90, 0xD0, 0xE0}


@pytest.mark.parametrize("head", sorted(set(range(256)) - MAY_COME))
def test_no_packet_of_a_broker(head: int) -> None:
    """QoS 2 is among them: paho would hold such messages, thousands of any size, until the broker releases them."""
    with pytest.raises(LinkError, match="does not speak MQTT"):
        fed([bytes([head])])


@pytest.mark.parametrize("data", [b"\x30\xff\xff\xff\xff", b"\x20\xff\xff\x7f"])
def test_no_length_of_a_packet(data: bytes) -> None:
    """One of five bytes, and an answer of two megabytes."""
    with pytest.raises(LinkError, match="does not speak MQTT"):
        fed([data])


def test_the_longest_topic_of_a_message_that_is_too_large() -> None:
    topic = b"\xff\xff" + b"t" * 65_535
    [(found, cut)] = fed([b"\x30\xff\xff\xff\x7f" + topic + bytes(70_000)])
    assert cut
    assert found == packet(0x30, topic)
