"""Sources: rows from this process reach the stream, in bounded memory, and come back after an outage."""

import asyncio
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sine import SINE, SineSource

from eyestream.errors import ConfigError, LinkError
from eyestream.rim.config import BrokerSettings, SourceEntry
from eyestream.rim.files.recordings import Recording, save
from eyestream.rim.sidecar.source_runner import SourceRunner
from eyestream.rim.sources.recording import RecordingSource
from eyestream.rim.sources.registry import make_source
from eyestream.rim.sources.source import Deliver
from eyestream.streams import StreamKey, StreamSpec
from eyestream.wire.raw import RawRows
from eyestream_lab.testing.clocks import PATIENCE_S

BROKER = BrokerSettings("mqtt://localhost")
KEY = StreamKey("d", "features")
SPEC = StreamSpec("features", 1, ("a", "b"), ("1", "1"), rate_hz=50.0)


def entry(kind: str, **options: Any) -> SourceEntry:
    return SourceEntry(kind, "d", options=options)


def recorded(path: Path, rows: int = 5, rate_hz: float = 50.0, names: tuple[str, ...] = ("a", "b")) -> Path:
    t = 100.0 + np.arange(rows) / rate_hz
    t[2:] += 2 / rate_hz  # two instants without a row
    save(Recording(t, np.arange(2.0 * rows).reshape(rows, 2), names), path)
    return path


async def heard(source: Any, seconds: float) -> list[RawRows]:
    rows: list[RawRows] = []
    try:
        async with asyncio.timeout(seconds):
            await source.run(rows.append)
    except TimeoutError:
        pass
    return rows


async def test_a_recording_comes_once_with_its_numbers_and_times(tmp_path: Path) -> None:
    recorded(tmp_path / "r.npz")
    rows = await heard(make_source(entry("recording", file="r.npz", speed=100.0), SPEC, tmp_path, BROKER), 5.0)
    assert [message.seq for message in rows] == [0, 1, 4, 5, 6, 7]
    assert [message.end for message in rows] == [False] * 5 + [True]
    assert len({message.session for message in rows}) == 1
    assert [float(message.t[0]) for message in rows[:2] if message.t is not None] == [100.0, 100.02]


async def test_a_recording_that_repeats_begins_a_later_session(tmp_path: Path) -> None:
    recorded(tmp_path / "r.npz", rows=4)
    source = make_source(entry("recording", file="r.npz", speed=1000.0, repeat=True), SPEC, tmp_path, BROKER)
    sessions = [message.session for message in await heard(source, 0.3)]
    assert sessions == sorted(sessions)
    assert len(set(sessions)) > 2


@pytest.mark.parametrize(
    ("kind", "options", "said"),
    [
        ("nothing", {}, "'nothing' is none of core, lsl, mqtt, neon, recording"),
        ("recording", {}, r"\[source.options\] file: missing; expected a path"),
        ("recording", {"file": "r.npz", "sped": 1}, "sped: unknown key; did you mean speed?"),
        ("recording", {"file": "r.npz", "speed": 0}, "speed"),
        ("recording", {"file": 7}, "file: expected a path, found 7"),
        ("recording", {"file": "other.npz"}, "features of the stream"),
        ("recording", {"file": "slow.npz"}, "rows a second, not 50"),
        ("sine:NOTHING", {}, "there is no 'sine:NOTHING' to import"),
        ("no.such.module:X", {}, "to import"),
        ("math:pi", {}, "is no SourceKind"),
        ("sine:SINE", {"period_s": -1.0}, "period_s"),
    ],
)
def test_what_cannot_be_used_is_refused(tmp_path: Path, kind: str, options: dict[str, Any], said: str) -> None:
    recorded(tmp_path / "r.npz")
    recorded(tmp_path / "other.npz", names=("b", "a"))
    recorded(tmp_path / "slow.npz", rate_hz=2.0)
    with pytest.raises(ConfigError, match=said):
        make_source(entry(kind, **options), SPEC, tmp_path, BROKER)


async def test_the_example_sends_a_row_a_period_also_for_a_lost_eye() -> None:
    source = make_source(entry("sine:SINE", period_s=0.5, blind_every=3), SPEC, Path(), BROKER)
    assert isinstance(source, SineSource)
    rows = await heard(source, 0.5)
    assert [message.seq for message in rows] == list(range(len(rows)))
    assert len(rows) >= 10
    for message in rows:
        assert np.isnan(message.rows).all() == (message.seq % 3 == 0)
        assert message.t is not None
        assert math.isfinite(message.t[0])
    assert SINE.name == "sine"


class Flaky:
    """Away twice, then a row."""

    def __init__(self) -> None:
        self.runs = 0

    async def run(self, deliver: Deliver) -> None:
        self.runs += 1
        if self.runs < 3:
            raise LinkError("nobody there")
        deliver(RawRows(1, 0, np.zeros((1, 2))))


async def test_a_source_that_is_away_is_run_again_and_said_so() -> None:
    told: list[bool] = []
    taken: list[tuple[StreamKey, RawRows]] = []
    source = Flaky()
    runner = SourceRunner({KEY: source}, lambda key, rows: taken.append((key, rows)), lambda: told.append(True))
    assert runner.stands(KEY)
    task = asyncio.create_task(runner.run())
    while source.runs < 2:  # noqa: ASYNC110  it is bounded by the time limit of the test
        await asyncio.sleep(0.01)
    assert not runner.stands(KEY)
    async with asyncio.timeout(PATIENCE_S):
        await task
    assert runner.stands(KEY)
    assert [key for key, _ in taken] == [KEY]
    assert len(told) == 2


def test_a_recording_source_is_what_the_registry_makes(tmp_path: Path) -> None:
    recorded(tmp_path / "r.npz")
    assert isinstance(
        make_source(entry("recording", file=str(tmp_path / "r.npz")), SPEC, Path("/"), BROKER), RecordingSource
    )
