"""Somebody with a login who publishes what they like: bytes of MQTT 5, on sockets of their own."""

import asyncio
import contextlib
import socket

from eyestream.rim.mqtt.endpoint import Endpoint
from eyestream_lab.testing.clocks import PATIENCE_S
from tests.rigs.hostile.properties import field, message
from tests.rigs.strangers import packet

__all__ = ["Thrower"]

_TAKEN = 0x80
"""Reason codes from here on are refusals."""


class Thrower:
    """A client of one broker that comes again after each message over which the broker throws it out.

    Parameters
    ----------
    endpoint
        Where to, and with which login.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._link: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def throw(self, topic: str, properties: bytes, payload: bytes, *, retain: bool = False) -> bool:
        """Publish at QoS 1; whether the broker has taken it, and refused it by no word."""
        reader, writer = self._link or await self._enter()
        try:
            async with asyncio.timeout(PATIENCE_S):
                writer.write(message(topic.encode(), properties, payload, number=1, retain=retain))
                await writer.drain()
                kind, size = await reader.readexactly(2)
                answer = await reader.readexactly(size)
                if kind != 0x40:  # it says why it throws us out
                    self.leave()
                return kind == 0x40 and (size == 2 or answer[2] < _TAKEN)
        except (OSError, asyncio.IncompleteReadError):
            self.leave()
            return False

    async def die(self, topic: str, properties: bytes, payload: bytes, *, retain: bool = False) -> None:
        """Let the broker publish it as the last will of a link that breaks off."""
        self.leave()
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            await self._enter(topic, properties, payload, retain=retain)
        self.leave()

    def leave(self) -> None:
        """Break the link."""
        if self._link is not None:
            self._link[1].transport.abort()
            self._link = None

    async def _enter(
        self, topic: str = "", properties: bytes = b"", payload: bytes = b"", *, retain: bool = False
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        at = self._endpoint
        async with asyncio.timeout(PATIENCE_S):
            opened = _queued(at.host) if at.unix else asyncio.open_connection(at.host, at.port)
            self._link = reader, writer = await opened
        flags, will = 0x02, b""
        if topic:
            flags |= 0x04 | 0x20 * retain
            lengths = packet(0, properties)
            will = lengths[1:] + field(topic.encode()) + field(payload)
        login = [at.username, at.password] if at.username is not None else []
        flags |= 0xC0 * bool(login)
        words = b"".join(field((word or "").encode()) for word in login)
        writer.write(packet(0x10, field(b"MQTT") + bytes([5, flags, 0, 60, 0]) + field(b"") + will + words))
        async with asyncio.timeout(PATIENCE_S):
            _, size = await reader.readexactly(2)
            answer = await reader.readexactly(size)
        if answer[1]:
            raise ConnectionRefusedError(f"the broker refuses us: 0x{answer[1]:02x}")
        return reader, writer


async def _queued(path: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Waits for room in the queue of a Unix socket: asyncio takes a full one for a connection that stands."""
    with contextlib.ExitStack() as stack:
        link = stack.enter_context(socket.socket(socket.AF_UNIX))
        link.setblocking(False)
        while True:
            try:
                link.connect(path)
            except BlockingIOError:
                await asyncio.sleep(0.01)
            else:
                stack.pop_all()
                return await asyncio.open_unix_connection(sock=link)
