"""Bad gaze, case by case (gaze.jsonl): each is refused by its name, or an invalid sample; never a change of cadence."""

import base64
import contextlib
import json
import struct
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eyestream.errors import ConfigError, PayloadError, RecordingError
from eyestream.gaze.clock_map import PERIOD_S
from eyestream.gaze.intake import take_in
from eyestream.gaze.live import DELAY_S, LiveFrontEnd, LiveRows
from eyestream.gaze.outlets import Channel, Outlet, Wanted, taking
from eyestream.gaze.profile_text import parse_profile
from eyestream.gaze.samples import Samples
from eyestream.rim.files.gaze import load_gaze
from eyestream.rim.files.gaze_columns import GazeColumns
from eyestream.rim.files.profiles import load_profile
from eyestream.rim.sources.core import read_datum
from eyestream.rim.sources.gaze import widths
from eyestream.rim.sources.neon import _Stream
from eyestream.wire.gaze import decode_gaze, encode_gaze
from eyestream.wire.rtp import read_gaze, read_reports, read_rtp
from eyestream.wire.rtsp import Description
from eyestream_lab.files.inspection import profile_text
from eyestream_lab.simulation.gaze import GazePerson, gaze_of

CASES = [json.loads(line) for line in (Path(__file__).with_name("gaze.jsonl")).read_text().splitlines()]
RATE_HZ = 100.0


def of(kind: str) -> list[Any]:
    found = [pytest.param(case, id=case["name"]) for case in CASES if case["kind"] == kind]
    assert len(found) > 5
    return found


@pytest.mark.parametrize("case", of("sample"))
def test_samples(case: dict[str, Any]) -> None:
    def numbers(key: str) -> Any:
        return None if key not in case else [[float(text) for text in case[key]]]

    profile = load_profile(case["profile"])
    valid = [float(case["valid"])] if "valid" in case else None
    taken = take_in(profile, [1.0], numbers("gaze"), pupil=numbers("pupil"), valid=valid)
    assert bool(taken.valid[0]) == (case["says"] != "lost")
    if case["says"] == "no pupil":
        assert np.isnan(taken.pupil_mm[0])


def changed(samples: Samples, how: dict[str, Any]) -> tuple[Samples, np.ndarray]:
    """What a case makes of good samples, and when it arrives."""
    t, x, valid, arrived = samples.t.copy(), samples.x.copy(), samples.valid.copy(), samples.t + 0.001
    late = t > 1.0
    if how.get("repeat"):
        t[late] = t[np.flatnonzero(late)[0]]
    if how.get("backward"):
        t[late] = 2.0 - t[late]
    if how.get("none"):
        t[:] = np.nan
    if "unit" in how:
        t *= how["unit"]
    if "step" in how:
        t[arrived > 40.0] += how["step"]
    if "pace" in how:
        t += (how["pace"] - 1.0) * np.maximum(t - 40.0, 0.0)
    if how.get("twice"):
        return _kept(
            Samples(t, x, samples.y, samples.pupil_mm, valid), np.repeat(np.arange(len(t)), 2)
        ), arrived.repeat(2)
    if how.get("lost"):
        valid[:] = False
    if how.get("frozen"):
        x[late] = 1.5
        return Samples(t, x, np.where(late, 0.5, samples.y), samples.pupil_mm, valid | late), arrived
    if "wrong" in how:
        t[500::200] = np.resize([float(text) for text in how["wrong"]], len(t[500::200]))
    keep = np.ones(len(t), dtype=bool)
    if "silence" in how:
        first, last = how["silence"]
        keep = (t < first) | (t > last)
    return _kept(Samples(t, x, samples.y, samples.pupil_mm, valid), keep), arrived[keep]


def _kept(samples: Samples, keep: np.ndarray) -> Samples:
    return Samples(*(getattr(samples, name)[keep] for name in ("t", "x", "y", "pupil_mm", "valid")))


@pytest.mark.parametrize("case", of("times"))
def test_times(case: dict[str, Any]) -> None:
    how, says = case["how"], case["says"]
    person = GazePerson(pursuits=0.0)
    good, _ = gaze_of(person, RATE_HZ * how.get("rate", 1.0), 100.0, np.random.default_rng(1))
    samples, arrived = changed(good, how)
    live = LiveFrontEnd(load_profile("mqtt").at_rate(RATE_HZ))
    made: list[tuple[float, LiveRows]] = []
    for now in np.arange(0.1, 101.0, 0.1).tolist():
        which = (arrived > now - 0.1) & (arrived <= now)
        if which.any():
            live.take(_kept(samples, which), arrived[which])
        made += [(now, rows) for rows in live.due(now)]
    if says == "no session":
        assert made == []
        return
    sessions = 2 if says == "two sessions" else 1
    assert sum(rows.end for _, rows in made) == (1 if says == "it ends" else sessions - 1)
    for session in range(sessions):
        own = [(now, rows.number) for now, rows in made if rows.session == session and not rows.end]
        assert [number for _, number in own] == list(range(len(own)))
        assert len(own) > 15
        np.testing.assert_allclose(np.diff([now for now, _ in own]), 0.5, atol=0.101)
    ends = [now for now, rows in made if not rows.end]
    lost = np.array([np.isnan(rows.values).all() for _, rows in made if not rows.end])
    if says == "it ends":  # within two periods of the votes on its map, and no other one begins
        assert made[-1][1].end
        assert made[-1][0] < 41.0 + 2 * PERIOD_S
        return
    if says == "nan":
        assert lost[6:].all()  # what came in the first seconds is in the first windows
    elif says == "nan in between":
        assert lost.any()
        assert not lost[0]
        assert not lost[-1]
    elif says == "nan later":  # half of a window, and what samples are given for their way
        assert not lost[np.array(ends) < 40.0 + DELAY_S].any()
        assert lost[np.array(ends) > 57.0 + DELAY_S].all()
    else:
        assert not lost.any()
    assert len(ends) > (70 if sessions == 2 else 130)


@pytest.mark.parametrize("case", of("neon"))
async def test_packets_of_neon(case: dict[str, Any]) -> None:
    refused: Counter[str] = Counter()
    heard: list[GazeColumns] = []
    stream = _Stream("127.0.0.1", Description("", 97, 90_000), heard.append, refused)
    if case["report"]:
        report = struct.pack("!BBHIIIIII", 0x80, 200, 6, 7, 3_900_000_000, 0, 900, 1, 1)
        stream.datagram_received(report, ("127.0.0.1", 1))
    stream.datagram_received(bytes.fromhex(case["hex"]), ("127.0.0.1", 1))
    assert refused == {case["says"]: 1}
    stream.datagram_received(bytes.fromhex(case["hex"]), ("127.0.0.2", 1))
    assert refused["not from the phone"] == 1
    assert heard == []


@pytest.mark.parametrize("case", of("core"))
def test_messages_of_core(case: dict[str, Any]) -> None:
    assert read_datum([bytes.fromhex(part) for part in case["hex"]]) == case["says"]


@pytest.mark.parametrize("case", of("mqtt"))
def test_messages_of_mqtt(case: dict[str, Any]) -> None:
    with pytest.raises(PayloadError) as refusal:
        decode_gaze(bytes.fromhex(case["hex"]), widths(load_profile("mqtt")), 1)
    assert refusal.value.reason == case["says"]


@pytest.mark.parametrize("case", of("outlet"))
def test_outlets(case: dict[str, Any]) -> None:
    channels = tuple(Channel(*told) for told in case["channels"])
    outlet = Outlet("o", "Gaze", "s", case["rate_hz"], case["numbers"], channels)
    with pytest.raises(ValueError) as refusal:  # noqa: PT011  what it must say is in the case
        taking(outlet, load_profile("lsl").at_rate(200.0), Wanted(tuple(case["wanted"].get("gaze", ()))))
    assert case["says"] in str(refusal.value)


@pytest.mark.parametrize("case", of("profile"))
def test_profiles(case: dict[str, Any]) -> None:
    text = profile_text(load_profile("mqtt").at_rate(200.0))
    assert case["old"] in text
    with pytest.raises(ConfigError) as refusal:
        parse_profile(text.replace(case["old"], case["new"], 1))
    assert case["says"] in str(refusal.value)


@pytest.mark.parametrize("case", of("file"))
def test_files(case: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / f"gaze{case['suffix']}"
    path.write_bytes(base64.b64decode(case["base64"]))
    with pytest.raises((RecordingError, ConfigError)) as refusal:
        load_gaze(path, load_profile("degrees"))
    assert str(path) in str(refusal.value)
    assert case["says"] in str(refusal.value)


def test_mutated_bytes_never_crash_a_reader() -> None:
    """Cut, flipped and random bytes: an answer, or one word of the list."""
    rng = np.random.default_rng(9)
    datum = bytes.fromhex(next(case["hex"][1] for case in CASES if case["name"] == "two-dimensional gaze"))
    seeds = [encode_gaze(np.arange(3.0), np.zeros((3, 3)), 1), datum, bytes.fromhex("80610001")]
    seeds += [struct.pack("!BBHIIIIII", 0x80, 200, 6, 5, 1, 2, 900, 1, 1), b"\x80\x61" + bytes(103)]
    for number in range(6000):
        data = bytearray(seeds[number % len(seeds)])
        for _ in range(int(rng.integers(1, 6))):
            data[int(rng.integers(len(data)))] = int(rng.integers(256))
        cut = bytes(data[: int(rng.integers(len(data) + 1))]) if number % 2 else bytes(data)
        packet = read_rtp(cut)
        if packet is not None:
            read_gaze(packet.payload)
        read_reports(cut)
        assert isinstance(read_datum([b"gaze.", cut]), GazeColumns | str)
        with contextlib.suppress(PayloadError):
            t, values = decode_gaze(cut, (2, 3), 1)
            assert len(t) == len(values)
