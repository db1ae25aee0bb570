"""The least of MQTT 3.1.1 on a plain socket: a tracker that sends on time, an application with the kernel's times."""

import contextlib
import json
import socket
import ssl
import struct
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

__all__ = ["Frame", "Heard", "Listener", "Sender", "Visitor", "received", "stamped"]

_TIMESTAMPS = 35
"""SO_TIMESTAMPNS of Linux: the kernel says when bytes came in."""


Frame = tuple[float, dict[str, Any]]
"""When a frame of the monitor's page came, and what it says."""


@dataclass(frozen=True)
class Heard:
    """A message, when it came on the monotonic clock in seconds, and the bytes of its packet."""

    at: float
    topic: str
    payload: bytes
    size: int


def stamped(one: socket.socket) -> None:
    """Send at once, and have the kernel say when bytes came in."""
    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    one.setsockopt(socket.SOL_SOCKET, _TIMESTAMPS, 1)


def received(one: socket.socket) -> tuple[float, bytes]:
    """Some bytes, and when they came on the monotonic clock in seconds; no bytes: the end."""
    data, more, _, _ = one.recvmsg(1 << 16, 64)
    between = time.clock_gettime(time.CLOCK_MONOTONIC) - time.clock_gettime(time.CLOCK_REALTIME)
    at = time.clock_gettime(time.CLOCK_MONOTONIC)
    for _, kind, stamp in more:
        if kind == _TIMESTAMPS:
            seconds, nanoseconds = struct.unpack("qq", stamp)
            at = seconds + nanoseconds / 1e9 + between
    return at, data


class _Tls:
    """TLS beside a socket, so that the times of the kernel are those of the bytes as they came."""

    def __init__(self, one: socket.socket, authority: Path) -> None:
        self._socket, self._in, self._out = one, ssl.MemoryBIO(), ssl.MemoryBIO()
        context = ssl.create_default_context(cafile=authority)
        self._tls = context.wrap_bio(self._in, self._out, server_hostname="localhost")
        while True:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                self._flush()
                self._in.write(received(one)[1])
            else:
                self._flush()
                return

    def _flush(self) -> None:
        self._socket.sendall(self._out.read())

    def sealed(self, data: bytes) -> bytes:
        self._tls.write(data)
        return self._out.read()

    def opened(self, data: bytes) -> bytes:
        """What is readable after `data` came."""
        self._in.write(data)
        found = b""
        with contextlib.suppress(ssl.SSLWantReadError):
            while more := self._tls.read(1 << 16):
                found += more
        return found


class _Connection:
    def __init__(self, port: int, name: str, authority: Path | None = None) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port))
        stamped(self._socket)
        self._tls = None if authority is None else _Tls(self._socket, authority)
        self._say(_packet(0x10, _text("MQTT") + b"\x04\x02\x00\x00" + _text(name)))
        answer = b""
        while len(answer) < 4:  # under TLS something else may come first
            answer += self._hear()[1]
        assert answer[3] == 0, "the broker does not want us"

    def _say(self, data: bytes) -> None:
        self._socket.sendall(data if self._tls is None else self._tls.sealed(data))

    def _hear(self) -> tuple[float, bytes]:
        """Bytes and their time; under TLS there may be none, at the end OSError is raised."""
        at, data = received(self._socket)
        if not data:
            raise ConnectionResetError
        return at, data if self._tls is None else self._tls.opened(data)

    def close(self) -> None:
        """Hang up."""
        self._socket.shutdown(socket.SHUT_RDWR)


class Sender(_Connection):
    """A tracker."""

    def send(self, topic: str, payload: bytes) -> None:
        """Publish at QoS 0, now."""
        self._say(_packet(0x30, _text(topic) + payload))


class Listener(_Connection):
    """An application that hears everything but raw data; `heard` grows while it lives."""

    def __init__(self, port: int, filters: list[str], authority: Path | None = None) -> None:
        super().__init__(port, "application", authority)
        self.heard: list[Heard] = []
        body = b"\x00\x01" + b"".join(_text(name) + b"\x00" for name in filters)
        self._say(_packet(0x82, body))
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        held = b""
        while True:
            try:
                at, data = self._hear()
            except OSError:
                return
            held += data
            while (packet := _first(held)) is not None:
                head, body, size = packet
                held = held[size:]
                if head >> 4 == 3:
                    length = int.from_bytes(body[:2])
                    self.heard.append(Heard(at, body[2 : 2 + length].decode(), body[2 + length :], size))


class Visitor:
    """A browser at the monitor's page; `frames` of chunks grows, each with when it came."""

    def __init__(self, address: str) -> None:
        place = urlsplit(address)
        self._socket = socket.create_connection(("127.0.0.1", place.port or 0))
        stamped(self._socket)
        self._socket.sendall(f"GET {place.path}events HTTP/1.1\r\nHost: {place.netloc}\r\n\r\n".encode())
        self.frames: list[Frame] = []
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        held = b""
        while (came := received(self._socket))[1]:
            *lines, held = (held + came[1]).split(b"\n")
            for line in lines:
                if line.startswith(b"data: "):
                    self.frames.append((came[0], json.loads(line.removeprefix(b"data: "))))

    def close(self) -> None:
        """Leave."""
        self._socket.shutdown(socket.SHUT_RDWR)


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
