"""What nobody gets out of the page: other names, other sites, other paths, large heads, slow clients."""

import asyncio
import contextlib
import random
import socket
from collections.abc import AsyncIterator
from dataclasses import dataclass

import aiohttp
import pytest

from eyestream.errors import LinkError
from eyestream.monitor import serving
from eyestream.monitor.serving import MOST_VISITORS, serve
from eyestream.monitor.watch import Watch
from eyestream.rim.config import BrokerSettings
from eyestream_lab.testing.clocks import PATIENCE_S

TOKEN = "3lz1tQm0h5aXk2cR9wYv7g"
SECRET = "rate_fixations"
"""What only who has the address may see."""


class Known(Watch):
    """Knows a stream without a broker, and speaks on."""

    def __init__(self) -> None:
        super().__init__(BrokerSettings("mqtt://127.0.0.1:1"))

    def _snapshot(self):
        yield f'{{"names":["{SECRET}"]}}'


@dataclass(frozen=True)
class Place:
    watch: Known
    port: int

    async def ask(self, *head: str, seconds: float = 10.0) -> bytes:
        """All that comes back of a request whose head is `head`; `HOST` stands for the right one."""
        lines = [line.replace("HOST", f"127.0.0.1:{self.port}") for line in head]
        return await self.send("".join(f"{line}\r\n" for line in (*lines, "")).encode("latin-1"), seconds)

    async def send(self, data: bytes, seconds: float = 10.0) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        found = b""
        with contextlib.suppress(TimeoutError, ConnectionError):
            async with asyncio.timeout(seconds):
                writer.write(data)
                await writer.drain()
                while piece := await reader.read(65536):
                    found += piece
        writer.close()
        return found


@pytest.fixture
async def place() -> AsyncIterator[Place]:
    watch = Known()
    async with serve(watch, 0, TOKEN) as address:
        yield Place(watch, int(address.split(":")[2].split("/")[0]))


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


PAGE = f"GET /{TOKEN}/ HTTP/1.1"
EVENTS = f"GET /{TOKEN}/events HTTP/1.1"


async def test_the_address_is_enough(place: Place) -> None:
    page = await place.ask(PAGE, "Host: HOST")
    assert status(page) == 200
    assert b"<title>eyestream monitor</title>" in page
    for header in (
        b"Content-Security-Policy: default-src 'none';",
        b"X-Frame-Options: DENY",
        b"Referrer-Policy: no-referrer",
    ):
        assert header in page
    assert SECRET.encode() in await place.ask(EVENTS, "Host: HOST", seconds=0.5)


async def test_it_listens_on_the_loopback_alone(place: Place) -> None:
    with socket.socket() as other:
        other.settimeout(1)
        with pytest.raises(ConnectionRefusedError):
            other.connect(("127.0.0.2", place.port))
    with pytest.raises(LinkError, match=f"port {place.port} of 127.0.0.1 cannot be opened"):
        async with serve(place.watch, place.port, TOKEN):
            pass


@pytest.mark.parametrize(
    "path", ["/", "/events", "//events", f"/{TOKEN[:-1]}/events", f"/{TOKEN}x/events", f"/{TOKEN}", "*"]
)
async def test_without_the_token_there_is_nothing(place: Place, path: str) -> None:
    assert status(await place.ask(f"GET {path} HTTP/1.1", "Host: HOST")) in (400, 404)


@pytest.mark.parametrize(
    "path",
    [
        *("../serving.py", "..%2fserving.py", "%2e%2e/serving.py", "./index.html", "index.html"),
        *("monitor.css/", "events?", "events/..", "\\..\\serving.py", "%00"),
    ],
)
async def test_no_path_reaches_a_file(place: Place, path: str) -> None:
    answer = await place.ask(f"GET /{TOKEN}/{path} HTTP/1.1", "Host: HOST")
    assert status(answer) in (400, 404)
    assert b"import" not in answer


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:PORT", "127.0.0.1", "127.0.0.1:1", "127.0.0.1.evil.example:PORT", "[::1]:PORT", ""],
)
async def test_another_name_for_this_machine_gets_nothing(place: Place, host: str) -> None:
    """DNS rebinding: a page of evil.example, whose name now leads here, is of the same origin for its browser."""
    answer = await place.ask(EVENTS, f"Host: {host.replace('PORT', str(place.port))}", seconds=2)
    assert status(answer) in (400, 421)
    assert SECRET.encode() not in answer


async def test_two_names_or_none_get_nothing(place: Place) -> None:
    for hosts in ([], ["Host: HOST", "Host: evil.example"]):
        assert status(await place.ask(EVENTS, *hosts, seconds=2)) in (400, 421)


@pytest.mark.parametrize(
    "header",
    ["Sec-Fetch-Site: cross-site", "Sec-Fetch-Site: same-site", "Origin: https://evil.example", "Origin: null"],
)
async def test_what_another_site_asks_for_gets_nothing(place: Place, header: str) -> None:
    answer = await place.ask(EVENTS, "Host: HOST", header, seconds=2)
    assert status(answer) == 403
    assert SECRET.encode() not in answer


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "HEAD", "TRACE"])
async def test_only_get(place: Place, method: str) -> None:
    answer = await place.ask(f"{method} /{TOKEN}/events HTTP/1.1", "Host: HOST", seconds=2)
    assert status(answer) == 405
    assert b"Access-Control" not in answer


async def test_large_heads_are_refused(place: Place) -> None:
    assert status(await place.ask(PAGE, "Host: HOST", f"X: {'a' * 10_000}")) == 400
    assert status(await place.ask(f"GET /{TOKEN}/{'a' * 10_000} HTTP/1.1", "Host: HOST")) in (400, 414)
    many = await place.ask(PAGE, "Host: HOST", *(f"X{i}: {'a' * 1000}" for i in range(2000)))
    assert not many or status(many) == 400


async def test_who_is_slow_is_left(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """A head that does not end, and one that has not begun."""
    monkeypatch.setattr(serving, "HEAD_SECONDS", 0.2)
    for begun in (b"", b"GET / HTTP/1.1\r\nHost: "):
        async with asyncio.timeout(8):
            assert await place.send(begun, seconds=60) == b""


async def test_who_does_not_read_is_left(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "WRITE_SECONDS", 0.2)
    _, writer = await asyncio.open_connection("127.0.0.1", place.port, limit=1024)
    assert isinstance(writer.transport, asyncio.Transport)
    writer.transport.pause_reading()
    writer.write(f"{EVENTS}\r\nHost: 127.0.0.1:{place.port}\r\n\r\n".encode())
    async with asyncio.timeout(30):
        while not place.watch._visitors:  # noqa: ASYNC110  a set, no event
            await asyncio.sleep(0.01)
        while place.watch._visitors:
            place.watch._tell("x" * 1_000_000)
            await asyncio.sleep(0.01)
    writer.transport.abort()


async def test_there_is_no_room_for_a_visitor_too_many(place: Place) -> None:
    opened = [await asyncio.open_connection("127.0.0.1", place.port) for _ in range(MOST_VISITORS)]
    assert await place.ask(PAGE, "Host: HOST", seconds=2) == b""
    for _, writer in opened:
        writer.close()
        await writer.wait_closed()
    async with asyncio.timeout(PATIENCE_S):
        while not await place.ask(PAGE, "Host: HOST"):  # noqa: ASYNC110
            await asyncio.sleep(0.05)


_MORE = (
    *("Transfer-Encoding: chunked", "Content-Length: 99999999", "Content-Length: -1", "Upgrade: websocket", "X" * 5000),
    *("Expect: 100-continue", "Range: bytes=0-", "Origin: https://evil.example", ": empty", "A\x00: b"),
)
_PATHS = ("/", "/events", f"/{TOKEN[::-1]}/events", f"/{TOKEN}/../events", "http://evil.example/", "%2e", "/" * 500)


def hostile(rng: random.Random, port: int) -> bytes:
    """A request that is not whole, or not ours: in its method, path, version, headers, or by flipped bytes."""
    pick = rng.choice
    method, version = pick(["GET", "POST", "get", "CONNECT", "X"]), pick(["HTTP/1.1", "HTTP/1.0", "HTTP/2", ""])
    hosts = [f"Host: {pick(['evil.example', f'127.0.0.1:{port}', 'localhost', ''])}"] * rng.randrange(3)
    lines = [f"{method} {pick(_PATHS)} {version}", *hosts, *rng.sample(_MORE, 3), "", ""]
    data = bytearray("\r\n".join(lines).encode("latin-1"))
    for _ in range(rng.randrange(4)):
        data[rng.randrange(len(data))] = rng.randrange(256)
    return bytes(data[: rng.randrange(len(data))] if rng.random() < 0.1 else data)


@pytest.mark.long
async def test_a_thousand_hostile_requests_get_nothing(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "HEAD_SECONDS", 0.2)
    rng = random.Random(20)
    for _ in range(50):
        requests = [hostile(rng, place.port) for _ in range(20)]
        answers = await asyncio.gather(*(place.send(request, 3) for request in requests))
        for request, answer in zip(requests, answers, strict=True):
            assert not answer or status(answer) in (400, 403, 404, 405, 414, 421)
            assert SECRET.encode() not in answer
            assert TOKEN.encode() in request or TOKEN.encode() not in answer
    assert status(await place.ask(PAGE, "Host: HOST")) == 200


async def test_a_browser_of_another_library_reads_on(place: Place) -> None:
    """News come to who has asked before."""
    url = f"http://127.0.0.1:{place.port}/{TOKEN}/events"
    async with aiohttp.ClientSession() as session, session.get(url) as answer, asyncio.timeout(PATIENCE_S):
        assert answer.headers["Content-Type"] == "text/event-stream"
        assert SECRET.encode() in await answer.content.readline()
        place.watch._tell("news")
        await answer.content.readline()
        assert await answer.content.readline() == b"data: news\n"
