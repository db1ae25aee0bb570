"""``kind = "neon"``: Pupil Labs' Neon, and Invisible, as the companion app on the phone streams them.

The phone tells by HTTP (``GET /api/status``) where its gaze is; RTSP sets the stream up; RTP brings one datum a packet.
The first sender report of RTCP says where the packets' counts stand on the phone's clock, once for the link: later
reports change nothing. All of it is clear text without a login: anybody on the same network can read the gaze too, and
can pretend to be the phone. Use a network that nobody else is on.

The phone is asked again and again by RTSP: it stands for as long as it answers. What it streams has no part in that.

Protocol: Pupil Labs, "Under the hood", guide of the real-time API; RFC 2326, RFC 3550.
"""

import asyncio
import contextlib
import socket
from collections import Counter
from collections.abc import AsyncIterator
from typing import Annotated
from urllib.parse import quote

import msgspec
import numpy as np

from eyestream.errors import LinkError
from eyestream.gaze.profile import Profile
from eyestream.rim.files.gaze_columns import GazeColumns
from eyestream.rim.mqtt.opening import addresses
from eyestream.rim.sources.asked import AskedTracker
from eyestream.rim.sources.gaze import DeliverGaze, GazeKind, Place
from eyestream.wire.rtp import RtpClock, read_gaze, read_reports, read_rtp
from eyestream.wire.rtsp import Description, RtspAnswer, read_description, read_head, request

CONNECT_S = 2.0

_MOST_HEAD = 16_384
_PORTS_TRIED = 50


class NeonOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``host``: the phone's name or address; ``port``: of its monitor page."""

    host: Annotated[str, msgspec.Meta(min_length=1, pattern=r"\A[^\s/@?#]+\Z")]
    port: Annotated[int, msgspec.Meta(ge=1, le=65535)] = 8080


class _Sensor(msgspec.Struct, frozen=True):
    sensor: str = ""
    conn_type: str = ""
    connected: bool = False
    port: int | None = None
    params: str | None = None


class _Part(msgspec.Struct, frozen=True):
    model: str = ""
    data: msgspec.Raw = msgspec.Raw(b"{}")


class _Status(msgspec.Struct, frozen=True):
    result: list[_Part]


class NeonSource:
    """One phone.

    Attributes
    ----------
    refused : packets by the reason for which they were not used.
    """

    def __init__(self, options: NeonOptions, profile: Profile, place: Place) -> None:
        self._options, self._device = options, place.device
        self.refused: Counter[str] = Counter()

    async def run(self, deliver: DeliverGaze) -> None:
        """One streaming session, for as long as the phone answers."""
        host, port = await _address(self._options.host), self._options.port
        sensor_port, params = await gaze_sensor(host, port)
        name = f"[{host}]" if ":" in host else host
        address = f"rtsp://{name}:{sensor_port}/?{quote(params, safe='=&')}"
        async with _connected(host, sensor_port) as (reader, writer):
            session = _RtspConnection(reader, writer)
            described = await session.describe(address)
            tracker = AskedTracker(self._device, deliver, self.refused)
            stream = _Stream(host, described, tracker.take, self.refused)
            local = writer.get_extra_info("sockname")[0]
            async with _ports(stream, local) as rtp_port:
                await session.play(described, rtp_port)
                await tracker.keep(session.hear(), lambda: session.ask(described.address), f"the phone at {host}")


class _Stream(asyncio.DatagramProtocol):
    """Gaze in the datagrams of one session."""

    def __init__(self, host: str, described: Description, deliver: DeliverGaze, refused: Counter[str]) -> None:
        self._host, self._described, self._deliver, self._refused = host, described, deliver, refused
        self._clock = RtpClock(described.rate_hz)

    def datagram_received(self, data: bytes, address: tuple[str, int]) -> None:
        """Either kind, told apart by the packet's type (RFC 5761, 4): reports have 192 to 223 in their second byte."""
        if address[0] != self._host:
            self._refuse("not from the phone")
        elif len(data) > 1 and 192 <= data[1] <= 223:
            for report in read_reports(data):
                self._clock.report(*report, asyncio.get_running_loop().time())
        else:
            self._gaze(data)

    def _gaze(self, data: bytes) -> None:
        packet = read_rtp(data)
        if packet is None or packet.kind != self._described.kind:
            return self._refuse("not a packet of this stream")
        seconds = self._clock.seconds(packet.source, packet.time, asyncio.get_running_loop().time())
        if seconds is None:
            return self._refuse("packets before the first sender report")
        gaze = read_gaze(packet.payload)
        if gaze is None:
            return self._refuse("payloads of a length that is not known")
        self._deliver(
            GazeColumns(
                np.array([seconds]),
                np.array([[gaze.x, gaze.y]]),
                pupil=np.array([[gaze.pupil_left_mm, gaze.pupil_right_mm]]),
                valid=np.array([1.0 if gaze.worn else 0.0]),
            )
        )
        return None

    def _refuse(self, reason: str) -> None:
        self._refused[reason] += 1


class _RtspConnection:
    """Requests and answers on one connection, one after the other."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._number, self._id = 0, ""
        self._answered = asyncio.Event()

    async def describe(self, address: str) -> Description:
        """The streams at `address`; raises LinkError when the device names none."""
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
        async with _in_time("the phone does not answer"):
            self._writer.write(self._request("OPTIONS", address, Session=self._id))
            await self._answered.wait()

    async def hear(self) -> None:
        """Take note of answers, whatever they say, until the phone ends the connection, which raises LinkError."""
        with contextlib.suppress(OSError):
            while await self._reader.read(4096):
                self._answered.set()
        raise LinkError("the phone has ended the stream")

    async def _ask(self, method: str, address: str, **fields: str) -> tuple[RtspAnswer, bytes]:
        async with _in_time("the phone does not answer"):
            self._writer.write(self._request(method, address, **fields))
            answer, body = await _read_answer(self._reader)
        if answer.code != 200:
            raise LinkError(f"the phone refuses {method} with {answer.code}")
        return answer, body

    def _request(self, method: str, address: str, **fields: str) -> bytes:
        self._number += 1
        return request(method, address, self._number, **fields)


async def _read_answer(reader: asyncio.StreamReader) -> tuple[RtspAnswer, bytes]:
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
async def _in_time(otherwise: str) -> AsyncIterator[None]:
    """Raise LinkError where the body takes longer than `CONNECT_S`."""
    try:
        async with asyncio.timeout(CONNECT_S):
            yield
    except TimeoutError:
        raise LinkError(otherwise) from None


@contextlib.asynccontextmanager
async def _connected(host: str, port: int) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A connection; LinkError when there is none within `CONNECT_S`, and for what breaks it."""
    async with _in_time(f"no answer from {host}:{port}"):
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
async def _ports(stream: asyncio.DatagramProtocol, local: str) -> AsyncIterator[int]:
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


async def gaze_sensor(host: str, port: int) -> tuple[int, str]:
    """Port and parameters of the gaze that the phone at `host` streams directly.

    Raises
    ------
    LinkError
        The phone is away, or no glasses are connected to it.
    """
    async with _connected(host, port) as (reader, writer), _in_time("the phone does not answer"):
        head = (
            f"GET /api/status HTTP/1.1\r\nHost: {host}:{port}\r\nAccept: application/json\r\nConnection: close\r\n\r\n"
        )
        writer.write(head.encode())
        answer, body = await _read_answer(reader)
    if answer.code != 200:
        raise LinkError(f"the phone's status has code {answer.code}")
    try:
        parts = msgspec.json.decode(body, type=_Status).result
        sensors = [msgspec.json.decode(part.data, type=_Sensor) for part in parts if part.model == "Sensor"]
    except msgspec.MsgspecError:
        raise LinkError("the phone's status is not one of a companion app") from None
    for sensor in sensors:
        if sensor.sensor == "gaze" and sensor.conn_type == "DIRECT" and sensor.connected and sensor.port:
            return sensor.port, sensor.params or ""
    raise LinkError("the phone has no gaze: are the glasses connected?")


async def _address(name: str) -> str:
    async with _in_time(f"no answer about the name {name}"):
        try:
            return (await addresses(name))[0]
        except (OSError, UnicodeError):
            raise LinkError(f"there is no {name} on this network") from None


NEON = GazeKind("neon", NeonOptions, "neon", NeonSource, answers=True)
