"""Messages that a broker hands on: one PUBLISH packet in, one `Message` out. Pure.

Whoever publishes chooses the topic, the properties and the payload. A broker checks less of them than the standard
asks for, and keeps them for others where they are retained. So nothing that stands there is a fault of the broker: a
message that cannot be read is cut. It then has `TOO_LARGE` in the place of its payload, for which every reader refuses
and counts it, and no properties. It has no topic either where the topic cannot be read. The broker itself writes only
the length of the packet, its flags and the packet id, and is at fault over those.

The library would take time for each property that grows with the whole packet, and would end the link over many of
them. So it reads no messages. Here each byte of the properties is looked at once, and there are few.

Source: MQTT Version 5.0, OASIS Standard, 7 March 2019, sections 2.2.2 and 3.3; 3.1.1 has no properties.
"""

from eyestream.rim.mqtt.carrier import MAX_PROPERTIES_BYTES, broken
from eyestream.rim.mqtt.messages import NO_PROPERTIES, TOO_LARGE, Message, Properties, topic_bytes

_OFTEN = frozenset({0x0B, 0x26})
"""Properties that may stand more than once: the subscription identifier, and those of the user."""


def read_message(packet: bytes, *, five: bool, cut: bool = False) -> Message:
    """Read a PUBLISH packet at QoS 0 or 1, with the right length.

    Parameters
    ----------
    packet
        Whole, from its first byte; without its properties and payload when it is `cut`.
    five
        Whether it is of MQTT 5.
    cut
        Whether it was too large.

    Raises
    ------
    LinkError
        The packet ends before its topic or its packet id does, or has packet id 0: the broker wrote that.
    """
    at = 2
    while packet[at - 1] & 0x80:
        at += 1
    number, end = 0, at + 2 + int.from_bytes(packet[at : at + 2])
    topic = packet[at + 2 : end]
    if at_least_once := packet[0] & 0x06 != 0:
        number = int.from_bytes(packet[end : end + 2])
        end += 2
    if end > len(packet):
        raise broken("a message is cut off")
    if at_least_once and not number:
        raise broken("a message at QoS 1 without a packet id")
    retain = packet[0] & 0x01 != 0
    try:
        name = str(topic, "utf-8")
        topic_bytes(name)
    except ValueError:
        return Message("", TOO_LARGE, retain, number)
    if cut:
        return Message(name, TOO_LARGE, retain, number)
    try:
        more, start = _split(packet, end) if five else (NO_PROPERTIES, end)
    except ValueError:
        return Message(name, TOO_LARGE, retain, number)
    return Message(name, packet[start:], retain, number, more)


def _split(packet: bytes, at: int) -> tuple[Properties, int]:
    """Properties of a message, whose length stands at `at`, and where its payload begins."""
    length = _Fields(packet[at : at + 4])
    size = length.varying()
    start = at + length.at
    end = start + size
    if size > MAX_PROPERTIES_BYTES or end > len(packet):
        raise ValueError("more properties than are read")
    return (_properties(_Fields(packet[start:end])) if size else NO_PROPERTIES), end


class _Fields:
    """Fields that stand one after the other. Every method raises ValueError for what is none, or ends too early."""

    def __init__(self, data: bytes) -> None:
        self._data, self.at = data, 0

    @property
    def left(self) -> bool:
        """Whether there is more."""
        return self.at < len(self._data)

    def read(self, size: int) -> bytes:
        """So many bytes."""
        found = self._data[self.at : self.at + size]
        if len(found) < size:
            raise ValueError("cut off")
        self.at += size
        return found

    def number(self, size: int) -> int:
        """An integer of so many bytes."""
        return int.from_bytes(self.read(size))

    def varying(self) -> int:
        """An integer of one to four bytes."""
        value = 0
        for place in range(4):
            digit = self.number(1)
            value |= (digit & 0x7F) << 7 * place
            if digit < 0x80:
                return value
        raise ValueError("an integer of more than four bytes")

    def binary(self) -> bytes:
        """Bytes, after their number."""
        return self.read(self.number(2))

    def text(self) -> str:
        """UTF-8 without U+0000, which the standard forbids, and without U+FEFF, which nobody sees."""
        found = str(self.binary(), "utf-8")
        if "\0" in found or "\ufeff" in found:
            raise ValueError("a text with a character that is refused")
        return found

    def topic(self) -> str:
        """A text that one may publish to."""
        found = self.text()
        topic_bytes(found)
        return found


def _properties(fields: _Fields) -> Properties:
    """Read the properties that we use. Raises ValueError for one that no message has, or that stands twice."""
    expiry_s = None
    user: list[tuple[str, str]] = []
    known: set[int] = set()
    while fields.left:
        kind = fields.number(1)  # no property of the standard has a number of two bytes
        if kind in known and kind not in _OFTEN:
            raise ValueError("a property twice")
        known.add(kind)
        match kind:
            case 0x01:  # payload format indicator
                _check(fields.number(1) <= 1)
            case 0x02:
                expiry_s = fields.number(4)
            case 0x03:  # content type
                fields.text()
            case 0x08:  # response topic
                fields.topic()
            case 0x09:  # correlation data
                fields.binary()
            case 0x0B:  # subscription identifier
                _check(fields.varying() > 0)
            case 0x23:  # topic alias
                _check(fields.number(2) > 0)
            case 0x26:
                user.append((fields.text(), fields.text()))
            case _:
                raise ValueError("no property of a message")
    return Properties(expiry_s, tuple(user))


def _check(allowed: bool) -> None:
    if not allowed:
        raise ValueError("a value that the standard forbids")
