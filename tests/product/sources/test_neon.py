"""Neon: what its packets say, and a phone's hard life."""

import asyncio
import math
import struct
import subprocess

import numpy as np
import pytest

from eyestream.errors import ConfigError, LinkError
from eyestream.rim.config import BrokerSettings, SourceEntry
from eyestream.rim.files.profiles import load_profile
from eyestream.rim.sources.gaze import GazeFeeder, Place
from eyestream.rim.sources.neon import NeonOptions, NeonSource
from eyestream.rim.sources.registry import make_source
from eyestream.streams import StreamSpec
from eyestream.wire.rtp import GAZE_BYTES, RtpClock, read_gaze, read_reports, read_rtp
from eyestream.wire.rtsp import read_description, read_head
from eyestream_lab.testing.clocks import until
from eyestream_lab.testing.gaze_lives import hard_life
from eyestream_lab.testing.gaze_sources import hearing
from tests.rigs.neon import FakeNeon, payload_of

PLACE = Place("hmd-1", BrokerSettings("mqtt://localhost"))


def source_of(phone: FakeNeon) -> NeonSource:
    return NeonSource(NeonOptions("127.0.0.1", phone.port), load_profile("neon"), PLACE)


@pytest.mark.long
async def test_a_hard_life() -> None:
    phone = FakeNeon()
    source = source_of(phone)
    heard = await hard_life(source, phone)
    assert {"not a packet of this stream", "payloads of a length that is not known"} <= set(source.refused)
    assert source.refused["packets before the first sender report"] >= 1
    assert any("hung up" in said or "127.0.0.1" in said or "ended" in said for said in heard.away)
    pupil = heard.column("pupil")
    told = pupil[np.isfinite(pupil).all(axis=1)]
    np.testing.assert_array_equal(told[:20], np.tile([3.25, 3.5], (20, 1)))


@pytest.mark.parametrize("length", sorted(GAZE_BYTES))
def test_payloads_of_every_known_length(length: int) -> None:
    gaze = read_gaze(payload_of(length, 812.5, 601.25, worn=False))
    assert gaze is not None
    assert (gaze.x, gaze.y, gaze.worn) == (812.5, 601.25, False)
    if length >= 65:
        assert (gaze.pupil_left_mm, gaze.pupil_right_mm) == (3.25, 3.5)
    else:
        assert math.isnan(gaze.pupil_left_mm)


def test_two_points_are_their_mean() -> None:
    gaze = read_gaze(struct.pack("!ffBff", 100.0, 200.0, 255, 300.0, 400.0))
    assert gaze is not None
    assert gaze[:3] == (200.0, 300.0, True)


@pytest.mark.parametrize("length", [n for n in range(130) if n not in GAZE_BYTES])
def test_payloads_of_other_lengths_are_none(length: int) -> None:
    assert read_gaze(b"\x40" * length) is None


def test_packets_with_everything_and_cut_ones() -> None:
    head = struct.pack("!BBHII", 0xB2, 0xE1, 7, 8, 9)  # padding, an extension, two contributors, a mark
    data = head + b"\0" * 8 + struct.pack("!HH", 1, 1) + b"\0" * 4 + b"gaze" + b"\0\0\x03"
    packet = read_rtp(data)
    assert packet is not None
    assert (packet.kind, packet.number, packet.time, packet.source, packet.payload) == (97, 7, 8, 9, b"gaze")
    assert [read_rtp(data[:n]) for n in range(12)] == [None] * 12
    for n in range(len(data)):
        read_rtp(data[:n])
        read_reports(data[:n])


def test_reports_among_other_packets() -> None:
    report = struct.pack("!BBHIIIIII", 0x80, 200, 6, 5, 2_208_988_800 + 100, 2**31, 900, 1, 1)
    other = struct.pack("!BBHI", 0x81, 202, 1, 5)
    assert read_reports(other + report + other) == [(5, 100.5, 900)]
    assert read_reports(report[:-1]) == []


def test_the_first_report_alone_says_where_the_counts_stand() -> None:
    """A later one that is 1 ms off, or 100 s, moves no time; a stream that restarts has another source."""
    clock = RtpClock(1000)
    assert clock.seconds(1, 5, 0.0) is None
    clock.report(1, 100.0, 2**32 - 500, 7.0)
    for late in (0.0, 0.001, 0.0025, 100.0):
        clock.report(1, 101.0 + late, 500, 8.0)
        assert clock.seconds(1, 500, 8.01) == 101.0
        assert clock.seconds(1, 2**32 - 1500, 6.01) == 99.0
    assert clock.seconds(2, 500, 8.0) is None
    clock.report(2, 5.0, 0, 9.0)
    assert clock.seconds(1, 0, 9.0) is None
    assert clock.seconds(2, 250, 9.3) == 5.25


@pytest.mark.parametrize("ppm", [-300.0, 0.0, 300.0])
def test_counts_wrap_for_ever_without_another_report(ppm: float) -> None:
    """32 bits at 90 kHz are 13.3 hours: a week of a clock that drifts, and a gap of three days."""
    clock, rate_hz = RtpClock(90_000), 90_000
    clock.report(7, 1.7e9, 2**32 - 5, 50.0)
    for hours in [*np.arange(0.0, 168.0, 0.25).tolist(), 240.0]:
        since = round(3600.0 * hours * (1.0 + 1e-6 * ppm) * rate_hz)
        shown = clock.seconds(7, (2**32 - 5 + since) % 2**32, 50.02 + 3600.0 * hours)
        assert shown == pytest.approx(1.7e9 + since / rate_hz, abs=1e-5)


def test_a_wrong_count_changes_the_time_of_no_other_packet() -> None:
    clock, rng = RtpClock(90_000), np.random.default_rng(1)
    clock.report(7, 0.0, 0, 0.0)
    for index in range(1, 200):
        clock.seconds(7, int(rng.integers(2**32)), index / 200.0)
        assert clock.seconds(7, 450 * index, index / 200.0) == index / 200.0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "without a stream"),
        ("m=audio 0 RTP/AVP 8\na=rtpmap:8 PCMA/8000\n", "without a stream"),
        ("m=application 0 RTP/AVP 97\na=rtpmap:97 gaze/0\n", "without a stream"),
        ("m=application 0 RTP/AVP 97\na=rtpmap:nonsense\n", "without a stream"),
    ],
)
def test_descriptions_that_do_not_tell_are_refused(text: str, said: str) -> None:
    with pytest.raises(LinkError, match=said):
        read_description(text, "rtsp://phone:1/")


def test_descriptions_say_where_to_set_up() -> None:
    application = "v=0\r\nm=application 0 RTP/AVP 97\r\na=rtpmap:97 com.pupillabs.gaze1/90000\r\na=control:track\r\n"
    assert read_description(application, "rtsp://phone:1/?a=b") == ("rtsp://phone:1/?a=b", 97, 90000)
    video = "m=video 0 RTP/AVP 96\na=rtpmap:96 H264/90000\na=control:trackID=1\nm=audio 0 RTP/AVP 8\n"
    assert read_description(video, "rtsp://phone:1/x").address == "rtsp://phone:1/x/trackID=1"


@pytest.mark.parametrize(
    "head", [b"", b"HTTP/2 200\r\n\r\n", b"SSH-2.0\r\n\r\n", b"RTSP/1.0 200 OK\r\nContent-Length: -1\r\n\r\n"]
)
def test_heads_that_make_no_sense(head: bytes) -> None:
    with pytest.raises(LinkError):
        read_head(head)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b"", "cut off"),
        (b"SSH-2.0-nonsense\r\n\r\n", "neither HTTP nor RTSP"),
        (b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", "code 404"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n[1,2", "cut off"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n[1,2]", "not one of a companion app"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n", "makes no sense"),
        (b'HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\n{"result":[]}', "no gaze"),
        (b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nd\r\n{"result":[]}\r\n0\r\n\r\n', "no gaze"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "makes no sense"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffff\r\n", "too long"),
    ],
)
async def test_strangers_at_the_phones_port_are_said_so(answer: bytes, said: str) -> None:
    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        writer.close()

    async with await asyncio.start_server(speak, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(LinkError, match=said):
            await NeonSource(NeonOptions("127.0.0.1", port), load_profile("neon"), PLACE).run(lambda records: None)


async def test_a_phone_whose_payloads_nobody_knows_stands_and_the_log_says_so(caplog: pytest.LogCaptureFixture) -> None:
    phone = FakeNeon(length=9)
    phone.length = 13
    await phone.start()
    try:
        async with hearing(source_of(phone)) as heard:
            await until(lambda: bool(caplog.records))
        assert (heard.away, heard.samples) == ([], 0)
    finally:
        await phone.stop()
    assert caplog.messages == [
        "source of hmd-1: the tracker answers, and no gaze has come from it yet; "
        "what came was payloads of a length that is not known"
    ]


def test_the_registry_makes_it(tmp_path: object) -> None:
    from eyestream.gaze.features import NAMES

    spec = StreamSpec("features", 1, NAMES, ("1",) * 52, 2.0, 30.0)
    made = make_source(SourceEntry("neon", "d", options={"host": "neon.local"}), spec, tmp_path, PLACE.broker)
    assert isinstance(made, GazeFeeder)
    for host in ("", "a b", "user@host", "host/path"):
        with pytest.raises(ConfigError, match="host"):
            make_source(SourceEntry("neon", "d", options={"host": host}), spec, tmp_path, PLACE.broker)


OFFICIAL = """
import asyncio, sys
from pupil_labs.realtime_api import Device, receive_gaze_data
async def main():
    async with Device("127.0.0.1", int(sys.argv[1])) as device:
        status = await device.get_status()
        count = 0
        async for gaze in receive_gaze_data(status.direct_gaze_sensor().url):
            if gaze.timestamp_unix_seconds < 1e9:
                continue
            count += 1
            if count == 100:
                print(type(gaze).__name__, gaze.x, gaze.y, gaze.worn, getattr(gaze, "pupil_diameter_left", None))
                return
asyncio.run(main())
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("length", "kind"), [(9, "GazeData"), (65, "EyestateGazeData"), (89, "EyestateEyelidGazeData")]
)
async def test_the_official_client_accepts_the_fake_phone(official: str, length: int, kind: str) -> None:
    phone = FakeNeon(length=length)
    await phone.start()
    try:
        process = await asyncio.create_subprocess_exec(
            official, "-c", OFFICIAL, str(phone.port), stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        out, err = await asyncio.wait_for(process.communicate(), 60)
        assert process.returncode == 0, err.decode()[-2000:]
        name, _, y, worn, _ = out.decode().split()
        assert (name, float(y), worn) == (kind, 600.0, "True")
    finally:
        await phone.stop()
