"""The least of MQTT 3.1.1 on a plain socket: a tracker that sends on time, an application with the kernel's times."""

import socket
import struct
import threading
import time
from dataclasses import dataclass

__all__ = ["Heard", "Listener", "Sender"]

_TIMESTAMPS = 35
"""SO_TIMESTAMPNS of Linux: the kernel says when bytes came in."""


@dataclass(frozen=True)
class Heard:
    """A message, when it came on the monotonic clock in seconds, and the bytes of its packet."""

    at: float
    topic: str
    payload: bytes
    size: int


class _Connection:
    def __init__(self, port: int, name: str) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket.sendall(_packet(0x10, _text("MQTT") + b"\x04\x02\x00\x00" + _text(name)))
        assert self._socket.recv(4, socket.MSG_WAITALL)[3] == 0, "the broker does not want us"

    def close(self) -> None:
        """Hang up."""
        self._socket.shutdown(socket.SHUT_RDWR)


class Sender(_Connection):
    """A tracker."""

    def send(self, topic: str, payload: bytes) -> None:
        """Publish at QoS 0, now."""
        self._socket.sendall(_packet(0x30, _text(topic) + payload))


class Listener(_Connection):
    """An application that hears everything but raw data; `heard` grows while it lives."""

    def __init__(self, port: int, filters: list[str]) -> None:
        super().__init__(port, "application")
        self._socket.setsockopt(socket.SOL_SOCKET, _TIMESTAMPS, 1)
        self.heard: list[Heard] = []
        body = b"\x00\x01" + b"".join(_text(name) + b"\x00" for name in filters)
        self._socket.sendall(_packet(0x82, body))
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        held = b""
        while True:
            data, more, _, _ = self._socket.recvmsg(1 << 16, 64)
            if not data:
                return
            between = time.clock_gettime(time.CLOCK_MONOTONIC) - time.clock_gettime(time.CLOCK_REALTIME)
            at = time.clock_gettime(time.CLOCK_MONOTONIC)
            for _, kind, stamp in more:
                if kind == _TIMESTAMPS:
                    seconds, nanoseconds = struct.unpack("qq", stamp)
                    at = seconds + nanoseconds / 1e9 + between
            held += data
            while (packet := _first(held)) is not None:
                head, body, size = packet
                held = held[size:]
                if head >> 4 == 3:
                    length = int.from_bytes(body[:2])
                    self.heard.append(Heard(at, body[2 : 2 + length].decode(), body[2 + length :], size))


def _text(text: str) -> bytes:
    return len(text.encode()).to_bytes(2) + text.encode()


def _packet(head: int, body: bytes) -> bytes:
    length, left = b"", len(body)
    while True:
        left, digit = left >> 7, left & 0x7F
        length += bytes([digit | 0x80 * (left > 0)])
        if not left:
            return bytes([head]) + length + body


def _first(data: bytes) -> tuple[int, bytes, int] | None:
    """Head, body and size of the first packet; None: it is not whole."""
    length = 0
    for place, digit in enumerate(data[1:5]):
        length |= (digit & 0x7F) << 7 * place
        if digit < 0x80:
            end = 2 + place + length
            return (data[0], data[2 + place : end], end) if len(data) >= end else None
    return None
