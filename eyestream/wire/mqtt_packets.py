"""The packets of both versions of MQTT, as values.

Sources: MQTT Version 3.1.1 (OASIS Standard, 29 October 2014) and MQTT Version 5.0 (OASIS Standard, 7 March 2019).
"""

from typing import NamedTuple

from eyestream.errors import LinkError
from eyestream.wire.envelope import MAX_RELEASE_BYTES

__all__ = [
    "MAX_PAYLOAD_KEPT",
    "NO_PROPERTIES",
    "PINGREQ",
    "Connack",
    "Disconnect",
    "Limits",
    "Message",
    "Packet",
    "PacketError",
    "Pingresp",
    "Properties",
    "Puback",
    "Suback",
    "Will",
]

MAX_PAYLOAD_KEPT = MAX_RELEASE_BYTES + 1
"""Bytes of a payload that are kept: one more than any message of ours may have."""

PINGREQ = b"\xc0\x00"


class PacketError(LinkError):
    """What a broker may not send; `code` is the word of MQTT 5 for it: 0x81 malformed, 0x82 against the protocol."""

    def __init__(self, words: str, code: int = 0x81) -> None:
        super().__init__(words)
        self.code = code


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
    """One received PUBLISH. `packet_id` is 0 at QoS 0; else it asks for an acknowledgement."""

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


class Connack(NamedTuple):
    """The answer to CONNECT; `code` 0: accepted. `resumed`: the broker has the session; `words`: its reason."""

    code: int
    resumed: bool = False
    limits: Limits = Limits()
    words: str = ""


class Suback(NamedTuple):
    """The answer to SUBSCRIBE: whether each topic filter is granted, and in MQTT 5 with which code."""

    packet_id: int
    granted: tuple[bool, ...]
    codes: tuple[int, ...] = ()
    words: str = ""


class Puback(NamedTuple):
    """The broker has what we published under `packet_id`; or refuses it: `code` is 0x80 or more."""

    packet_id: int
    code: int = 0
    words: str = ""


class Pingresp(NamedTuple):
    """The broker is there."""


class Disconnect(NamedTuple):
    """The broker ends the link, and says why."""

    code: int
    words: str = ""


class Will(NamedTuple):
    """What the broker publishes, retained, at QoS 1, when the link is lost without a goodbye.

    `delay_s` later in MQTT 5, unless we are back by then; at once in 3.1.1.
    """

    topic: str
    payload: bytes
    delay_s: int = 0


Packet = Message | Connack | Suback | Puback | Pingresp | Disconnect
