"""A judge of what a client says in MQTT 5: it has no code of the client's, and names the statement that is broken."""

from dataclasses import dataclass, field

__all__ = ["Judge", "ViolationError"]

_FOUR, _TWO, _BYTE, _TEXT, _BINARY, _PAIR = "four", "two", "byte", "text", "binary", "pair"
_FORMS = {
    0x01: _BYTE, 0x02: _FOUR, 0x03: _TEXT, 0x08: _TEXT, 0x09: _BINARY, 0x11: _FOUR, 0x17: _BYTE, 0x18: _FOUR,
    0x19: _BYTE, 0x1F: _TEXT, 0x21: _TWO, 0x22: _TWO, 0x23: _TWO, 0x26: _PAIR, 0x27: _FOUR,
}  # fmt: skip
_SIZES = {_FOUR: 4, _TWO: 2, _BYTE: 1}
_OF = {
    "connect": {0x11, 0x17, 0x19, 0x21, 0x22, 0x26, 0x27},
    "will": {0x01, 0x02, 0x03, 0x08, 0x09, 0x18, 0x26},
    "publish": {0x01, 0x02, 0x03, 0x08, 0x09, 0x23, 0x26},
    "subscribe": {0x26},
    "puback": {0x1F, 0x26},
    "disconnect": {0x11, 0x1F, 0x26},
}


class ViolationError(AssertionError):
    """A statement of MQTT 5, by its number."""

    def __init__(self, number: str) -> None:
        super().__init__(f"MQTT-{number} is violated")
        self.number = number


def must(holds: bool, number: str) -> None:
    if not holds:
        raise ViolationError(number)


@dataclass
class Judge:
    """What a broker knows of one connection."""

    held: bytes = b""
    connected: bool = False
    gone: bool = False
    session_s: int = 0
    receive_maximum: int = 65_535
    packet_bytes: int = 1 << 28
    retain: bool = True
    resumed: dict[int, bytes] = field(default_factory=dict)
    """Bodies that were under way when an earlier link of the session was lost; they come first, in this order."""
    publishes: list[int] = field(default_factory=list)
    subscribes: dict[int, int] = field(default_factory=dict)
    owed: list[int] = field(default_factory=list)
    pings: int = 0
    bodies: dict[int, bytes] = field(default_factory=dict)
    """Of the messages under way, by packet id."""

    def hear(self, data: bytes) -> None:
        """Judge what the client says; any number of bytes."""
        self.held += data
        while (parts := _split(self.held)) is not None:
            size = len(self.held)
            head, body, self.held = parts
            must(not self.gone, "3.14.4-1")
            must(self.connected or head >> 4 == 1, "3.1.0-1")
            must(size - len(self.held) <= self.packet_bytes, "3.2.2-15")
            kinds = {1: self.connect, 3: self.publish, 4: self.puback, 8: self.subscribe}
            kinds |= {12: self.ping, 14: self.disconnect}
            must(head >> 4 in kinds, "4.13.1-1")
            kinds[head >> 4](head & 15, body)

    def connect(self, flags: int, body: bytes) -> None:
        must(not self.connected, "3.1.0-2")
        must(flags == 0, "2.1.3-1")
        name, body = field_of(body)
        must(name == b"MQTT" and body[0] == 5, "3.1.2-1")
        said, body = body[1], body[4:]
        will, qos, retain = said >> 2 & 1, said >> 3 & 3, said >> 5 & 1
        must(said & 1 == 0, "3.1.2-3")
        must(qos < 3, "3.1.2-12")
        must(bool(will) or qos == 0, "3.1.2-11")
        must(bool(will) or retain == 0, "3.1.2-13")
        found, body = _properties(body, "connect")
        self.session_s = int.from_bytes(found.get(0x11, b""), "big")
        client_id, body = field_of(body)
        _text(client_id)
        if will:
            _, body = _properties(body, "will")
            topic, body = field_of(body, "3.1.2-9")
            _topic(topic)
            _, body = field_of(body, "3.1.2-9")
        for present in (said & 0x80, said & 0x40):
            if present:
                word, body = field_of(body, "3.1.3-1")
                _text(word)
        must(body == b"", "3.1.3-1")
        self.connected = True

    def publish(self, flags: int, body: bytes) -> None:
        again, qos, whole = flags >> 3, flags >> 1 & 3, body
        must(qos < 3, "3.3.1-4")
        must(not again or qos > 0, "3.3.1-2")
        must(self.retain or not flags & 1, "3.2.2-14")
        topic, body = field_of(body, "3.3.2-1")
        _topic(topic)
        if qos:
            number = int.from_bytes(body[:2], "big")
            if self.resumed:
                first = next(iter(self.resumed))
                must(number in self.resumed and self.resumed[number] == whole, "4.4.0-1")
                must(number == first, "4.6.0-1")
                must(bool(again), "3.3.1-1")
                del self.resumed[number]
            else:
                must(not again, "4.3.2-2")
            self.publishes.append(self._new_id(body))
            self.bodies[number] = whole
            must(len(self.publishes) <= self.receive_maximum, "3.3.4-7")
            body = body[2:]
        found, _ = _properties(body, "publish")
        must(0x23 not in found, "3.2.2-18")
        if 0x08 in found:
            must(b"+" not in found[0x08] and b"#" not in found[0x08], "3.3.2-14")

    def subscribe(self, flags: int, body: bytes) -> None:
        must(flags == 2, "3.8.1-1")
        number, body = self._new_id(body), body[2:]
        _, body = _properties(body, "subscribe")
        must(body != b"", "3.8.3-2")
        count = 0
        while body:
            name, body = field_of(body, "3.8.3-1")
            _text(name)
            must(name != b"", "4.7.3-1")
            levels = name.split(b"/")
            must(all(b"#" not in level or level == b"#" for level in levels), "4.7.1-1")
            must(all(level != b"#" for level in levels[:-1]), "4.7.1-1")
            must(all(b"+" not in level or level == b"+" for level in levels), "4.7.1-2")
            must(bool(body) and body[0] & 0xC0 == 0 and body[0] & 3 < 3, "3.8.3-5")
            body, count = body[1:], count + 1
        self.subscribes[number] = count

    def puback(self, flags: int, body: bytes) -> None:
        must(flags == 0, "2.1.3-1")
        number = int.from_bytes(body[:2], "big")
        must(number in self.owed, "2.2.1-5")
        must(number == self.owed.pop(0), "4.6.0-2")
        must(len(body) == 2 or body[2] in {0, 0x10, 0x80, 0x83, 0x87, 0x90, 0x91, 0x97, 0x99}, "3.4.2-1")

    def ping(self, flags: int, body: bytes) -> None:
        must((flags, body) == (0, b""), "2.1.3-1")
        self.pings += 1

    def disconnect(self, flags: int, body: bytes) -> None:
        must(flags == 0, "3.14.1-1")
        must(not body or body[0] in {0, 4, *range(0x80, 0x84), 0x90, *range(0x93, 0x9A)}, "3.14.2-1")
        if len(body) > 1:
            _, rest = _properties(body[1:], "disconnect")
            must(rest == b"", "2.2.2-1")
        self.gone = True

    def acknowledge(self, number: int) -> bytes:
        """PUBACK of one that is under way."""
        self.publishes.remove(number)
        del self.bodies[number]
        return b"\x40\x02" + number.to_bytes(2, "big")

    def _new_id(self, body: bytes) -> int:
        number = int.from_bytes(body[:2], "big")
        must(len(body) >= 2 and number != 0, "2.2.1-3")
        must(number not in self.publishes and number not in self.subscribes, "2.2.1-3")
        return number


def _split(data: bytes) -> tuple[int, bytes, bytes] | None:
    """First byte and body of the first packet, and the rest; None: it is not whole."""
    if len(data) < 2:
        return None
    size, start = _length(data[1:])
    end = 1 + start + size
    return (data[0], data[1 + start : end], data[end:]) if start and len(data) >= end else None


def _length(data: bytes) -> tuple[int, int]:
    """A number of variable length, and how many bytes it has; 0: it is not whole."""
    size = 0
    for place, digit in enumerate(data[:4]):
        size += (digit % 128) * 128**place
        if digit < 128:
            must(place == 0 or digit > 0, "1.5.5-1")
            return size, place + 1
    must(len(data) < 4, "1.5.5-1")
    return 0, 0


def _properties(body: bytes, where: str) -> tuple[dict[int, bytes], bytes]:
    """Properties, as bytes, by number; and what is behind them."""
    size, start = _length(body)
    must(start > 0 and len(body) >= start + size, "2.2.2-1")
    section, rest = body[start : start + size], body[start + size :]
    found: dict[int, bytes] = {}
    while section:
        number, section = section[0], section[1:]
        must(number in _OF[where], "2.2.2-1")
        must(number not in found or number == 0x26, "2.2.2-1")
        form = _FORMS[number]
        if form in _SIZES:
            value, section = section[: _SIZES[form]], section[_SIZES[form] :]
            must(len(value) == _SIZES[form], "2.2.2-1")
        else:
            value, section = field_of(section, "2.2.2-1")
            if form != _BINARY:
                _text(value)
            if form == _PAIR:
                second, section = field_of(section, "1.5.7-1")
                _text(second)
        found[number] = value
    return found, rest


def _text(words: bytes) -> None:
    try:
        words.decode()
    except UnicodeDecodeError:
        raise ViolationError("1.5.4-1") from None
    must(b"\0" not in words, "1.5.4-2")


def _topic(name: bytes) -> None:
    _text(name)
    must(name != b"", "4.7.3-1")
    must(b"+" not in name and b"#" not in name, "3.3.2-2")


def field_of(body: bytes, number: str = "3.1.3-1") -> tuple[bytes, bytes]:
    """A field with its length before it, and what follows."""
    end = 2 + int.from_bytes(body[:2], "big")
    must(len(body) >= max(end, 2), number)
    return body[2:end], body[end:]
