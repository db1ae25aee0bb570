"""Gaze in XDF: read by pyxdf from files that are written here byte by byte; what is not whole is named."""

import contextlib
import gzip
import struct
import sys
from pathlib import Path

import numpy as np
import pytest

from eyestream.errors import ConfigError, RecordingError
from eyestream.gaze.profile import Profile
from eyestream.rim.files.extraction import extract
from eyestream.rim.files.gaze import load_gaze
from eyestream.rim.files.profiles import load_profile

CHANNELS = (("x_deg", "deg"), ("y_deg", "degrees"), ("pupil_right_mm", "mm"), ("pupil_left_mm", "millimeters"))


def chunk(tag: int, content: bytes) -> bytes:
    return b"\x04" + struct.pack("<IH", len(content) + 2, tag) + content


def header(stream: int, channels: tuple[tuple[str, str], ...], kind: str = "Gaze") -> bytes:
    described = "".join(f"<channel><label>{label}</label><unit>{unit}</unit></channel>" for label, unit in channels)
    text = (
        f"<?xml version='1.0'?><info><name>eye</name><type>{kind}</type><channel_count>{len(channels)}</channel_count>"
        f"<nominal_srate>100</nominal_srate><channel_format>double64</channel_format>"
        f"<desc><channels>{described}</channels></desc></info>"
    )
    return chunk(2, struct.pack("<I", stream) + text.encode())


def samples(stream: int, t: np.ndarray, values: np.ndarray) -> bytes:
    rows = b"".join(b"\x08" + struct.pack("<d", when) + row.tobytes() for when, row in zip(t, values, strict=True))
    return chunk(3, struct.pack("<I", stream) + b"\x04" + struct.pack("<I", len(t)) + rows)


def footer(stream: int) -> bytes:
    return chunk(6, struct.pack("<I", stream) + b"<?xml version='1.0'?><info></info>")


def gaze(n: int = 4000) -> tuple[np.ndarray, np.ndarray]:
    t = 1000.0 + np.arange(n) / 100.0
    x = np.where(np.arange(n) % 40 < 20, 2.0, -3.0) + 0.01 * np.sin(np.arange(n))
    return t, np.stack([x, np.cos(t), np.full(n, 3.0), np.full(n, 3.5)], axis=1)


def xdf(*streams: bytes) -> bytes:
    return b"XDF:" + chunk(1, b"<?xml version='1.0'?><info><version>1.0</version></info>") + b"".join(streams)


def whole(channels: tuple[tuple[str, str], ...] = CHANNELS, stream: int = 1) -> bytes:
    t, values = gaze()
    return header(stream, channels) + samples(stream, t, values[:, : len(channels)]) + footer(stream)


def profile() -> Profile:
    return load_profile("lsl")


@pytest.mark.parametrize("name", ["a.xdf", "a.xdf.gz"])
def test_a_recording(tmp_path: Path, name: str) -> None:
    other = header(2, (("volts", "mV"),), "EEG") + samples(2, np.arange(3.0), np.ones((3, 1))) + footer(2)
    data = xdf(other, whole())
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    recording = load_gaze(tmp_path / name, profile())
    t, values = gaze()
    np.testing.assert_allclose(recording.samples.t, t)
    np.testing.assert_allclose(recording.samples.x, values[:, 0])
    np.testing.assert_allclose(recording.samples.pupil_mm, 3.25)
    assert recording.profile.rate_hz == 100.0
    assert len(extract(recording).t) == 20


def units(**changed: str) -> tuple[tuple[str, str], ...]:
    return tuple((label, changed.get(label, unit)) for label, unit in CHANNELS)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (xdf(whole())[:-1], "cut off"),
        (xdf(whole())[:-200], "cut off"),
        (xdf(whole())[: len(xdf(whole())) // 2], "cut off"),
        (xdf(whole())[: -len(footer(1))], "1 of 1 streams have no end"),
        (b"", "is not an XDF file"),
        (b"XDF;" + xdf(whole())[4:], "is not an XDF file"),
        (b"XDF:\x03" + bytes(40), "is a damaged XDF file"),
        (xdf(header(1, CHANNELS)[:60].ljust(60) + footer(1)), "damaged|cut off"),
        (xdf(whole(units(x_deg=""))), "channel 'x_deg': it has no unit, 'deg' is wanted by profile lsl"),
        (xdf(whole(units(y_deg="px"))), "channel 'y_deg': its unit is 'px', 'deg' is wanted"),
        (xdf(whole(units(pupil_left_mm="a.u."))), "channel 'pupil_left_mm': its unit is 'a.u.', 'mm' is wanted"),
        (xdf(whole(CHANNELS[:1])), "no stream has the channels 'x_deg', 'y_deg' of profile lsl: one is wanted"),
        (xdf(whole(CHANNELS[:3])), "no channel 'pupil_left_mm'"),
        (xdf(whole(), whole(stream=2)), "2 streams have the channels"),
        (xdf(header(1, CHANNELS) + footer(1)), "holds no samples"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(tmp_path: Path, data: bytes, message: str) -> None:
    (tmp_path / "a.xdf").write_bytes(data)
    with pytest.raises(RecordingError, match=message) as refused:
        load_gaze(tmp_path / "a.xdf", profile())
    assert "a.xdf: " in str(refused.value)


def test_damage_anywhere_is_an_error_of_the_operator_or_none(tmp_path: Path) -> None:
    data, rng = xdf(whole()), np.random.default_rng(4)
    for _ in range(60):
        damaged = bytearray(data)
        for at in rng.integers(0, min(2000, len(data)), 3):
            damaged[at] = int(rng.integers(256))
        (tmp_path / "a.xdf").write_bytes(bytes(damaged))
        with contextlib.suppress(RecordingError):
            load_gaze(tmp_path / "a.xdf", profile())


def test_time_is_in_seconds(tmp_path: Path) -> None:
    (tmp_path / "a.xdf").write_bytes(xdf(whole()))
    with pytest.raises(ConfigError, match='needs time_unit = "s"'):
        load_gaze(tmp_path / "a.xdf", load_profile("gazebase"))


def test_without_the_library_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyxdf", None)
    (tmp_path / "a.xdf").write_bytes(xdf(whole()))
    with pytest.raises(ConfigError, match=r"pip install 'eyestream-lab\[xdf\]'"):
        load_gaze(tmp_path / "a.xdf", profile())
