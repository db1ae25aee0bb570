"""A server of our own making on a free port of the loopback: brokers and proxies of the tests stand on it."""

import asyncio
import socket
import ssl
import struct
from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self

__all__ = ["Listener", "reset"]

_RESET = struct.pack("ii", 1, 0)  # SO_LINGER: closing sends RST


def reset(writer: asyncio.StreamWriter) -> None:
    """Break the connection of `writer` with RST."""
    end = writer.get_extra_info("socket")
    if end is not None and end.fileno() >= 0:
        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    writer.transport.abort()


class Listener(ABC):
    """Serves each connection in a task of its own; an async context manager. With `tls` it speaks TLS."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self._tls = tls
        self.port = 0
        """0 until it listens; the same from then on."""
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: list[asyncio.StreamWriter] = []

    @property
    def url(self) -> str:
        """Where a client connects to."""
        return f"mqtt://127.0.0.1:{self.port}" if self._tls is None else f"mqtts://localhost:{self.port}"

    async def __aenter__(self) -> Self:
        await self.up()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.down()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for writer in self._writers:
            writer.transport.abort()
        await asyncio.sleep(0)  # they close their sockets then

    async def up(self) -> None:
        """Listen, on the same port as before."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port, ssl=self._tls)
        self.port = self._server.sockets[0].getsockname()[1]

    async def down(self) -> None:
        """Listen no more; what is open stays open."""
        if self._server is not None:
            self._server.close()
            self._server = None

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.append(writer)
        task = asyncio.create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    @abstractmethod
    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, to its end."""
