"""Between our words and paho's: properties, limits, reasons."""

from functools import lru_cache

from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties as PahoProperties
from paho.mqtt.reasoncodes import ReasonCode

from eyestream.rim.mqtt.messages import MAX_TEXT_BYTES, NO_PROPERTIES, Limits, Properties, check_text, topic_bytes

__all__ = ["heard_limits", "properties", "reason", "said_properties"]

ReasonCode.names[0x95]["Packet too large"].append(PacketTypes.PUBACK)
"""mosquitto answers so to what is above its message_size_limit. The standard's table of PUBACK (3.4.2.1) lacks it, and
paho would take the answer for a malformed packet: the link would be lost over each such message, again and again."""


def properties(kind: int, **values: object) -> PahoProperties:
    """Properties of a packet, in paho's words; `kind` is one of its `PacketTypes`."""
    made = PahoProperties(kind)  # type: ignore[no-untyped-call]
    for name, value in values.items():
        setattr(made, name, value)
    return made


@lru_cache(maxsize=256)  # a stream's are the same second after second
def said_properties(more: Properties) -> tuple[PahoProperties | None, int]:
    """Properties of a message that we publish, and how many bytes they take; None for none.

    Raises
    ------
    ValueError
        One that cannot be written; an expiry below 1 s, which would be over before it is sent.
    """
    if more == NO_PROPERTIES:
        return None, 1
    values: dict[str, object] = {}
    if more.expiry_s is not None:
        if not 1 <= more.expiry_s < 1 << 32:
            raise ValueError("a message expires after 1 s at least")
        values["MessageExpiryInterval"] = more.expiry_s
    if more.response_topic is not None:
        topic_bytes(more.response_topic)
        values["ResponseTopic"] = more.response_topic
    if more.correlation is not None:
        if len(more.correlation) > MAX_TEXT_BYTES:
            raise ValueError("longer than a field may be")
        values["CorrelationData"] = more.correlation
    if more.user:
        for words in (text for pair in more.user for text in pair):
            check_text(words)
        values["UserProperty"] = list(more.user)
    said = properties(PacketTypes.PUBLISH, **values)
    return said, len(said.pack())  # type: ignore[no-untyped-call]


def heard_limits(said: PahoProperties | None) -> Limits:
    """What a broker says in its greeting that it takes; in 3.1.1 it says nothing."""
    known = Limits()
    return Limits(
        receive_maximum=getattr(said, "ReceiveMaximum", known.receive_maximum),
        packet_bytes=getattr(said, "MaximumPacketSize", known.packet_bytes),
        qos_1=getattr(said, "MaximumQoS", 1) > 0,
        retain=getattr(said, "RetainAvailable", 1) > 0,
        keepalive_s=getattr(said, "ServerKeepAlive", None),
    )


def reason(code: ReasonCode, said: PahoProperties | None, *, five: bool) -> str:
    """What a reason code means, and what the broker says of it in its own words, made printable and short.

    3.1.1 has no numbers that an operator could look up, and no words.
    """
    if not five:
        return str(code)
    own = "".join(c for c in getattr(said, "ReasonString", "")[:200] if c.isprintable())
    return f"{code} (0x{code.value:02x})" + (f": {own}" if own else "")
