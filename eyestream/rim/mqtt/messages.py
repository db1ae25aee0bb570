"""What a link carries, as values: messages, their properties, the last will, what a broker takes."""

from typing import NamedTuple

from eyestream.wire.envelope import MAX_RELEASE_BYTES

__all__ = ["NO_PROPERTIES", "TOO_LARGE", "Limits", "Message", "Properties", "Will"]

TOO_LARGE = bytes(MAX_RELEASE_BYTES + 1)
"""In the place of a payload that is longer than any of ours: every reader refuses it for its size."""


class Properties(NamedTuple):
    """What MQTT 5 says of a message beside topic and payload; 3.1.1 has no word for any of it.

    `expiry_s` seconds from now the broker forgets it. `response_topic` and `correlation` make it a request, or with
    `correlation` alone the answer to one. `user` are pairs of texts.
    """

    expiry_s: int | None = None
    response_topic: str | None = None
    correlation: bytes | None = None
    user: tuple[tuple[str, str], ...] = ()


NO_PROPERTIES = Properties()


class Message(NamedTuple):
    """One received message. `packet_id` is 0 at QoS 0; else the client acknowledges it after it was delivered."""

    topic: str
    payload: bytes
    retain: bool
    packet_id: int = 0
    more: Properties = NO_PROPERTIES


class Limits(NamedTuple):
    """What a broker takes: messages at QoS 1 under way, bytes of a packet, QoS 1, retained messages; its keep-alive."""

    receive_maximum: int = 65_535
    packet_bytes: int = 268_435_460
    qos_1: bool = True
    retain: bool = True
    keepalive_s: int | None = None


class Will(NamedTuple):
    """What the broker publishes, retained, at QoS 1, when the link is lost without a goodbye.

    `delay_s` later in MQTT 5, unless we are back by then; at once in 3.1.1.
    """

    topic: str
    payload: bytes
    delay_s: int = 0
