"""How a link begins and ends in the words of MQTT, and what stands between our words and paho's."""

from functools import lru_cache
from typing import NamedTuple

from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties as PahoProperties
from paho.mqtt.reasoncodes import ReasonCode

from eyestream.errors import LinkError
from eyestream.rim.mqtt.carrier import CONNACK, Outgoing, Paho, broken
from eyestream.rim.mqtt.messages import MAX_TEXT_BYTES, NO_PROPERTIES, Limits, Properties, Will, check_text, topic_bytes

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
def paho_properties(more: Properties) -> tuple[PahoProperties | None, int]:
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
    if more.user:
        for words in (text for pair in more.user for text in pair):
            check_text(words)
        values["UserProperty"] = list(more.user)
    ours = properties(PacketTypes.PUBLISH, **values)
    return ours, len(ours.pack())  # type: ignore[no-untyped-call]


def limits_of(theirs: PahoProperties | None) -> Limits:
    """Limits that a broker states in its greeting; in 3.1.1 it states none."""
    known = Limits()
    return Limits(
        receive_maximum=getattr(theirs, "ReceiveMaximum", known.receive_maximum),
        packet_bytes=getattr(theirs, "MaximumPacketSize", known.packet_bytes),
        qos_1=getattr(theirs, "MaximumQoS", 1) > 0,
        retain=getattr(theirs, "RetainAvailable", 1) > 0,
        keepalive_s=getattr(theirs, "ServerKeepAlive", None),
    )


def reason(code: ReasonCode, theirs: PahoProperties | None, *, five: bool) -> str:
    """Meaning of a reason code, and the broker's own words on it, made printable and short.

    3.1.1 has no numbers that an operator could look up, and no words.
    """
    if not five:
        return str(code)
    own = "".join(c for c in getattr(theirs, "ReasonString", "")[:200] if c.isprintable())
    return f"{code} (0x{code.value:02x})" + (f": {own}" if own else "")


OTHER_VERSION = 0x84
"""Reason code: unsupported protocol version."""

_FOR_EVER = 0xFFFF_FFFF
"""Expiry of a session that does not end by itself (3.1.2.11.2)."""

_WITH_WILL = 0x04
"""Reason code of a goodbye that does not take back the last will."""

_KEPT = {1: "it does not speak MQTT 3.1.1", 2: "it refuses our client id"}
"""Codes of CONNACK in 3.1.1 (3.2.2.3) after which paho would connect again in another way, and says nothing."""


class Greeting(NamedTuple):
    """Our part of a greeting; the fields are those of `eyestream.rim.mqtt.transport.connect`."""

    client_id: str | None
    keepalive_s: int
    clean_session: bool
    will: Will | None
    outgoing: Outgoing
    resume: bool

    @property
    def will_delay_s(self) -> int:
        """So long a session must live on in MQTT 5 for its will to wait (3.1.3.2.2)."""
        return 0 if self.will is None else self.will.delay_s

    @property
    def clean_start(self) -> bool:
        """Whether the broker shall forget an earlier session."""
        return self.clean_session and not self.resume


class OtherVersionError(LinkError):
    """The broker may speak 3.1.1."""


class HungUpError(OtherVersionError):
    """The broker hung up before it answered: it may not know what to answer to MQTT 5."""


def greet(paho: Paho, greeting: Greeting, username: str | None, password: str | None) -> None:
    """Send CONNECT. Raises ValueError for what cannot be written."""
    for words in (greeting.client_id, username, password):
        check_text(words or "")
    if password is not None and username is None:
        raise ValueError("a password needs a user name")  # 3.1.2-22
    if username is not None:
        paho.username_pw_set(username, password)
    if (will := greeting.will) is not None:
        topic_bytes(will.topic)
        if len(will.payload) > MAX_TEXT_BYTES:
            raise ValueError("longer than a field may be")
        delay = paho.five and will.delay_s
        more = properties(PacketTypes.WILLMESSAGE, WillDelayInterval=delay) if delay else None
        paho.will_set(will.topic, will.payload, 1, True, more)
    if not paho.five:
        paho.connect("carrier", keepalive=greeting.keepalive_s)
        return
    session_s = greeting.will_delay_s if greeting.clean_session else _FOR_EVER
    kept = properties(PacketTypes.CONNECT, SessionExpiryInterval=session_s) if session_s else None
    paho.connect("carrier", keepalive=greeting.keepalive_s, clean_start=greeting.clean_start, properties=kept)


def check_first_packet(packet: bytes, *, five: bool) -> None:
    """Raise for a first packet of a broker that is no answer for paho."""
    if packet[0] != CONNACK:
        raise broken("something comes before CONNACK")
    if len(packet) != 4:
        return
    if five:  # in the form of 3.1.1
        raise OtherVersionError("it does not speak MQTT 5")
    if why := _KEPT.get(packet[3]):
        raise LinkError(why)


def disconnect(paho: Paho, greeting: Greeting, *, in_order: bool) -> None:
    """Say goodbye before the link is closed; nothing, in 3.1.1, where the last will shall be said.

    A will that the broker would delay we say ourselves: that the link is lost is no question any more.
    """
    will = greeting.will
    forget = None
    if paho.five and greeting.will_delay_s:  # the session, which waits with the will
        forget = properties(PacketTypes.DISCONNECT, SessionExpiryInterval=0)
    if in_order or will is None:
        paho.disconnect(properties=forget)
    elif paho.five and not will.delay_s:
        paho.disconnect(ReasonCode(PacketTypes.DISCONNECT, identifier=_WITH_WILL))
    elif paho.five:
        paho.publish(will.topic, will.payload, 0, True)
        paho.disconnect(properties=forget)
