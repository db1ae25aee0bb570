"""A phone with Pupil Labs' companion app that streams gaze: status by HTTP, RTSP, RTP and RTCP, on the loopback.

It speaks as the device does, as far as a client of gaze can tell: Pupil Labs' own client accepts it too.
"""

import asyncio
import contextlib
import json
import struct
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from eyestream_lab.embedded import free_port
from eyestream_lab.testing.gaze_lives import TrackerClock

__all__ = ["CLOCK_HZ", "KIND", "FakeNeon", "payload_of", "report_of"]

CLOCK_HZ = 90_000
KIND = 97
_1900 = 2_208_988_800


def payload_of(length: int, x: float, y: float, worn: bool = True, pupils: Sequence[float] = (3.25, 3.5)) -> bytes:
    """A gaze datum of one of the known lengths."""
    more = (length - 9) // 4
    rest = [0.0] * more
    if more == 2:
        rest = [x, y]
    if more >= 14:
        rest[0], rest[7] = pupils
    return struct.pack(f"!ffB{more}f", x, y, 255 if worn else 0, *rest)


def report_of(source: int, t: float, count: int) -> bytes:
    """A sender report: the stream's count when the phone's clock shows `t`."""
    seconds, fraction = divmod(t + _1900, 1.0)
    told = struct.pack("!IIIIII", source, int(seconds), int(fraction * 2**32), count, 1, 1)
    return struct.pack("!BBH", 0x80, 200, 6) + told


class FakeNeon:
    """One phone.

    Parameters
    ----------
    rate_hz
        Samples a second.
    length
        Of the payloads.
    report_after_s
        The first sender report comes so long after the first packet.
    gaze
        (k, 4) x, y and two diameters, one row after the other and from the beginning again; usual ones by default.

    Attributes
    ----------
    port : of its HTTP server.
    clock : of the phone.
    sent : packets.
    silent : streams no gaze, and still answers.
    mute : does not answer either, though its connections stay open.
    """

    def __init__(
        self,
        rate_hz: float = 200.0,
        length: int = 65,
        report_after_s: float = 0.1,
        gaze: NDArray[np.float64] | None = None,
    ) -> None:
        usual = np.array([[800.0 + 10.0 * i, 600.0, 3.25, 3.5] for i in range(3)])
        self._gaze = usual if gaze is None else gaze
        self.rate_hz, self.length, self.report_after_s = rate_hz, length, report_after_s
        self.port, self._rtsp_port = free_port(), free_port()
        self.clock = TrackerClock(offset_s=1.7e9)
        self.sent = 0
        self.silent = self.mute = False
        self.source, self._number = 0x1234, 65_500  # the number wraps soon
        self._servers: list[asyncio.Server] = []
        self._writers: set[asyncio.StreamWriter] = set()
        self._streams: dict[str, asyncio.Task[None]] = {}
        self._transport: asyncio.DatagramTransport | None = None
        self._client: tuple[str, int] = ("", 0)

    async def start(self) -> None:
        """Listen; gaze goes to whoever plays it."""
        self.source += 1
        self._transport, _ = await asyncio.get_running_loop().create_datagram_endpoint(
            asyncio.DatagramProtocol, local_addr=("127.0.0.1", 0)
        )
        self._servers = [
            await asyncio.start_server(self._http, "127.0.0.1", self.port),
            await asyncio.start_server(self._rtsp, "127.0.0.1", self._rtsp_port),
        ]

    async def stop(self) -> None:
        """Gone, without a goodbye."""
        for server in self._servers:
            server.close()
        for writer in list(self._writers):
            writer.transport.abort()
        tasks = list(self._streams.values())
        self._streams.clear()
        for task in tasks:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        if self._transport is not None:
            self._transport.close()
        await asyncio.sleep(0.05)

    async def flood(self) -> None:
        """Twenty thousand packets of now, and all that they may be."""
        for index in range(20_000):
            self._packet(payload_of(self.length, 800.0, 600.0), self.clock.show(asyncio.get_running_loop().time()))
            if index % 200 == 0:
                await asyncio.sleep(0)

    async def nonsense(self) -> None:
        """Datagrams that are no packets, packets of another stream, of unknown length, cut reports."""
        now = self._count(self.clock.show(asyncio.get_running_loop().time()))
        for data in (
            b"",
            b"\x80",
            b"nonsense" * 100,
            struct.pack("!BBHII", 0x80, 96, 1, now, self.source) + payload_of(9, 1.0, 1.0),
            struct.pack("!BBHII", 0x80, KIND, 1, now, self.source) + b"\0" * 10,
            struct.pack("!BBHII", 0x80, KIND, 1, now, 0x666) + payload_of(9, 1.0, 1.0),
            struct.pack("!BBHII", 0xBF, KIND, 1, now, self.source) + b"\xff" * 9,
            struct.pack("!BBHI", 0x80, 200, 6, self.source),
            struct.pack("!BBH", 0x80, 200, 0xFFFF) + b"\0" * 40,
            struct.pack("!BBHII", 0x80, KIND, 1, now, self.source) + struct.pack("!ffB", float("nan"), 1e38, 7),
        ):
            self._send(data)

    async def _http(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            await reader.readuntil(b"\r\n\r\n")
            sensor = {"sensor": "gaze", "conn_type": "DIRECT", "connected": True, "ip": "127.0.0.1"}
            sensor |= {"port": self._rtsp_port, "params": "camera=gaze", "protocol": "rtsp"}
            phone = {"battery_level": 50, "battery_state": "OK", "device_id": "f", "device_name": "Neon Companion"}
            phone |= {"ip": "127.0.0.1", "memory": 1, "memory_state": "OK", "time_echo_port": 0}
            hardware = {"version": "2.0", "glasses_serial": "-1", "world_camera_serial": "-1", "module_serial": "123"}
            parts = [("Phone", phone), ("Hardware", hardware), ("Sensor", sensor | {"conn_type": "WEBSOCKET"})]
            parts.append(("Sensor", sensor))
            body = json.dumps({"message": "Success", "result": [{"model": m, "data": d} for m, d in parts]}).encode()
            head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
            writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
            await writer.drain()
        writer.close()
        self._writers.discard(writer)

    async def _rtsp(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        session = f"{id(writer):x}"
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                first, *lines = head.split("\r\n")
                fields = {name.strip().lower(): value.strip() for name, _, value in (li.partition(":") for li in lines)}
                if not self.mute:
                    writer.write(self._answer(first.split()[0], fields, session, writer))
        if session in self._streams:
            self._streams.pop(session).cancel()
        writer.close()
        self._writers.discard(writer)

    def _answer(self, method: str, fields: dict[str, str], session: str, writer: asyncio.StreamWriter) -> bytes:
        """An answer, and what follows from the question."""
        more, body = [], b""
        if method == "OPTIONS":
            more = ["Public: OPTIONS, DESCRIBE, SETUP, PLAY, TEARDOWN"]
        elif method == "DESCRIBE":
            lines = ["v=0", "o=- 0 0 IN IP4 127.0.0.1", "s=gaze", "t=0 0", f"m=application 0 RTP/AVP {KIND}"]
            lines += [f"a=rtpmap:{KIND} com.pupillabs.gaze1/{CLOCK_HZ}", "a=control:trackID=0"]
            body = ("\r\n".join(lines) + "\r\n").encode()
            more = ["Content-Type: application/sdp", f"Content-Length: {len(body)}"]
        elif method == "SETUP":
            _, _, ports = fields["transport"].partition("client_port=")
            self._client = (writer.get_extra_info("peername")[0], int(ports.split("-")[0]))
            server = self._transport.get_extra_info("sockname")[1] if self._transport else 0
            more = [f"Session: {session};timeout=60", f"Transport: {fields['transport']};server_port={server}-{server}"]
        elif method == "PLAY":
            self._streams[session] = asyncio.create_task(self._stream())
            more = [f"Session: {session}"]
        return "\r\n".join(["RTSP/1.0 200 OK", f"CSeq: {fields['cseq']}", *more, "", ""]).encode() + body

    async def _stream(self) -> None:
        loop = asyncio.get_running_loop()
        began = reported = loop.time()
        number = 0
        while True:
            now = loop.time()
            t = self.clock.show(now)
            if now - began >= self.report_after_s and (now - reported > 0.5 or reported == began):
                reported = now
                self._report(t)
            x, y, *pupils = self._gaze[number % len(self._gaze), :4].tolist()
            if not self.silent:
                self._packet(payload_of(self.length, x, y, pupils=pupils), t)
            number += 1
            await asyncio.sleep(max(0.0, began + number / self.rate_hz - loop.time()))

    def _packet(self, payload: bytes, t: float) -> None:
        self._number = (self._number + 1) % 2**16
        self._send(struct.pack("!BBHII", 0x80, KIND, self._number, self._count(t), self.source) + payload)
        self.sent += 1

    def _report(self, t: float) -> None:
        self._send(report_of(self.source, t, self._count(t)), reports=True)

    def _count(self, t: float) -> int:
        """The stream's own clock; it is set with the phone's."""
        return round(t * CLOCK_HZ) % 2**32

    def _send(self, data: bytes, reports: bool = False) -> None:
        if self._transport is not None and not self._transport.is_closing() and self._client[1]:
            host, port = self._client
            self._transport.sendto(data, (host, port + 1 if reports else port))
