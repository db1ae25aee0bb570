"""A judge of what a client says: reads MQTT 3.1.1 with no code of the client's and names the statement that is broken.

It also answers as a broker does, when it is told to.
"""

from dataclasses import dataclass, field

__all__ = ["Judge", "ViolationError", "field_of", "must"]


class ViolationError(AssertionError):
    """A statement of MQTT 3.1.1, by its number."""

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
    clean: bool = True
    publishes: list[int] = field(default_factory=list)
    """Ids of what the client published and is not acknowledged."""
    subscribes: dict[int, int] = field(default_factory=dict)
    """Ids of SUBSCRIBE packets without an answer, and their number of filters."""
    owed: list[int] = field(default_factory=list)
    """Ids of what the client was sent at QoS 1 and has not acknowledged."""
    pings: int = 0
    topics: list[str] = field(default_factory=list)

    def hear(self, data: bytes) -> None:
        """Judge what the client says; any number of bytes."""
        self.held += data
        while (parts := _split(self.held)) is not None:
            head, body, self.held = parts
            must(not self.gone, "3.14.4-2")
            must(self.connected or head >> 4 == 1, "3.1.0-1")
            _KINDS.get(head >> 4, _no_kind)(self, head & 15, body)

    def connect(self, flags: int, body: bytes) -> None:
        must(not self.connected, "3.1.0-2")
        must(flags == 0, "2.2.2-1")
        name, body = field_of(body)
        must(name == b"MQTT", "3.1.2-1")
        must(body[0] == 4, "3.1.2-2")
        said, body = body[1], body[4:]
        will, qos, retain = said >> 2 & 1, said >> 3 & 3, said >> 5 & 1
        must(said & 1 == 0, "3.1.2-3")
        must(qos < 3, "3.1.2-14")
        must(bool(will) or (qos, retain) == (0, 0), "3.1.2-11")
        must(bool(said & 0x80) or not said & 0x40, "3.1.2-22")
        client_id, body = field_of(body)
        self.clean = bool(said & 2)
        must(bool(client_id) or self.clean, "3.1.3-7")
        _text(client_id)
        if will:
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
        again, qos = flags >> 3, flags >> 1 & 3
        must(qos < 3, "3.3.1-4")
        must(not again or qos > 0, "3.3.1-2")
        must(not again, "4.3.2-1")  # nothing was sent before on this connection
        topic, body = field_of(body, "3.3.2-1")
        _topic(topic)
        self.topics.append(topic.decode())
        if qos:
            self.publishes.append(self._new_id(body))

    def subscribe(self, flags: int, body: bytes) -> None:
        must(flags == 2, "3.8.1-1")
        packet_id, body = self._new_id(body), body[2:]
        must(body != b"", "3.8.3-3")
        count = 0
        while body:
            name, body = field_of(body, "3.8.3-1")
            _text(name)
            must(name != b"", "4.7.3-1")
            levels = name.split(b"/")
            must(all(b"#" not in level or level == b"#" for level in levels), "4.7.1-2")
            must(all(level != b"#" for level in levels[:-1]), "4.7.1-2")
            must(all(b"+" not in level or level == b"+" for level in levels), "4.7.1-3")
            must(body[:1] in (b"\0", b"\1", b"\2"), "3.8.3-4")
            body, count = body[1:], count + 1
        self.subscribes[packet_id] = count

    def puback(self, flags: int, body: bytes) -> None:
        must(flags == 0, "2.2.2-1")
        packet_id = int.from_bytes(body, "big")
        must(packet_id in self.owed, "2.3.1-6")
        must(packet_id == self.owed.pop(0), "4.6.0-2")

    def ping(self, flags: int, body: bytes) -> None:
        must((flags, body) == (0, b""), "2.2.2-1")
        self.pings += 1

    def disconnect(self, flags: int, body: bytes) -> None:
        must((flags, body) == (0, b""), "3.14.1-1")
        self.gone = True

    def _new_id(self, body: bytes) -> int:
        packet_id = int.from_bytes(body[:2], "big")
        must(len(body) >= 2 and packet_id != 0, "2.3.1-1")
        must(packet_id not in self.publishes and packet_id not in self.subscribes, "2.3.1-2")
        return packet_id


_KINDS = {
    1: Judge.connect,
    3: Judge.publish,
    4: Judge.puback,
    8: Judge.subscribe,
    12: Judge.ping,
    14: Judge.disconnect,
}


def _no_kind(judge: Judge, flags: int, body: bytes) -> None:
    raise ViolationError("4.8.0-1")


def _split(data: bytes) -> tuple[int, bytes, bytes] | None:
    """First byte and body of the first packet, and the rest; None: it is not whole."""
    size = 0
    for place, digit in enumerate(data[1:5]):
        size += (digit % 128) * 128**place
        if digit < 128:
            end = place + 2 + size
            return (data[0], data[place + 2 : end], data[end:]) if len(data) >= end else None
    must(len(data) < 5, "4.8.0-1")
    return None


def field_of(body: bytes, number: str = "3.1.3-1") -> tuple[bytes, bytes]:
    """A field with its length before it, and what follows."""
    end = 2 + int.from_bytes(body[:2], "big")
    must(len(body) >= max(end, 2), number)
    return body[2:end], body[end:]


def _text(words: bytes) -> None:
    try:
        words.decode()
    except UnicodeDecodeError:
        raise ViolationError("1.5.3-1") from None
    must(b"\0" not in words, "1.5.3-2")


def _topic(name: bytes) -> None:
    _text(name)
    must(name != b"", "4.7.3-1")
    must(b"+" not in name and b"#" not in name, "3.3.2-2")
