"""The least of MQTT 3.1.1 that a load generator needs, so that it is not what is measured: QoS 0, blocking."""

import socket
import struct
import threading
import time
from collections.abc import Iterable
from typing import BinaryIO

__all__ = ["Client"]


class Client:
    """Publishes at once, and notes when what it subscribed to arrives.

    Attributes
    ----------
    arrivals : (topic, monotonic nanoseconds) of every message received.
    payloads : what it carried.
    """

    def __init__(self, port: int, name: str) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=10)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket.sendall(_packet(0x10, _text("MQTT") + b"\x04\x02\x00\x00" + _text(name)))  # no keep-alive
        self._stream = self._socket.makefile("rb")
        if _read(self._stream)[1][1:] != b"\x00":
            raise ConnectionError("the broker refuses the connection")
        self._socket.settimeout(None)
        self.arrivals: list[tuple[str, int]] = []
        self.payloads: list[bytes] = []

    def subscribe(self, topics: Iterable[str]) -> None:
        """Subscribe, and read in a thread from now on."""
        for number, topic in enumerate(topics, start=1):
            self._socket.sendall(_packet(0x82, struct.pack("!H", number) + _text(topic) + b"\x00"))
            _read(self._stream)
        threading.Thread(target=self._receive, daemon=True).start()

    def publish(self, topic: str, payload: bytes) -> None:
        """Send a message at QoS 0."""
        self._socket.sendall(_packet(0x30, _text(topic) + payload))

    def wait(self, count: int, seconds: float) -> bool:
        """Wait until `count` messages have arrived, or time is over; whether they have."""
        end = time.monotonic() + seconds
        while len(self.arrivals) < count:
            if time.monotonic() > end:
                return False
            time.sleep(0.0001)
        return True

    def close(self) -> None:
        """Say goodbye."""
        self._socket.sendall(b"\xe0\x00")
        self._socket.close()

    def _receive(self) -> None:
        try:
            while True:
                kind, body = _read(self._stream)
                if kind >> 4 == 3:
                    now, length = time.monotonic_ns(), int.from_bytes(body[:2])
                    self.payloads.append(body[2 + length :])
                    self.arrivals.append((body[2 : 2 + length].decode(), now))
        except (OSError, ValueError, EOFError):
            return


def _text(words: str) -> bytes:
    return struct.pack("!H", len(words)) + words.encode()


def _packet(kind: int, body: bytes) -> bytes:
    length, head = len(body), bytearray([kind])
    while True:
        length, digit = divmod(length, 128)
        head.append(digit | 128 * (length > 0))
        if not length:
            return bytes(head) + body


def _read(stream: BinaryIO) -> tuple[int, bytes]:
    head = stream.read(1)
    if not head:
        raise EOFError
    length = shift = 0
    while True:
        digit = stream.read(1)[0]
        length |= (digit & 127) << shift
        shift += 7
        if digit < 128:
            return head[0], stream.read(length) or b""
