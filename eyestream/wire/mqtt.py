"""MQTT 3.1.1, as much of it as we speak: a client's packets to bytes, a broker's bytes to packets. Pure and bounded.

QoS 0 and 1: we subscribe and publish with nothing else, so a broker has no reason to send anything else. Bytes may come
in any pieces. What is no packet that a broker may send at that moment ends the link (`LinkError`); a payload too long
for every kind of message of ours is cut while it comes in, and refused for its size by whoever gets it.

Source: MQTT Version 3.1.1, OASIS Standard, 29 October 2014; sections are named where they matter. Which of its
statements which test shows: `docs/mqtt-conformance.md`.
"""

from collections.abc import Iterable

from eyestream.wire.mqtt_frames import HEAD, FrameDecoder, binary, filter_name, framed, text, topic_name
from eyestream.wire.mqtt_packets import (
    MAX_PAYLOAD_KEPT,
    NO_PROPERTIES,
    PINGREQ,
    Connack,
    Message,
    Packet,
    PacketError,
    Pingresp,
    Properties,
    Puback,
    Suback,
    Will,
)

__all__ = [
    "DISCONNECT",
    "MAX_PAYLOAD_KEPT",
    "NAME",
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

NAME = "MQTT 3.1.1"
DISCONNECT = b"\xe0\x00"

REFUSALS = {
    1: "it does not speak MQTT 3.1.1",
    2: "it refuses our client id",
    3: "it is not available",
    4: "wrong user name or password",
    5: "not authorised",
}
"""What a broker's answer to CONNECT means (section 3.2.2.3)."""


class Decoder(FrameDecoder):
    """A broker's bytes to packets."""

    def _packet(self, data: bytes, at: int, body: int, kept: int, end: int) -> Packet:
        head = data[at]
        if head >> 4 == 3:
            return _message(data, head & 0x0F, body, kept)
        if head == 0x40 and kept - body == 2:
            return Puback(_packet_id(data, body))
        if head == 0xD0 and kept == body:
            return Pingresp()
        if head == 0x90 and kept - body > 2 and all(code in {0, 1, 2, 0x80} for code in data[body + 2 : kept]):
            return Suback(_packet_id(data, body), tuple(code < 3 for code in data[body + 2 : kept]))
        if head == 0x20 and kept - body == 2 and data[body] < 2:
            return Connack(data[body + 1])
        raise _broken()

    def broken(self, what: str, code: int = 0x81) -> PacketError:
        """The error of this version: it has no words for what is wrong."""
        return _broken()


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
    packet_id: int = HEAD.unpack_from(data, at)[0]
    if packet_id == 0:
        raise _broken()
    return packet_id


def _broken() -> PacketError:
    return PacketError("the broker does not speak MQTT 3.1.1 as we know it")


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
    fields = [text(client_id or "")]
    if will is not None:
        flags += 0x2C
        fields += [topic_name(will.topic), binary(will.payload)]
    if username is not None:
        fields.append(text(username))
    if password is not None:
        fields.append(text(password))
    return framed(0x10, b"\x00\x04MQTT\x04", bytes([flags]), HEAD.pack(keepalive_s), *fields)


def encode_subscribe(packet_id: int, topic_filters: Iterable[str], qos: int) -> bytes:
    """SUBSCRIBE (section 3.8). Raises ValueError for what cannot be written."""
    filters = [part for name in topic_filters for part in (filter_name(name), bytes([qos]))]
    if not filters:
        raise ValueError("there is one topic filter at least")  # 3.8.3-3
    return framed(0x82, HEAD.pack(packet_id), *filters)


def encode_publish(
    topic: str, payload: bytes, *, packet_id: int, retain: bool, more: Properties = NO_PROPERTIES
) -> bytes:
    """PUBLISH (section 3.3), at QoS 1 under `packet_id`, or at QoS 0 with packet id 0. `more` cannot be said.

    Raises
    ------
    ValueError
        A topic that is empty, too long, or has a wildcard; a payload that is too long.
    """
    if packet_id:
        return framed(0x32 + retain, topic_name(topic), HEAD.pack(packet_id), payload)
    return framed(0x30 + retain, topic_name(topic), payload)


def encode_pubacks(packet_ids: Iterable[int]) -> bytes:
    """PUBACK (section 3.4), one for each."""
    return b"".join(b"\x40\x02" + HEAD.pack(packet_id) for packet_id in packet_ids)
