"""A small window on the loopback: GET /metrics and GET /healthz, nothing else, bounded in size, number and time."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

from eyestream.errors import LinkError

__all__ = ["Page", "serve"]

Page = Callable[[], Awaitable[tuple[int, str]]]
"""Gives status and body."""

MOST_VISITORS = 8
MOST_BYTES = 2048
VISIT_SECONDS = 2.0

_WORDS = {200: "OK", 400: "Bad Request", 404: "Not Found", 405: "Method Not Allowed", 503: "Service Unavailable"}


@contextlib.asynccontextmanager
async def serve(port: int, pages: Mapping[str, Page]) -> AsyncIterator[int]:
    """Serve `pages` by path on 127.0.0.1 beside the body; gives the port (0 chooses one).

    Raises
    ------
    LinkError
        The port is taken.
    """
    visitors: set[asyncio.StreamWriter] = set()

    async def visit(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(visitors) >= MOST_VISITORS:
            writer.close()
            return
        visitors.add(writer)
        try:
            with contextlib.suppress(OSError, TimeoutError):
                async with asyncio.timeout(VISIT_SECONDS):
                    writer.write(await _answer(await _head(reader), pages))
                    await writer.drain()
        finally:
            visitors.discard(writer)
            writer.close()

    try:
        server = await asyncio.start_server(visit, "127.0.0.1", port, limit=MOST_BYTES)
    except OSError:
        raise LinkError(f"port {port} of 127.0.0.1 cannot be opened for [metrics]") from None
    async with server:
        try:
            yield server.sockets[0].getsockname()[1]
        finally:
            for writer in list(visitors):
                writer.transport.abort()


async def _head(reader: asyncio.StreamReader) -> bytes:
    """The head of a request; empty when it is none, or too long."""
    try:
        return await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        return b""


async def _answer(head: bytes, pages: Mapping[str, Page]) -> bytes:
    words = head.split(b"\r\n", 1)[0].split(b" ")
    if len(words) != 3 or not words[2].startswith(b"HTTP/1."):
        status, body = 400, ""
    elif words[0] != b"GET":
        status, body = 405, ""
    else:
        page = pages.get(words[1].decode("latin-1"))
        status, body = (404, "") if page is None else await page()
    data = body.encode()
    head_lines = (
        f"HTTP/1.1 {status} {_WORDS[status]}",
        "Content-Type: text/plain; version=0.0.4; charset=utf-8",
        f"Content-Length: {len(data)}",
        "Cache-Control: no-store",
        "Connection: close",
    )
    return "\r\n".join((*head_lines, "", "")).encode() + data
