"""Configured sources of gaze: what is refused, what a recording gives, records of several forms."""

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eyestream.errors import ConfigError, OperatorError
from eyestream.gaze.features import NAMES
from eyestream.gaze.front_end import FrontEnd
from eyestream.rim.config import BrokerSettings, SourceEntry
from eyestream.rim.files.gaze import load_gaze
from eyestream.rim.files.gaze_columns import GazeColumns
from eyestream.rim.files.profiles import load_profile
from eyestream.rim.sources.gaze import DeliverGaze, GazeFeeder, columns_of, widths
from eyestream.rim.sources.gaze_recording import GazePlayer
from eyestream.rim.sources.registry import make_source, named_source
from eyestream.streams import StreamSpec
from eyestream.wire.raw import RawRows
from eyestream_lab.testing.clocks import PATIENCE_S, simulated

SPEC = StreamSpec("features", 1, NAMES, ("1",) * 52, rate_hz=2.0, window_s=30.0)
BROKER = BrokerSettings("mqtt://localhost")


def entry(kind: str, profile: str | None = None, rate_hz: float | None = None, **options: Any) -> SourceEntry:
    return SourceEntry(kind, "d", profile=profile, rate_hz=rate_hz, options=options)


def recorded(path: Path, seconds: float = 36.0, rate_hz: float = 100.0) -> Path:
    rng = np.random.default_rng(1)
    t = 50.0 + np.arange(round(seconds * rate_hz)) / rate_hz
    x = np.repeat(rng.normal(0, 6, len(t) // 30 + 1), 30)[: len(t)] + rng.normal(0, 0.02, len(t))
    lines = [f"{a:.3f},{b:.4f},{c:.4f}" for a, b, c in zip(t, x, rng.normal(0, 0.02, len(t)), strict=True)]
    path.write_text("\n".join(["t_s,x_deg,y_deg", *lines]) + "\n")
    return path


async def test_a_recording_of_gaze_gives_the_rows_of_its_front_end(tmp_path: Path) -> None:
    path = recorded(tmp_path / "g.csv")
    source = make_source(entry("recording", "degrees", 100.0, file="g.csv", speed=200.0), SPEC, tmp_path, BROKER)
    assert isinstance(source, GazePlayer)
    heard: list[RawRows] = []
    await asyncio.wait_for(source.run(heard.append), PATIENCE_S)
    *rows, end = heard
    assert end.end
    whole = FrontEnd(load_profile("degrees").at_rate(100.0)).feed(load_gaze(path, load_profile("degrees")).samples)
    assert len(whole) == 12
    np.testing.assert_array_equal(np.concatenate([message.rows for message in rows]), whole.values)
    np.testing.assert_allclose(np.concatenate([message.t for message in rows if message.t is not None]), whole.t)
    assert [message.seq for message in rows] == list(range(len(whole)))


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (entry("mqtt"), "rate_hz: missing"),
        (entry("mqtt", rate_hz=7.0), "rate_hz"),
        (entry("mqtt", "no-such-profile", 200.0), "not one of"),
        (entry("mqtt", "neon", 50.0), "made for 200 samples a second, not 50"),
        (entry("mqtt", rate_hz=200.0, schema=-1), "schema"),
        (entry("mqtt", rate_hz=200.0, host="x"), "host: unknown key"),
        (entry("recording", rate_hz=200.0, file="g.csv"), "without a profile is no source of gaze"),
        (entry("recording", "degrees", 250.0, file="g.csv"), "made for 250 samples a second, not 100"),
        (entry("recording", "degrees", 100.0, file="none.csv"), "no such file"),
        (entry("sine:SINE", "degrees", 100.0), "is no source of gaze"),
    ],
)
def test_what_cannot_be_used_is_refused(tmp_path: Path, made: SourceEntry, said: str) -> None:
    recorded(tmp_path / "g.csv", 2.0)
    with pytest.raises(OperatorError, match=said):
        make_source(made, SPEC, tmp_path, BROKER)


def test_gaze_makes_rows_of_the_52_features_alone(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="52 features, 2 a second"):
        make_source(entry("mqtt", rate_hz=200.0), StreamSpec("s", 1, ("a",), ("1",), 2.0), tmp_path, BROKER)


def test_the_memory_of_a_front_end_is_known_before_anything_flows() -> None:
    profile = named_source(entry("mqtt", rate_hz=200.0)).profile
    assert profile is not None
    assert 1.0 < profile.memory_s < 1.6
    assert named_source(entry("recording", file="rows.npz")).profile is None


def test_columns_follow_the_profile() -> None:
    neon = load_profile("neon")
    assert list(widths(neon)) == [2, 4, 5]
    records = columns_of(neon, np.array([1.0]), np.array([[800.0, 600.0, 3.0, 4.0, np.nan]]))
    assert records.pupil is not None
    assert records.valid is not None
    assert records.pupil.tolist() == [[3.0, 4.0]]
    assert records.valid.tolist() == [0.0]
    assert columns_of(neon, np.array([1.0]), np.array([[800.0, 600.0]])).pupil is None


class Played:
    """Delivers a part each 50 ms, and ends."""

    def __init__(self, parts: list[GazeColumns]) -> None:
        self.parts = parts

    async def run(self, deliver: DeliverGaze) -> None:
        for part in self.parts:
            deliver(part)
            await asyncio.sleep(0.05)


async def lived(parts: list[GazeColumns], most: int = 10**9) -> tuple[GazeFeeder, list[RawRows]]:
    """A feeder at its end, and what it delivered; at no moment did more samples wait than `most`."""
    feeder, heard = GazeFeeder(Played(parts), load_profile("mqtt").at_rate(200.0)), []

    def take(records: GazeColumns) -> None:
        feeder.take(records)
        assert feeder._held <= most

    async with asyncio.TaskGroup() as group:
        group.create_task(feeder.rows(heard.append))
        group.create_task(feeder.run(take))
    return feeder, heard


def test_records_of_several_forms_are_taken() -> None:
    parts = []
    for begin in np.arange(0.0, 40.0, 0.05):
        t, gaze = begin + np.arange(10) / 200.0, np.zeros((10, 2))
        parts.append(
            [
                GazeColumns(t, gaze),
                GazeColumns(t, gaze, pupil=np.full((10, 1), 3.0)),
                GazeColumns(t, gaze, valid=np.zeros(10)),
                GazeColumns(t[:0], gaze[:0]),
                GazeColumns(np.full(10, np.nan), np.full((10, 2), 1e308), valid=np.ones(10)),
            ][len(parts) % 5]
        )
    feeder, heard = simulated(lived(parts))
    *rows, end = heard
    assert [message.seq for message in rows] == list(range(len(rows)))
    assert len(rows) > 15
    assert (end.seq, len(end.rows), end.end) == (len(rows), 0, True)
    assert feeder.live.clock.unbelieved >= 1600


def test_a_flood_pushes_nothing_out() -> None:
    """Of a second that has a hundred times the samples, all others go on: the rows differ no longer than they may."""
    rng = np.random.default_rng(1)
    quiet, flood = [], []
    for begin in np.arange(0.0, 40.0, 0.05):
        t = begin + np.arange(10) / 200.0
        gaze = 5.0 * np.round(rng.normal(0.0, 1.0, (10, 2)))
        quiet.append(GazeColumns(t, gaze))
        many = np.repeat(quiet[-1:], 1000) if 4.0 < begin < 5.0 else quiet[-1:]
        flood.append(GazeColumns(*(np.concatenate([getattr(one, name) for one in many]) for name in ("time", "gaze"))))
    (_, wanted), (feeder, found) = (simulated(lived(parts, 1024)) for parts in (quiet, flood))
    assert feeder.live.waiting.crowded > 150_000
    assert len(found) == len(wanted) > 15
    for one, other in zip(wanted, found, strict=True):
        np.testing.assert_array_equal(one.rows, other.rows)
