"""Properties of MQTT 5: which a broker may put where, how each is written. Pure and bounded.

Source: MQTT Version 5.0, OASIS Standard, 7 March 2019, section 2.2.2 and the table there.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from eyestream.wire.mqtt_frames import binary, text, topic_name
from eyestream.wire.mqtt_packets import PacketError, Properties

__all__ = [
    "CORRELATION",
    "EXPIRY",
    "MAX_USER",
    "OF_CONNACK",
    "OF_DISCONNECT",
    "OF_PUBACK",
    "OF_PUBLISH",
    "REASON",
    "RECEIVE_MAXIMUM",
    "RESPONSE_TOPIC",
    "SESSION_EXPIRY",
    "SIZE_MAXIMUM",
    "USER",
    "WILL_DELAY",
    "broken",
    "encode_properties",
    "four_bytes",
    "message_properties",
    "read_properties",
    "read_varint",
    "varint",
]

MAX_USER = 16
"""Pairs of texts that are kept of a message; more are read and forgotten."""

EXPIRY, RESPONSE_TOPIC, CORRELATION, SESSION_EXPIRY, SERVER_KEEPALIVE = 0x02, 0x08, 0x09, 0x11, 0x13
WILL_DELAY, REASON, RECEIVE_MAXIMUM, ALIAS_MAXIMUM, ALIAS = 0x18, 0x1F, 0x21, 0x22, 0x23
MAXIMUM_QOS, RETAIN_AVAILABLE, USER, SIZE_MAXIMUM = 0x24, 0x25, 0x26, 0x27

OF_PUBLISH = frozenset({0x01, EXPIRY, 0x03, RESPONSE_TOPIC, CORRELATION, ALIAS, USER})
"""Without the numbers of subscriptions, of which we give none (3.3.4)."""
OF_PUBACK = frozenset({REASON, USER})
OF_DISCONNECT = frozenset({0x1C, REASON, USER})
"""Without the session's expiry, of which a broker does not speak there (3.14.2-2)."""

OF_CONNACK = frozenset(
    {SESSION_EXPIRY, 0x12, SERVER_KEEPALIVE, 0x1C, REASON, RECEIVE_MAXIMUM, ALIAS_MAXIMUM}
    | {MAXIMUM_QOS, RETAIN_AVAILABLE, USER, SIZE_MAXIMUM, 0x28, 0x29, 0x2A}
)
"""Without response information (3.1.2-28) and authentication (4.12.0-6), for which we never ask."""


class _Kind(NamedTuple):
    """How a value is read, and which values it may have."""

    read: Callable[[bytes, int, int], tuple[Any, int]]
    allows: Callable[[Any], bool] = lambda value: True


def broken(what: str, code: int = 0x81) -> PacketError:
    """The error for a packet of a broker that is none of MQTT 5; `what` holds nothing of its content."""
    return PacketError(f"the broker does not speak MQTT 5 as we know it: {what} (0x{code:02x})", code)


def _number(size: int) -> Callable[[bytes, int, int], tuple[int, int]]:
    def read(data: bytes, at: int, end: int) -> tuple[int, int]:
        if at + size > end:
            raise broken("a property is cut off")
        return int.from_bytes(data[at : at + size]), at + size

    return read


def _binary(data: bytes, at: int, end: int) -> tuple[bytes, int]:
    start = at + 2
    stop = start + int.from_bytes(data[at:start])
    if start > end or stop > end:
        raise broken("a property is cut off")
    return data[start:stop], stop


def _text(data: bytes, at: int, end: int) -> tuple[str, int]:
    raw, stop = _binary(data, at, end)
    try:
        words = raw.decode()
    except UnicodeDecodeError:
        raise broken("a text that is no UTF-8") from None
    if "\0" in words:
        raise broken("a text with U+0000")
    return words, stop


def _pair(data: bytes, at: int, end: int) -> tuple[tuple[str, str], int]:
    name, middle = _text(data, at, end)
    value, stop = _text(data, middle, end)
    return (name, value), stop


def read_varint(data: bytes, at: int, end: int) -> tuple[int, int]:
    """A number of one to four bytes, written with as few as it takes (1.5.5-1), and where it ends."""
    value = 0
    for place in range(4):
        if at + place >= end:
            raise broken("a length is cut off")
        digit = data[at + place]
        value |= (digit & 0x7F) << 7 * place
        if digit < 0x80:
            if place and not digit:
                raise broken("a length with more bytes than it takes")
            return value, at + place + 1
    raise broken("a length of more than four bytes")


def _is_topic(name: str) -> bool:
    return bool(name) and "+" not in name and "#" not in name


_FLAG = _Kind(_number(1), lambda value: value < 2)
_KINDS = {
    0x01: _FLAG,
    EXPIRY: _Kind(_number(4)),
    0x03: _Kind(_text),
    RESPONSE_TOPIC: _Kind(_text, _is_topic),  # 3.3.2-14
    CORRELATION: _Kind(_binary),
    SESSION_EXPIRY: _Kind(_number(4)),
    0x12: _Kind(_text),
    SERVER_KEEPALIVE: _Kind(_number(2)),
    0x1C: _Kind(_text),
    REASON: _Kind(_text),
    RECEIVE_MAXIMUM: _Kind(_number(2), bool),
    ALIAS_MAXIMUM: _Kind(_number(2)),
    ALIAS: _Kind(_number(2)),
    MAXIMUM_QOS: _FLAG,
    RETAIN_AVAILABLE: _FLAG,
    USER: _Kind(_pair),
    SIZE_MAXIMUM: _Kind(_number(4), bool),
    0x28: _FLAG,
    0x29: _FLAG,
    0x2A: _FLAG,
}


def read_properties(data: bytes, at: int, end: int, allowed: frozenset[int]) -> dict[int, Any]:
    """Properties in `data[at:end]`, which they fill; user properties as a list of pairs.

    Raises
    ------
    PacketError
        One that is not `allowed` there, comes twice, has a value that it may not have, or is cut off.
    """
    found: dict[int, Any] = {}
    while at < end:
        number, at = read_varint(data, at, end)
        if number not in allowed:
            raise broken(f"property 0x{number:02x} does not belong there", 0x82)
        kind = _KINDS[number]
        value, at = kind.read(data, at, end)
        if not kind.allows(value):
            raise broken(f"property 0x{number:02x} has a value that it may not have", 0x82)
        if number == USER:  # the only one that may come twice
            if len(pairs := found.setdefault(USER, [])) < MAX_USER:
                pairs.append(value)
        elif number in found:
            raise broken(f"property 0x{number:02x} comes twice", 0x82)
        else:
            found[number] = value
    return found


def message_properties(found: dict[int, Any]) -> Properties:
    """What we take notice of in a message. Its alias we never allowed (3.1.2-26)."""
    if ALIAS in found:
        raise broken("a topic alias, for which there is no room", 0x94)
    return Properties(found.get(EXPIRY), found.get(RESPONSE_TOPIC), found.get(CORRELATION), tuple(found.get(USER, ())))


def varint(value: int) -> bytes:
    """`value` with as few bytes as it takes."""
    digits = bytearray()
    while value > 0x7F:
        digits.append(value & 0x7F | 0x80)
        value >>= 7
    digits.append(value)
    return bytes(digits)


def four_bytes(number: int, value: int) -> bytes:
    """Property `number` of four bytes."""
    return bytes([number]) + value.to_bytes(4)


def encode_properties(more: Properties) -> bytes:
    """Properties of a message that we publish, their length before them.

    Raises
    ------
    ValueError
        One that cannot be written; an expiry below 1 s, which would be over before it is sent.
    """
    parts = []
    if more.expiry_s is not None:
        if not 1 <= more.expiry_s < 1 << 32:
            raise ValueError("a message expires after 1 s at least")
        parts.append(four_bytes(EXPIRY, more.expiry_s))
    if more.response_topic is not None:
        parts.append(bytes([RESPONSE_TOPIC]) + topic_name(more.response_topic))
    if more.correlation is not None:
        parts.append(bytes([CORRELATION]) + binary(more.correlation))
    parts += [bytes([USER]) + text(name) + text(value) for name, value in more.user]
    body = b"".join(parts)
    return varint(len(body)) + body
