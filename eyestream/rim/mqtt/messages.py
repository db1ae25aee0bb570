"""Values that a link carries: messages, their properties, the last will, a broker's limits.

Texts that MQTT has no room for are refused here, before they are sent: the library sends some of them. Source: MQTT
Version 5.0, OASIS Standard, 7 March 2019, sections 1.5.4 and 4.7; 3.1.1 says the same.
"""

from functools import lru_cache
from typing import NamedTuple

from eyestream.wire.envelope import MAX_RELEASE_BYTES

TOO_LARGE = bytes(MAX_RELEASE_BYTES + 1)
"""The payload of a message that is cut: it was too large, or its properties or its topic could not be read.

It is longer than any of ours. So every reader refuses it for its size, and counts it as ``oversize``."""


class Properties(NamedTuple):
    """Properties of a message in MQTT 5, beside topic and payload; 3.1.1 has no word for any of them.

    `expiry_s` seconds from now the broker forgets it. `user` are pairs of texts.
    """

    expiry_s: int | None = None
    user: tuple[tuple[str, str], ...] = ()


NO_PROPERTIES = Properties()


class Message(NamedTuple):
    """One received message. `packet_id` is 0 at QoS 0; else the client acknowledges it after it was delivered.

    One that is cut has `TOO_LARGE` for its payload and no properties. `topic` is empty where it could not be read.
    """

    topic: str
    payload: bytes
    retain: bool
    packet_id: int = 0
    more: Properties = NO_PROPERTIES


class Limits(NamedTuple):
    """Limits of a broker: messages at QoS 1 under way, bytes of a packet, QoS 1, retained messages; its keep-alive."""

    receive_maximum: int = 65_535
    packet_bytes: int = 268_435_460
    qos_1: bool = True
    retain: bool = True
    keepalive_s: int | None = None


class Will(NamedTuple):
    """Message that the broker publishes, retained, at QoS 1, when the link is lost without a goodbye.

    `delay_s` later in MQTT 5, unless we are back by then; at once in 3.1.1.
    """

    topic: str
    payload: bytes
    delay_s: int = 0


MAX_TEXT_BYTES = 65_535


def check_text(words: str) -> int:
    """How many bytes a text has. Raises ValueError for one with a NUL, with a surrogate, or too long."""
    size = len(words.encode())
    if "\0" in words:
        raise ValueError("MQTT has no text with a NUL character")
    if size > MAX_TEXT_BYTES:
        raise ValueError("longer than a field may be")
    return size


@lru_cache(maxsize=256)  # the same few again and again
def topic_bytes(name: str) -> int:
    """How many bytes a topic to publish to has. Raises ValueError for one that is none.

    >>> topic_bytes("eyestream/v1/ä")
    15
    """
    if not name or "+" in name or "#" in name:
        raise ValueError("a topic to publish to is not empty and has no wildcard")
    return check_text(name)
