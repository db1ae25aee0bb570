"""MQTT 5, as much of it as we speak: what `eyestream.wire.mqtt` is for 3.1.1, with the same functions. Pure, bounded.

We allow no topic alias, ask for no authentication beyond a password and for no response information, and give no
subscription a number; a broker that uses what we did not allow loses the link, with the reason.

Source: MQTT Version 5.0, OASIS Standard, 7 March 2019; sections are named where they matter.
"""

from collections.abc import Iterable

from eyestream.wire import mqtt5_properties as properties
from eyestream.wire.mqtt5_properties import (
    OF_CONNACK,
    OF_DISCONNECT,
    OF_PUBACK,
    OF_PUBLISH,
    broken,
    encode_properties,
    four_bytes,
    read_properties,
    read_varint,
    varint,
)
from eyestream.wire.mqtt5_reasons import (
    CODES_OF_CONNACK,
    CODES_OF_DISCONNECT,
    CODES_OF_PUBACK,
    CODES_OF_SUBACK,
    OTHER_VERSION,
)
from eyestream.wire.mqtt_frames import HEAD, MAX_TEXT, FrameDecoder, binary, filter_name, framed, text, topic_name
from eyestream.wire.mqtt_packets import (
    MAX_PAYLOAD_KEPT,
    NO_PROPERTIES,
    Connack,
    Disconnect,
    Limits,
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
    "DISCONNECT_AND_FORGET",
    "DISCONNECT_WITH_WILL",
    "FOR_EVER",
    "MAX_PROPERTIES_KEPT",
    "NAME",
    "Decoder",
    "encode_connect",
    "encode_disconnect",
    "encode_publish",
    "encode_subscribe",
]

NAME = "MQTT 5"

MAX_PROPERTIES_KEPT = 2 * (MAX_TEXT + 3) + 1024
"""Bytes of a message's properties: a response topic and correlation data of any length, and some more."""

FOR_EVER = 0xFFFF_FFFF
"""Of a session: it does not end by itself (3.1.2.11.2)."""

DISCONNECT = b"\xe0\x00"
_NO_SESSION = four_bytes(properties.SESSION_EXPIRY, 0)
DISCONNECT_AND_FORGET = framed(0xE0, b"\x00", varint(len(_NO_SESSION)), _NO_SESSION)
"""A goodbye after which the broker forgets the session."""
DISCONNECT_WITH_WILL = b"\xe0\x01\x04"
"""A goodbye that does not take back the last will."""


class Decoder(FrameDecoder):
    """A broker's bytes to packets."""

    most_kept = FrameDecoder.most_kept + 4 + MAX_PROPERTIES_KEPT

    def _packet(self, data: bytes, at: int, body: int, kept: int, end: int) -> Packet:
        head = data[at]
        if head >> 4 == 3:
            return _message(data, head & 0x0F, body, kept, end)
        if kept < end:
            raise broken("a packet that is too large", 0x95)
        if head == 0x40:
            return _puback(data, body, end)
        if head == 0xD0 and end == body:
            return Pingresp()
        if head == 0x90:
            return _suback(data, body, end)
        if head == 0x20:
            answer = _connack(data, body, end)
            self._over = answer.code != 0  # what follows may be of another version
            return answer
        if head == 0xE0:
            return _disconnect(data, body, end)
        raise broken("no packet that a broker may send to us", 0x81 if head >> 4 in {2, 4, 9, 13} else 0x82)

    def broken(self, what: str, code: int = 0x81) -> PacketError:
        """The error for `what` is wrong with a packet."""
        return broken(what, code)


def _section(data: bytes, at: int, end: int) -> tuple[int, int]:
    """Where properties begin whose length is at `at`, and where they end, which is not past `end`."""
    length, start = read_varint(data, at, end)
    if start + length > end:
        raise broken("properties are cut off")
    return start, start + length


def _packet_id(data: bytes, at: int, end: int) -> int:
    """A packet identifier is not 0 (2.2.1-3)."""
    if at + 2 > end:
        raise broken("a packet is cut off")
    packet_id: int = HEAD.unpack_from(data, at)[0]
    if packet_id == 0:
        raise broken("packet id 0", 0x82)
    return packet_id


def _code(code: int, known: frozenset[int], what: str) -> int:
    if code not in known:
        raise broken(f"{what} with reason code 0x{code:02x}", 0x82)
    return code


def _connack(data: bytes, body: int, end: int) -> Connack:
    if end - body == 2 and data[body] < 2:  # as 3.1.1 writes it: whoever answers so does not speak MQTT 5
        return Connack(OTHER_VERSION)
    if end - body < 3 or data[body] > 1:
        raise broken("CONNACK with reserved bits, or cut off")
    code = _code(data[body + 1], CODES_OF_CONNACK | {1}, "CONNACK")
    if code == 1:  # as 3.1.1 says it, in the form of MQTT 5
        return Connack(OTHER_VERSION)
    resumed = data[body] == 1
    if code and resumed:  # 3.2.2-6
        raise broken("a session with a refusal", 0x82)
    start, stop = _section(data, body + 2, end)
    if stop != end:
        raise broken("CONNACK with something behind its properties")
    found = read_properties(data, start, stop, OF_CONNACK)
    limits = Limits(
        receive_maximum=found.get(properties.RECEIVE_MAXIMUM, 65_535),
        packet_bytes=found.get(properties.SIZE_MAXIMUM, Limits().packet_bytes),
        qos_1=found.get(properties.MAXIMUM_QOS, 1) == 1,
        retain=found.get(properties.RETAIN_AVAILABLE, 1) == 1,
        keepalive_s=found.get(properties.SERVER_KEEPALIVE),
    )
    return Connack(code, resumed, limits, found.get(properties.REASON, ""))


def _puback(data: bytes, body: int, end: int) -> Puback:
    packet_id = _packet_id(data, body, end)
    if end - body == 2:
        return Puback(packet_id)
    code = _code(data[body + 2], CODES_OF_PUBACK, "PUBACK")
    return Puback(packet_id, code, _words(data, body + 3, end, OF_PUBACK))


def _disconnect(data: bytes, body: int, end: int) -> Disconnect:
    code = _code(data[body], CODES_OF_DISCONNECT, "DISCONNECT") if end > body else 0
    return Disconnect(code, _words(data, body + 1, end, OF_DISCONNECT))


def _words(data: bytes, at: int, end: int, allowed: frozenset[int]) -> str:
    """The reason string of properties that fill the rest of a packet; where nothing is left there are none."""
    if at >= end:
        return ""
    start, stop = _section(data, at, end)
    if stop != end:
        raise broken("something behind the properties")
    words: str = read_properties(data, start, stop, allowed).get(properties.REASON, "")
    return words


def _suback(data: bytes, body: int, end: int) -> Suback:
    packet_id = _packet_id(data, body, end)
    start, stop = _section(data, body + 2, end)
    words = read_properties(data, start, stop, OF_PUBACK).get(properties.REASON, "")
    codes = tuple(_code(code, CODES_OF_SUBACK, "SUBACK") for code in data[stop:end])
    if not codes:
        raise broken("SUBACK without a reason code")
    return Suback(packet_id, tuple(code < 3 for code in codes), codes, words)


def _message(data: bytes, flags: int, body: int, kept: int, end: int) -> Message:
    qos = flags >> 1 & 3
    if qos > 1 or flags & 0x0E == 0x08:  # at QoS 0 nothing is sent again (3.3.1-2)
        raise broken("QoS 2, which nobody asked for, or flags that are none")
    topic_end = body + 2 + int.from_bytes(data[body : body + 2])
    at = topic_end + 2 * qos
    if at > kept:
        raise broken("a message is cut off")
    packet_id = _packet_id(data, topic_end, kept) if qos else 0
    try:
        topic = data[body + 2 : topic_end].decode()
    except UnicodeDecodeError:
        raise broken("a topic that is no UTF-8") from None
    if "\0" in topic or "+" in topic or "#" in topic:  # 1.5.4-2, 3.3.2-2
        raise broken("a topic with U+0000 or a wildcard")
    if not topic:  # 3.3.2-8 would need an alias
        raise broken("a message without a topic", 0x82)
    length, start = read_varint(data, at, kept)
    stop = start + length
    if stop > end:
        raise broken("properties are cut off")
    if length > MAX_PROPERTIES_KEPT:  # a stranger's, which the broker hands on: too large for us, like its payload
        return Message(topic, bytes(MAX_PAYLOAD_KEPT), flags & 1 == 1, packet_id)
    more = NO_PROPERTIES
    if length:
        more = properties.message_properties(read_properties(data, start, stop, OF_PUBLISH))
    return Message(topic, data[stop : min(kept, stop + MAX_PAYLOAD_KEPT)], flags & 1 == 1, packet_id, more)


def encode_connect(
    client_id: str | None,
    *,
    keepalive_s: int,
    clean_session: bool,
    will: Will | None,
    username: str | None,
    password: str | None,
    session_s: int = 0,
) -> bytes:
    """CONNECT (section 3.1). The session outlives the connection for `session_s`. ValueError: cannot be written."""
    if not (client_id or clean_session):
        raise ValueError("a session that is kept needs a client id")
    flags = 2 * clean_session + 0x80 * (username is not None) + 0x40 * (password is not None)
    kept = four_bytes(properties.SESSION_EXPIRY, session_s) if session_s else b""
    fields = [varint(len(kept)), kept, text(client_id or "")]
    if will is not None:
        flags += 0x2C
        delay = four_bytes(properties.WILL_DELAY, will.delay_s) if will.delay_s else b""
        fields += [varint(len(delay)), delay, topic_name(will.topic), binary(will.payload)]
    fields += [text(word) for word in (username, password) if word is not None]
    return framed(0x10, b"\x00\x04MQTT\x05", bytes([flags]), HEAD.pack(keepalive_s), *fields)


def encode_subscribe(packet_id: int, topic_filters: Iterable[str], qos: int) -> bytes:
    """SUBSCRIBE (section 3.8). Raises ValueError for what cannot be written."""
    filters = [part for name in topic_filters for part in (filter_name(name), bytes([qos]))]
    if not filters:
        raise ValueError("there is one topic filter at least")  # 3.8.3-2
    return framed(0x82, HEAD.pack(packet_id), b"\x00", *filters)


def encode_publish(
    topic: str, payload: bytes, *, packet_id: int, retain: bool, more: Properties = NO_PROPERTIES
) -> bytes:
    """PUBLISH (section 3.3), at QoS 1 under `packet_id`, or at QoS 0 with packet id 0; ValueError as in 3.1.1."""
    said = b"\x00" if more is NO_PROPERTIES else encode_properties(more)
    if packet_id:
        return framed(0x32 + retain, topic_name(topic), HEAD.pack(packet_id), said, payload)
    return framed(0x30 + retain, topic_name(topic), said, payload)


def encode_disconnect(code: int) -> bytes:
    """DISCONNECT (section 3.14) with a reason."""
    return bytes([0xE0, 1, code])
