"""Reason codes of MQTT 5: what each means, in our words, and which a broker may give where.

Source: MQTT Version 5.0, OASIS Standard, 7 March 2019, section 2.4 and the tables of the packets.
"""

__all__ = [
    "CODES_OF_CONNACK",
    "CODES_OF_DISCONNECT",
    "CODES_OF_PUBACK",
    "CODES_OF_SUBACK",
    "OTHER_VERSION",
    "REASONS",
    "reason",
]

OTHER_VERSION = 0x84

REASONS = {
    0x10: "nobody subscribes to it",
    0x80: "unspecified error",
    0x81: "malformed packet",
    0x82: "protocol error",
    0x83: "implementation specific error",
    0x84: "it does not speak MQTT 5",
    0x85: "it refuses our client id",
    0x86: "wrong user name or password",
    0x87: "not authorised",
    0x88: "it is not available",
    0x89: "it is busy",
    0x8A: "we are banned",
    0x8B: "it shuts down",
    0x8C: "bad authentication method",
    0x8D: "it has not heard from us for too long",
    0x8E: "another client took our id over",
    0x8F: "topic filter not allowed",
    0x90: "topic name not allowed",
    0x91: "packet id in use",
    0x93: "more messages under way than it takes",
    0x94: "topic alias not allowed",
    0x95: "packet too large",
    0x96: "too many messages",
    0x97: "quota exceeded",
    0x98: "ended by its operator",
    0x99: "payload format not allowed",
    0x9A: "it keeps no retained messages",
    0x9B: "QoS not supported",
    0x9C: "it tells us to use another server",
    0x9D: "it has moved",
    0x9E: "no shared subscriptions",
    0x9F: "too many connections",
    0xA0: "longest time of a connection is over",
    0xA1: "no subscription identifiers",
    0xA2: "no subscriptions with wildcards",
}
"""Reason codes (section 2.4), in our words."""

CODES_OF_CONNACK = frozenset({0, *range(0x80, 0x8B), 0x8C, 0x90, 0x95, 0x97, *range(0x99, 0x9E), 0x9F})
CODES_OF_PUBACK = frozenset({0, 0x10, 0x80, 0x83, 0x87, 0x90, 0x91, 0x95, 0x97, 0x99})
"""With 0x95, which the standard's table lacks: mosquitto says so of what is above its message_size_limit."""
CODES_OF_SUBACK = frozenset({0, 1, 2, 0x80, 0x83, 0x87, 0x8F, 0x91, 0x97, 0x9E, 0xA1, 0xA2})
CODES_OF_DISCONNECT = frozenset({0, *range(0x80, 0x84), 0x87, 0x89, 0x8B, *range(0x8D, 0x91), *range(0x93, 0xA3)})


def reason(code: int, words: str) -> str:
    """What a reason code means, and what the broker says of it in its own words, made printable and short."""
    own = "".join(c for c in words[:200] if c.isprintable())
    return f"{REASONS.get(code, 'no reason')} (0x{code:02x})" + (f": {own}" if own else "")
