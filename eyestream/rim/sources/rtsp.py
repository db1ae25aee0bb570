"""A phone that streams by RTSP: connections with limits, requests and answers, ports for its datagrams."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator

from eyestream.errors import LinkError
from eyestream.wire.rtsp import Description, RtspAnswer, read_description, read_head, request

__all__ = ["CONNECT_S", "RtspConnection", "connected", "in_time", "ports", "read_answer"]

CONNECT_S = 2.0

_MOST_HEAD = 16_384
_PORTS_TRIED = 50


class RtspConnection:
    """Requests and answers on one connection, one after the other."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._number, self._id = 0, ""
        self._answered = asyncio.Event()

    async def describe(self, address: str) -> Description:
        """What is streamed at `address`; raises LinkError when it is not told."""
        await self._ask("OPTIONS", address)
        answer, body = await self._ask("DESCRIBE", address, Accept="application/sdp")
        return read_description(body.decode("utf-8", "replace"), answer.fields.get("content-base", address))

    async def play(self, described: Description, port: int) -> None:
        """Let it come to `port`, and reports to the next one."""
        transport = f"RTP/AVP;unicast;client_port={port}-{port + 1}"
        answer, _ = await self._ask("SETUP", described.address, Transport=transport)
        self._id = answer.fields.get("session", "").partition(";")[0].strip()
        if not self._id:
            raise LinkError("the phone sets up no session")
        await self._ask("PLAY", described.address, Session=self._id, Range="npt=now-")

    async def ask(self, address: str) -> None:
        """Say that we are there; raises LinkError when nothing is answered. `hear` must be at work."""
        self._answered.clear()
        async with in_time("the phone does not answer"):
            self._writer.write(self._request("OPTIONS", address, Session=self._id))
            await self._answered.wait()

    async def hear(self) -> None:
        """Take note of answers, whatever they say, until the phone ends the connection, which raises LinkError."""
        with contextlib.suppress(OSError):
            while await self._reader.read(4096):
                self._answered.set()
        raise LinkError("the phone has ended the stream")

    async def _ask(self, method: str, address: str, **fields: str) -> tuple[RtspAnswer, bytes]:
        async with in_time("the phone does not answer"):
            self._writer.write(self._request(method, address, **fields))
            answer, body = await read_answer(self._reader)
        if answer.code != 200:
            raise LinkError(f"the phone refuses {method} with {answer.code}")
        return answer, body

    def _request(self, method: str, address: str, **fields: str) -> bytes:
        self._number += 1
        return request(method, address, self._number, **fields)


async def read_answer(reader: asyncio.StreamReader) -> tuple[RtspAnswer, bytes]:
    """Head and body of an answer; raises LinkError where it is cut off or makes no sense."""
    try:
        answer = read_head(await reader.readuntil(b"\r\n\r\n"))
        if answer.length is not None:
            return answer, await reader.readexactly(answer.length)
        if answer.fields.get("transfer-encoding", "").lower() == "chunked":
            return answer, await _chunked(reader)
        closes = answer.fields.get("connection", "").lower() == "close"
        return answer, await reader.read(1 << 20) if closes else b""
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, OSError):
        raise LinkError("the phone's answer is cut off") from None


async def _chunked(reader: asyncio.StreamReader) -> bytes:
    """A body in chunks (RFC 9112, 7.1), at most a mebibyte."""
    body = b""
    while True:
        size = (await reader.readline()).partition(b";")[0].strip()
        try:
            length = int(size, 16)
        except ValueError:
            raise LinkError("the phone's answer makes no sense") from None
        if not 0 <= length <= (1 << 20) - len(body):
            raise LinkError("the phone's answer is too long")
        body += await reader.readexactly(length)
        await reader.readline()
        if length == 0:
            return body


@contextlib.asynccontextmanager
async def in_time(otherwise: str) -> AsyncIterator[None]:
    """What takes longer than `CONNECT_S` is a link that is away."""
    try:
        async with asyncio.timeout(CONNECT_S):
            yield
    except TimeoutError:
        raise LinkError(otherwise) from None


@contextlib.asynccontextmanager
async def connected(host: str, port: int) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A connection; LinkError when there is none within `CONNECT_S`, and for what breaks it."""
    async with in_time(f"no answer from {host}:{port}"):
        try:
            reader, writer = await asyncio.open_connection(host, port, limit=_MOST_HEAD)
        except OSError as error:
            raise LinkError(f"{host}:{port}: {error.strerror or 'cannot be reached'}") from None
    try:
        yield reader, writer
    except OSError:
        raise LinkError("the connection to the phone broke") from None
    finally:
        writer.close()


@contextlib.asynccontextmanager
async def ports(stream: asyncio.DatagramProtocol, local: str) -> AsyncIterator[int]:
    """Two ports in succession, the first one even (RFC 3550, 11), on which `stream` listens; yields the first."""
    loop, transports = asyncio.get_running_loop(), []
    sockets = _pair(local)
    try:
        for one in sockets:
            transport, _ = await loop.create_datagram_endpoint(lambda: stream, sock=one)
            transports.append(transport)
        yield int(sockets[0].getsockname()[1])
    finally:
        for transport in transports:
            transport.close()


def _pair(local: str) -> tuple[socket.socket, socket.socket]:
    family = socket.AF_INET6 if ":" in local else socket.AF_INET
    for _ in range(_PORTS_TRIED):
        first, second = (socket.socket(family, socket.SOCK_DGRAM) for _ in range(2))
        try:
            first.bind((local, 0))
            port = first.getsockname()[1]
            if port % 2 == 0:
                second.bind((local, port + 1))
                for one in (first, second):
                    one.setblocking(False)
                return first, second
        except OSError:
            pass  # the next one is taken: try another pair
        first.close()
        second.close()
    raise LinkError("no two ports in succession are free")
