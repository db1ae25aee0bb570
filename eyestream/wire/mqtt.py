"""MQTT 3.1.1, as much of it as we speak: a client's packets to bytes, a broker's bytes to packets. Pure and bounded.

QoS 0 and 1: we subscribe and publish with nothing else, so a broker has no reason to send anything else. Bytes may come
in any pieces. What is no packet that a broker may send at that moment ends the link (`LinkError`); a payload too long
for every kind of message of ours is cut while it comes in, and refused for its size by whoever gets it.

Source: MQTT Version 3.1.1, OASIS Standard, 29 October 2014; sections are named where they matter. Which of its
statements which test shows: `docs/mqtt-conformance.md`.
"""

import struct
from collections.abc import Iterable
from typing import NamedTuple

from eyestream.errors import LinkError
from eyestream.wire.envelope import MAX_RELEASE_BYTES

__all__ = [
    "DISCONNECT",
    "MAX_PAYLOAD_KEPT",
    "PINGREQ",
    "REFUSALS",
    "Connack",
    "Decoder",
    "Message",
    "Packet",
    "Pingresp",
    "Puback",
    "Suback",
    "Will",
    "encode_connect",
    "encode_pubacks",
    "encode_publish",
    "encode_subscribe",
]

MAX_PAYLOAD_KEPT = MAX_RELEASE_BYTES + 1
"""Bytes of a payload that are kept: one more than any message of ours may have."""

PINGREQ = b"\xc0\x00"
DISCONNECT = b"\xe0\x00"

REFUSALS = {
    1: "it does not speak MQTT 3.1.1",
    2: "it refuses our client id",
    3: "it is not available",
    4: "wrong user name or password",
    5: "not authorised",
}
"""What a broker's answer to CONNECT means (section 3.2.2.3)."""

_HEAD = struct.Struct("!H")
_MAX_REMAINING = 268_435_455
_MAX_TEXT = 65_535


class Message(NamedTuple):
    """One received PUBLISH. `packet_id` is 0 at QoS 0; else it asks for an acknowledgement."""

    topic: str
    payload: bytes
    retain: bool
    packet_id: int = 0


class Connack(NamedTuple):
    """The answer to CONNECT; `code` 0: accepted."""

    code: int


class Suback(NamedTuple):
    """The answer to SUBSCRIBE: whether each topic filter is granted."""

    packet_id: int
    granted: tuple[bool, ...]


class Puback(NamedTuple):
    """The broker has what we published under `packet_id`."""

    packet_id: int


class Pingresp(NamedTuple):
    """The broker is there."""


class Will(NamedTuple):
    """What the broker publishes, retained, at QoS 1, when the link is lost without a goodbye."""

    topic: str
    payload: bytes


Packet = Message | Connack | Suback | Puback | Pingresp


class Decoder:
    """A broker's bytes to packets, CONNACK first and once; holds one unfinished packet at most."""

    def __init__(self) -> None:
        self._greeted = False
        self._held = bytearray()
        self._needed = 0
        self._skip = 0

    def feed(self, data: bytes) -> list[Packet]:
        """Packets that `data`, any number of bytes, completes.

        Raises
        ------
        LinkError
            No packet of a broker; the decoder must not be used any more.
        """
        if self._held:
            self._held += data
            if len(self._held) < self._needed:
                return []
            data = bytes(self._held)
            self._held.clear()
        packets: list[Packet] = []
        at, size = 0, len(data)
        while True:
            if self._skip:
                passed = min(self._skip, size - at)
                self._skip -= passed
                at += passed
            body, end = _frame(data, at)
            kept = min(end, body + MAX_PAYLOAD_KEPT + 4 + _MAX_TEXT)
            if kept > size:
                break
            packet = _packet(data, at, body, kept)
            if isinstance(packet, Connack) is self._greeted:  # something else before it, or a second one (3.2.0-1)
                raise _broken()
            self._greeted = True
            packets.append(packet)
            self._skip = end - kept
            at = kept
        self._held += data[at:]
        self._needed = kept - at
        return packets


def _frame(data: bytes, at: int) -> tuple[int, int]:
    """Where the body of the packet at `at` begins and ends; beyond `data` when that is not known yet."""
    body, length, shift = at + 1, 0, 0
    while body < len(data):
        digit = data[body]
        body += 1
        length |= (digit & 0x7F) << shift
        if digit < 0x80:
            return body, body + length
        shift += 7
        if shift > 21:
            raise _broken()
    return body, max(body, len(data)) + 1


def _packet(data: bytes, at: int, body: int, end: int) -> Packet:
    head = data[at]
    if head >> 4 == 3:
        return _message(data, head & 0x0F, body, end)
    if head == 0x40 and end - body == 2:
        return Puback(_packet_id(data, body))
    if head == 0xD0 and end == body:
        return Pingresp()
    if head == 0x90 and end - body > 2 and all(code in {0, 1, 2, 0x80} for code in data[body + 2 : end]):
        return Suback(_packet_id(data, body), tuple(code < 3 for code in data[body + 2 : end]))
    if head == 0x20 and end - body == 2 and data[body] < 2:
        return Connack(data[body + 1])
    raise _broken()


def _message(data: bytes, flags: int, body: int, end: int) -> Message:
    qos = flags >> 1 & 3
    start = body + 2 + int.from_bytes(data[body : body + 2]) + 2 * (qos == 1)
    if qos > 1 or start > end or flags & 0x0E == 0x08:  # at QoS 0 nothing is sent again (3.3.1-2)
        raise _broken()
    topic_end = start - 2 * qos
    packet_id = _packet_id(data, topic_end) if qos else 0
    try:
        topic = data[body + 2 : topic_end].decode()
    except UnicodeDecodeError:
        raise _broken() from None
    if not topic or "\0" in topic or "+" in topic or "#" in topic:  # 4.7.3-1, 1.5.3-2, 3.3.2-2
        raise _broken()
    return Message(topic, data[start : min(end, start + MAX_PAYLOAD_KEPT)], flags & 1 == 1, packet_id)


def _packet_id(data: bytes, at: int) -> int:
    """A packet identifier is not 0 (2.3.1-1)."""
    packet_id: int = _HEAD.unpack_from(data, at)[0]
    if packet_id == 0:
        raise _broken()
    return packet_id


def _broken() -> LinkError:
    return LinkError("the broker does not speak MQTT 3.1.1 as we know it")


def encode_connect(
    client_id: str | None,
    *,
    keepalive_s: int,
    clean_session: bool,
    will: Will | None,
    username: str | None,
    password: str | None,
) -> bytes:
    """CONNECT (section 3.1). Raises ValueError for what cannot be written."""
    if not (client_id or clean_session):
        raise ValueError("a session that is kept needs a client id")  # 3.1.3-7
    if password is not None and username is None:
        raise ValueError("a password needs a user name")  # 3.1.2-22
    flags = 2 * clean_session + 0x80 * (username is not None) + 0x40 * (password is not None)
    fields = [_text(client_id or "")]
    if will is not None:
        flags += 0x2C
        fields += [_topic(will.topic), _binary(will.payload)]
    if username is not None:
        fields.append(_text(username))
    if password is not None:
        fields.append(_text(password))
    return _framed(0x10, b"\x00\x04MQTT\x04", bytes([flags]), _HEAD.pack(keepalive_s), *fields)


def encode_subscribe(packet_id: int, topic_filters: Iterable[str], qos: int) -> bytes:
    """SUBSCRIBE (section 3.8). Raises ValueError for what cannot be written."""
    filters = [part for name in topic_filters for part in (_filter(name), bytes([qos]))]
    if not filters:
        raise ValueError("there is one topic filter at least")  # 3.8.3-3
    return _framed(0x82, _HEAD.pack(packet_id), *filters)


def encode_publish(topic: str, payload: bytes, *, packet_id: int, retain: bool) -> bytes:
    """PUBLISH (section 3.3), at QoS 1 under `packet_id`, or at QoS 0 with packet id 0.

    Raises
    ------
    ValueError
        A topic that is empty, too long, or has a wildcard; a payload that is too long.
    """
    if packet_id:
        return _framed(0x32 + retain, _topic(topic), _HEAD.pack(packet_id), payload)
    return _framed(0x30 + retain, _topic(topic), payload)


def encode_pubacks(packet_ids: Iterable[int]) -> bytes:
    """PUBACK (section 3.4), one for each."""
    return b"".join(b"\x40\x02" + _HEAD.pack(packet_id) for packet_id in packet_ids)


def _framed(head: int, *parts: bytes) -> bytes:
    length = sum(map(len, parts))
    if length > _MAX_REMAINING:
        raise ValueError("longer than a packet may be")
    start = bytearray([head])
    while length > 0x7F:
        start.append(length & 0x7F | 0x80)
        length >>= 7
    start.append(length)
    return b"".join((start, *parts))


def _topic(name: str) -> bytes:
    if not name or "+" in name or "#" in name:
        raise ValueError("a topic to publish to is not empty and has no wildcard")
    return _text(name)


def _filter(name: str) -> bytes:
    *above, last = name.split("/")
    if not name or any("#" in level for level in above) or ("#" in last and last != "#"):  # 4.7.3-1, 4.7.1-2
        raise ValueError("a topic filter is not empty, and '#' is its last level or nowhere")
    if any("+" in level and level != "+" for level in (*above, last)):  # 4.7.1-3
        raise ValueError("in a topic filter '+' is a whole level")
    return _text(name)


def _text(words: str) -> bytes:
    data = words.encode()
    if "\0" in words:
        raise ValueError("MQTT has no text with a NUL character")
    return _binary(data)


def _binary(data: bytes) -> bytes:
    if len(data) > _MAX_TEXT:
        raise ValueError("longer than a field may be")
    return _HEAD.pack(len(data)) + data
