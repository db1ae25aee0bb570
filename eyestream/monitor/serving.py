"""The page over HTTP, for one person at this machine.

Five rules, each with a test (`tests/product/monitor/test_hostile.py`):

- It listens on 127.0.0.1 alone, and answers only to its own name there (``Host``). A name of somebody else that
  resolves to the loopback (DNS rebinding) gets nothing.
- Every address begins with a random token of 128 bits. Without it there is nothing, not even the page.
- A request that another site causes (``Sec-Fetch-Site``, ``Origin``) is refused, and no other site may frame or read.
- The answers are a fixed table in memory, by exact address. No path reaches a file.
- Heads are small, few, and whole within `HEAD_SECONDS`. A visitor who does not read is left after `WRITE_SECONDS`.
"""

import asyncio
import contextlib
import hmac
import importlib.util
import logging
from collections.abc import AsyncIterator
from importlib.resources import files
from typing import TYPE_CHECKING

from eyestream.errors import ConfigError, LinkError
from eyestream.monitor.watch import Watch

if TYPE_CHECKING:
    from aiohttp import web

HEAD_SECONDS = 2.0
WRITE_SECONDS = 5.0
IDLE_SECONDS = 10.0
"""After so long without news a comment is sent: the write shows whether somebody still reads."""

MOST_VISITORS = 32
MOST_HEAD_BYTES = 4096

_UNHEARD = logging.Logger("eyestream.monitor", logging.CRITICAL + 1)
"""aiohttp writes a traceback that quotes each request that is none: anybody on this machine could fill the terminal."""

_ASSETS = {
    "": ("index.html", "text/html"),
    "monitor.css": ("monitor.css", "text/css"),
    "monitor.mjs": ("monitor.mjs", "text/javascript"),
    "traces.mjs": ("traces.mjs", "text/javascript"),
}
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cache-Control": "no-store",
    "Server": "eyestream",
}


def require_extra() -> None:
    """Raise ConfigError where aiohttp is not installed."""
    if importlib.util.find_spec("aiohttp") is None:
        raise ConfigError("the monitor is not installed: pip install 'eyestream[monitor]'")


@contextlib.asynccontextmanager
async def serve(watch: Watch, port: int, token: str) -> AsyncIterator[str]:
    """Serve the page on 127.0.0.1 beside the body; gives its address.

    Parameters
    ----------
    watch
        What the page shows.
    port
        0 chooses a free one.
    token
        First part of every address.

    Raises
    ------
    ConfigError
        aiohttp is not installed.
    LinkError
        The port is taken.
    """
    require_extra()
    from aiohttp import web  # noqa: PLC0415  an extra

    pages = _Pages(watch, token)
    server = web.Server(
        pages.answer,
        max_line_size=MOST_HEAD_BYTES,
        max_field_size=MOST_HEAD_BYTES,
        lingering_time=0.0,
        access_log=None,
        logger=_UNHEARD,
    )
    loop = asyncio.get_running_loop()

    def visitor() -> asyncio.Protocol:
        if len(server.connections) >= MOST_VISITORS:
            return _Full()
        protocol = server()
        pages.silent.add(protocol)  # aiohttp waits for a head without a limit: whoever sends none would keep a place
        loop.call_later(HEAD_SECONDS, pages.leave_silent, protocol)
        return protocol

    try:
        listening = await loop.create_server(visitor, "127.0.0.1", port)
    except OSError:
        raise LinkError(f"port {port} of 127.0.0.1 cannot be opened for the monitor") from None
    try:
        pages.port = listening.sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{pages.port}/{token}/"
    finally:
        listening.close()
        await server.shutdown(timeout=0.5)


class _Full(asyncio.Protocol):
    """The protocol of one visitor too many."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Leave."""
        assert isinstance(transport, asyncio.Transport)
        transport.abort()


class _Pages:
    """Answers to requests, by exact address."""

    def __init__(self, watch: Watch, token: str) -> None:
        folder = files("eyestream.monitor") / "assets"
        self._assets = {name: ((folder / file).read_bytes(), kind) for name, (file, kind) in _ASSETS.items()}
        self._watch, self._token = watch, token
        self.silent: set[web.RequestHandler] = set()
        """Connections on which no whole head has come yet."""
        self.port = 0

    def leave_silent(self, visitor: "web.RequestHandler") -> None:
        """Close a connection whose head takes too long."""
        if visitor in self.silent:
            self.silent.discard(visitor)
            visitor.force_close()

    async def answer(self, request: "web.BaseRequest") -> "web.StreamResponse":
        """Answer a request; the connection then ends."""
        self.silent.discard(request.protocol)
        refused = self._refusal(request)
        if refused:
            return self._whole(refused, b"", "text/plain")
        _, token, name = request.raw_path.split("/", 2)
        assert hmac.compare_digest(token.encode(), self._token.encode())
        if name == "events":
            return await self._events(request)
        return self._whole(200, *self._assets[name])

    def _refusal(self, request: "web.BaseRequest") -> int:
        """Status of a request that gets nothing; 0 for one that is answered."""
        own = {f"127.0.0.1:{self.port}", f"localhost:{self.port}"}
        hosts = request.headers.getall("Host", [])
        if len(hosts) != 1 or hosts[0] not in own:
            return 421
        if request.headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin"):
            return 403
        if request.headers.get("Origin", f"http://{hosts[0]}") != f"http://{hosts[0]}":
            return 403
        parts = request.raw_path.encode("utf-8", "surrogateescape").split(b"/", 2)
        named = len(parts) == 3 and parts[0] == b"" and hmac.compare_digest(parts[1], self._token.encode())
        if not named or parts[2].decode("latin-1") not in {*self._assets, "events"}:
            return 404
        return 0 if request.method == "GET" else 405

    def _whole(self, status: int, body: bytes, kind: str) -> "web.Response":
        from aiohttp import web  # noqa: PLC0415  an extra

        response = web.Response(status=status, body=body, content_type=kind, charset="utf-8", headers=_HEADERS)
        response.force_close()
        return response

    async def _events(self, request: "web.BaseRequest") -> "web.StreamResponse":
        """Frames as server-sent events, for as long as the visitor reads."""
        from aiohttp import web  # noqa: PLC0415  an extra

        response = web.StreamResponse(headers=_HEADERS | {"Content-Type": "text/event-stream"})
        response.force_close()
        await response.prepare(request)
        with self._watch.visitor() as frames, contextlib.suppress(OSError, TimeoutError):
            while True:
                # No news in time is a comment, and the visit goes on. A write that takes too long ends it.
                line = b": nothing new\n\n"
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(IDLE_SECONDS):
                        line = b"data: %s\n\n" % (await frames.get()).encode()
                async with asyncio.timeout(WRITE_SECONDS):
                    await response.write(line)
        if request.transport is not None:
            request.transport.abort()
        return response
