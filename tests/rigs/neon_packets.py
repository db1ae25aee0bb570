"""Datagrams of a phone at chosen moments, heard as a sidecar hears them: for streams whose sender reports differ."""

import asyncio
import struct
from collections import Counter

from eyestream.rim.sources.gaze import DeliverGaze
from eyestream.rim.sources.neon import _Stream
from eyestream.wire.rtsp import Description
from tests.rigs.gaze_streams import Sent
from tests.rigs.neon import CLOCK_HZ, KIND, payload_of, report_of

__all__ = ["Datagrams", "Report", "packets"]

Report = tuple[float, float]
"""When a sender report is sent, and by how much its pairing is off, in seconds."""

_SOURCE, _AHEAD_S, _PPM = 7, 1.7e9, 20.0
_PX_PER_DEG = 15.5


def packets(sent: Sent, reports: list[Report]) -> list[tuple[float, bytes]]:
    """Arrivals and datagrams: the stream's own clock is 20 ppm fast beside the phone's."""

    def count(t: float) -> int:
        return round((t * (1.0 + 1e-6 * _PPM) + 77.0) * CLOCK_HZ) % 2**32

    parts = [(at, report_of(_SOURCE, _AHEAD_S + at + error, count(at))) for at, error in reports]
    rows = zip(sent.t.tolist(), sent.gaze.tolist(), sent.arrived.tolist(), strict=True)
    for number, (t, (x, y), arrived) in enumerate(rows):
        head = struct.pack("!BBHII", 0x80, KIND, number % 2**16, count(t), _SOURCE)
        parts.append((arrived, head + payload_of(65, 800.0 + _PX_PER_DEG * x, 600.0 - _PX_PER_DEG * y)))
    return sorted(parts)


class Datagrams:
    """A source of gaze: one link to a phone."""

    def __init__(self, parts: list[tuple[float, bytes]]) -> None:
        self._parts = parts

    async def run(self, deliver: DeliverGaze) -> None:
        """Hear every datagram at its moment, and end two seconds after the last one."""
        loop = asyncio.get_running_loop()
        stream = _Stream("phone", Description("rtsp://phone/", KIND, CLOCK_HZ), deliver, Counter())
        for at, data in self._parts:
            loop.call_at(at, stream.datagram_received, data, ("phone", 1))
        await asyncio.sleep(self._parts[-1][0] + 2.0)
