"""A small broker of MQTT 3.1.1 whose faults can be chosen, and which notes all that it is told.

It has no code of the client's. It takes statements and chunks, grants subscriptions, and keeps what is retained. It
delivers nothing but a sidecar's own question, back to the link that asks it.
"""

import asyncio
import contextlib
import ssl
from dataclasses import dataclass

from tests.rigs.listener import Listener

__all__ = ["Greeting", "ScriptedBroker"]


@dataclass(frozen=True)
class Greeting:
    """One CONNECT."""

    client_id: str
    clean_session: bool
    will: tuple[str, bytes] | None


class ScriptedBroker(Listener):
    """Listens on a free port of the loopback; an async context manager.

    Parameters
    ----------
    will_delay_s
        The last will of a link that is lost is published so long after that; a broker of many threads may take as long.
    largest
        Bytes of the largest packet that is taken; over a larger one the link is broken, as mosquitto does.
    tls
        For a TLS port.
    refusal
        Code of CONNACK: 0 for a welcome.
    """

    def __init__(
        self,
        *,
        will_delay_s: float = 0.0,
        largest: int = 1 << 28,
        tls: ssl.SSLContext | None = None,
        refusal: int = 0,
    ) -> None:
        super().__init__(tls)
        self._answer = bytes([0x20, 2, 0, refusal])
        self._will_delay_s, self._largest = will_delay_s, largest
        self._open: dict[str, asyncio.StreamWriter] = {}
        self.greetings: list[Greeting] = []
        self.subscriptions: list[list[str]] = []
        """Topic filters of each SUBSCRIBE packet."""
        self.said: list[tuple[str, bytes]] = []
        """All that was published, wills included, in order."""
        self.retained: dict[str, bytes] = {}
        self.goodbyes: list[str] = []
        """Client ids of those who said DISCONNECT."""

    def drop_all(self) -> None:
        """Hang up on everybody, as a broker does that ends; in TLS it says so."""
        for writer in self._open.values():
            writer.close()

    def drop(self, client_id: str) -> None:
        """Break the link of `client_id`, as a broker does when the session is taken over."""
        self._open[client_id].transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        greeting = None
        goodbye = False
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while not goodbye:
                head, body = await _packet(reader, self._largest)
                if head == 0x10 and body[6] != 4:
                    writer.write(b"\x20\x02\x00\x01")  # another version
                    break
                if head == 0x10:
                    greeting = _greeting(body)
                    self.greetings.append(greeting)
                    self._open[greeting.client_id] = writer
                    writer.write(self._answer)
                elif head == 0x82:
                    filters = _filters(body[2:])
                    self.subscriptions.append(filters)
                    writer.write(b"\x90" + _length(2 + len(filters)) + body[:2] + bytes(len(filters)))
                elif head >> 4 == 3:
                    self._take(head, body, writer)
                elif head == 0xC0:
                    writer.write(b"\xd0\x00")
                goodbye = head == 0xE0
                await writer.drain()
        if not writer.is_closing():  # a second time would take from TLS what ends it by force
            writer.close()
        if greeting is not None and goodbye:
            self.goodbyes.append(greeting.client_id)
        elif greeting is not None and greeting.will is not None:
            await asyncio.sleep(self._will_delay_s)
            self._publish(*greeting.will, retain=True)

    def _take(self, head: int, body: bytes, writer: asyncio.StreamWriter) -> None:
        end = 2 + int.from_bytes(body[:2], "big")
        topic, rest = body[2:end].decode(), body[end:]
        if head & 6:
            writer.write(b"\x40\x02" + rest[:2])
            rest = rest[2:]
        self._publish(topic, rest, retain=bool(head & 1))
        if topic.endswith("/sidecar/owner") and not rest:
            writer.write(b"\x30" + _length(end) + body[:end])

    def _publish(self, topic: str, payload: bytes, *, retain: bool) -> None:
        self.said.append((topic, payload))
        if retain:
            self.retained[topic] = payload


def _field(body: bytes) -> tuple[bytes, bytes]:
    end = 2 + int.from_bytes(body[:2], "big")
    return body[2:end], body[end:]


def _greeting(body: bytes) -> Greeting:
    flags = body[7]
    client_id, rest = _field(body[10:])
    will = None
    if flags & 4:
        topic, rest = _field(rest)
        will = (topic.decode(), _field(rest)[0])
    return Greeting(client_id.decode(), bool(flags & 2), will)


def _filters(body: bytes) -> list[str]:
    filters = []
    while body:
        name, body = _field(body)
        filters.append(name.decode())
        body = body[1:]
    return filters


def _length(size: int) -> bytes:
    digits = b""
    while True:
        size, digit = divmod(size, 128)
        digits += bytes([digit | 128 if size else digit])
        if not size:
            return digits


async def _packet(reader: asyncio.StreamReader, largest: int) -> tuple[int, bytes]:
    """First byte and body of the next packet; raises OSError when it is too large."""
    [head] = await reader.readexactly(1)
    size = shift = 0
    while True:
        [digit] = await reader.readexactly(1)
        size |= (digit & 127) << shift
        shift += 7
        if digit < 128:
            break
    if size > largest:
        raise OSError("too large")
    return head, await reader.readexactly(size)
