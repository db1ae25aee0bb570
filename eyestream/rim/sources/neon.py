"""``kind = "neon"``: Pupil Labs' Neon, and Invisible, as the companion app on the phone streams them.

The phone tells by HTTP (``GET /api/status``) where its gaze is; RTSP sets the stream up; RTP brings one datum a packet.
The first sender report of RTCP says where the packets' counts stand on the phone's clock, once for the link: later
reports change nothing. All of it is clear text without a login: anybody on the same network can read the gaze too, and
can pretend to be the phone. Use a network that nobody else is on.

The phone is asked again and again by RTSP: it stands for as long as it answers. What it streams has no part in that.

Protocol: Pupil Labs, "Under the hood", guide of the real-time API; RFC 2326, RFC 3550.
"""

import asyncio
from collections import Counter
from typing import Annotated
from urllib.parse import quote

import msgspec
import numpy as np

from eyestream.errors import LinkError
from eyestream.gaze.profile import Profile
from eyestream.rim.files.gaze_columns import GazeColumns
from eyestream.rim.mqtt.opening import addresses
from eyestream.rim.sources.gaze import DeliverGaze, GazeKind, Place
from eyestream.rim.sources.rtsp import RtspConnection, connected, in_time, ports, read_answer
from eyestream.rim.sources.standing import Standing
from eyestream.wire.rtp import RtpClock, read_gaze, read_reports, read_rtp
from eyestream.wire.rtsp import Description

__all__ = ["NEON", "NeonSource", "gaze_sensor"]


class Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
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

    def __init__(self, options: Options, profile: Profile, place: Place) -> None:
        self._options, self._device = options, place.device
        self.refused: Counter[str] = Counter()

    async def run(self, deliver: DeliverGaze) -> None:
        """One streaming session, for as long as the phone answers."""
        host, port = await _address(self._options.host), self._options.port
        sensor_port, params = await gaze_sensor(host, port)
        name = f"[{host}]" if ":" in host else host
        address = f"rtsp://{name}:{sensor_port}/?{quote(params, safe='=&')}"
        async with connected(host, sensor_port) as (reader, writer):
            session = RtspConnection(reader, writer)
            described = await session.describe(address)
            standing = Standing(self._device, deliver, self.refused)
            stream = _Stream(host, described, standing.take, self.refused)
            local = writer.get_extra_info("sockname")[0]
            async with ports(stream, local) as rtp_port:
                await session.play(described, rtp_port)
                await standing.keep(session.hear(), lambda: session.ask(described.address), f"the phone at {host}")


class _Stream(asyncio.DatagramProtocol):
    """What the datagrams of one session say."""

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


async def gaze_sensor(host: str, port: int) -> tuple[int, str]:
    """Port and parameters of the gaze that the phone at `host` streams directly.

    Raises
    ------
    LinkError
        The phone is away, or no glasses are connected to it.
    """
    async with connected(host, port) as (reader, writer), in_time("the phone does not answer"):
        head = (
            f"GET /api/status HTTP/1.1\r\nHost: {host}:{port}\r\nAccept: application/json\r\nConnection: close\r\n\r\n"
        )
        writer.write(head.encode())
        answer, body = await read_answer(reader)
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
    async with in_time(f"no answer about the name {name}"):
        try:
            return (await addresses(name))[0]
        except (OSError, UnicodeError):
            raise LinkError(f"there is no {name} on this network") from None


NEON = GazeKind("neon", Options, "neon", NeonSource, answers=True)
