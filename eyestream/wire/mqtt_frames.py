"""What both versions of MQTT share on the wire: the frame around a packet, names, fields. Pure and bounded.

Sources: MQTT Version 3.1.1 (OASIS Standard, 29 October 2014) and MQTT Version 5.0 (OASIS Standard, 7 March 2019).
"""

import struct
from abc import ABC, abstractmethod
from functools import lru_cache

from eyestream.wire.mqtt_packets import MAX_PAYLOAD_KEPT, Connack, Packet, PacketError

__all__ = [
    "HEAD",
    "MAX_TEXT",
    "FrameDecoder",
    "binary",
    "filter_name",
    "framed",
    "text",
    "topic_name",
]

MAX_TEXT = 65_535
"""Bytes of a text or of binary data in a packet (1.5)."""

HEAD = struct.Struct("!H")
_MAX_REMAINING = 268_435_455


class FrameDecoder(ABC):
    """A broker's bytes to packets, CONNACK first and once; holds one unfinished packet at most."""

    most_kept = MAX_PAYLOAD_KEPT + 4 + MAX_TEXT
    """Bytes of a packet's body that are kept; what is past them is skipped as it comes."""

    def __init__(self) -> None:
        self._greeted = False
        self._held = bytearray()
        self._needed = 0
        self._skip = 0
        self._over = False

    def feed(self, data: bytes) -> list[Packet]:
        """Packets that `data`, any number of bytes, completes.

        Raises
        ------
        LinkError
            No packet of a broker; the decoder must not be used any more.
        """
        if self._over:
            return []
        if self._held:
            self._held += data
            if len(self._held) < self._needed:
                return []
            data = bytes(self._held)
            self._held.clear()
        packets: list[Packet] = []
        most_kept = self.most_kept
        at, size = 0, len(data)
        while True:
            if self._skip:
                passed = min(self._skip, size - at)
                self._skip -= passed
                at += passed
            if at + 1 < size and data[at + 1] < 0x80:
                body, end = at + 2, at + 2 + data[at + 1]
            else:
                body, end = self._frame(data, at)
            kept = end if end - body <= most_kept else body + most_kept
            if kept > size:
                break
            packet = self._packet(data, at, body, kept, end)
            if isinstance(packet, Connack) is self._greeted:  # something else before it, or a second one (3.2.0-1)
                raise self.broken("CONNACK is not the first packet, or comes again", 0x82)
            self._greeted = True
            packets.append(packet)
            if self._over:
                return packets
            self._skip = end - kept
            at = kept
        self._held += data[at:]
        self._needed = kept - at
        return packets

    def _frame(self, data: bytes, at: int) -> tuple[int, int]:
        """Where the body of the packet at `at` begins and ends; beyond `data` when that is not known yet."""
        body, length, shift = at + 1, 0, 0
        while body < len(data):
            digit = data[body]
            body += 1
            length |= (digit & 0x7F) << shift
            if digit < 0x80:
                return body, body + length
            shift += 7
            if shift > 21:
                raise self.broken("a length of more than four bytes")
        return body, max(body, len(data)) + 1

    @abstractmethod
    def _packet(self, data: bytes, at: int, body: int, kept: int, end: int) -> Packet:
        """The packet at `at`, whose body is `data[body:end]`, of which all before `kept` is there."""

    @abstractmethod
    def broken(self, what: str, code: int = 0x81) -> PacketError:
        """The error for `what` is wrong with a packet."""


def framed(head: int, *parts: bytes) -> bytes:
    """A packet: first byte, length, `parts`. Raises ValueError for one that is too long."""
    length = sum(map(len, parts))
    if length > _MAX_REMAINING:
        raise ValueError("longer than a packet may be")
    start = bytearray([head])
    while length > 0x7F:
        start.append(length & 0x7F | 0x80)
        length >>= 7
    start.append(length)
    return b"".join((start, *parts))


@lru_cache(maxsize=256)  # the same few again and again
def topic_name(name: str) -> bytes:
    """A topic to publish to, as a field. Raises ValueError for one that is none."""
    if not name or "+" in name or "#" in name:
        raise ValueError("a topic to publish to is not empty and has no wildcard")
    return text(name)


def filter_name(name: str) -> bytes:
    """A topic filter, as a field. Raises ValueError for one that is none."""
    *above, last = name.split("/")
    if not name or any("#" in level for level in above) or ("#" in last and last != "#"):  # 4.7.3-1, 4.7.1-2
        raise ValueError("a topic filter is not empty, and '#' is its last level or nowhere")
    if any("+" in level and level != "+" for level in (*above, last)):  # 4.7.1-3
        raise ValueError("in a topic filter '+' is a whole level")
    return text(name)


def text(words: str) -> bytes:
    """A text, as a field. Raises ValueError for one with a NUL, with a surrogate, or too long."""
    data = words.encode()
    if "\0" in words:
        raise ValueError("MQTT has no text with a NUL character")
    return binary(data)


def binary(data: bytes) -> bytes:
    """Bytes, as a field. Raises ValueError for too many."""
    if len(data) > MAX_TEXT:
        raise ValueError("longer than a field may be")
    return HEAD.pack(len(data)) + data
