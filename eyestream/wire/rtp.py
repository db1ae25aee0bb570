"""RTP and RTCP packets (RFC 3550), as far as a receiver of one stream needs them; and the gaze that Neon puts in them.

A packet's time is a count of the stream's own clock. A sender report pairs such a count with the device's clock, so a
packet's time is known from the first report on. Counts are 32 bits wide and wrap.
"""

import struct
from typing import NamedTuple

_SECONDS_1900_TO_1970 = 2_208_988_800
_SENDER_REPORT = 200
_NAN = float("nan")

GAZE_BYTES = {9: (0, 0), 17: (2, 0), 25: (4, 0), 65: (14, 14), 89: (20, 14), 105: (24, 14)}
"""Lengths of a gaze payload: float32 after x, y and worn, and how many of them are the two eyes' state.

With 2 more there is a point for each eye and none for both: the gaze is their mean. An eye's state is its pupil's
diameter in mm, the centre of the eyeball and the optical axis, left eye first.
"""


class RtpPacket(NamedTuple):
    """One packet: payload type, number (16 bits), time (32 bits), source (32 bits), and what it carries."""

    kind: int
    number: int
    time: int
    source: int
    payload: bytes


class NeonGaze(NamedTuple):
    """One datum: pixels of the scene camera, whether the glasses are worn, diameters in mm (NaN: not told)."""

    x: float
    y: float
    worn: bool
    pupil_left_mm: float
    pupil_right_mm: float


def read_rtp(data: bytes) -> RtpPacket | None:
    """The packet in a datagram (RFC 3550, 5.1); None where it is none, or is cut."""
    if len(data) < 12 or data[0] >> 6 != 2:
        return None
    kind, number, time, source = struct.unpack_from("!xBHII", data)
    offset = 12 + 4 * (data[0] & 0x0F)
    if data[0] & 0x10:  # an extension: its length in words stands in its head
        if len(data) < offset + 4:
            return None
        offset += 4 + 4 * int.from_bytes(data[offset + 2 : offset + 4], "big")
    end = len(data)
    if data[0] & 0x20:  # padding: its last byte is its length
        end -= data[-1]
    if offset > end:
        return None
    return RtpPacket(kind & 0x7F, number, time, source, data[offset:end])


def read_reports(data: bytes) -> list[tuple[int, float, int]]:
    """Sender reports in a datagram (RFC 3550, 6.4.1): source, seconds since 1970, the stream's own count then."""
    reports, at = [], 0
    while at + 8 <= len(data) and data[at] >> 6 == 2:
        length = 4 * (int.from_bytes(data[at + 2 : at + 4], "big") + 1)
        if data[at + 1] == _SENDER_REPORT and length >= 28 and at + length <= len(data):
            source, seconds, fraction, count = struct.unpack_from("!IIII", data, at + 4)
            reports.append((source, seconds - _SECONDS_1900_TO_1970 + fraction / 2**32, count))
        at += length
    return reports


def read_gaze(payload: bytes) -> NeonGaze | None:
    """The datum in a payload, in network byte order; None where it has none of the known lengths."""
    if len(payload) not in GAZE_BYTES:
        return None
    more, state = GAZE_BYTES[len(payload)]
    x, y, worn, *rest = struct.unpack(f"!ffB{more}f", payload)
    if more == 2:  # x and y are the left eye's
        x, y = (x + rest[0]) / 2, (y + rest[1]) / 2
    left, right = (rest[0], rest[7]) if state else (_NAN, _NAN)
    return NeonGaze(x, y, worn == 255, left, right)


class RtpClock:
    """Times of the packets of one source, by its own counts, from the first sender report on.

    The first report alone says where the counts stand on the device's clock. A later one would bring its own error into
    all times after it, and whether it comes may depend on the eye. Where the two clocks drift apart, times are those of
    the counts.

    How often a count has wrapped is found from the host's clock, for each packet by itself: no other packet is needed,
    and no wrong count is remembered. It is found rightly until the clocks have drifted apart by half a wrap: 6.6 hours
    at 90 kHz, which takes 7 years at 100 ppm.

    Parameters
    ----------
    rate_hz
        Counts a second of the stream's own clock.
    """

    def __init__(self, rate_hz: int) -> None:
        self._rate = rate_hz
        self._paired: dict[int, tuple[float, int, float]] = {}

    def report(self, source: int, seconds: float, count: int, arrived_s: float) -> None:
        """Take a sender report, which arrived at `arrived_s` of the host's clock; only a source's first one counts."""
        if source not in self._paired:
            self._paired = {source: (seconds, count, arrived_s)}  # one source: a stream that restarts has another one

    def seconds(self, source: int, count: int, arrived_s: float) -> float | None:
        """The device's clock at a count that arrived at `arrived_s`; None before the source's first report."""
        if source not in self._paired:
            return None
        seconds, then, came_s = self._paired[source]
        expected = round((arrived_s - came_s) * self._rate)
        since = expected + (count - then - expected + 2**31) % 2**32 - 2**31
        return seconds + since / self._rate
