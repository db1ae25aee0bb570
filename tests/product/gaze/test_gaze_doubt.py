"""Pixels, radians, parts of a screen, zeros, noise and another rate are noticed; gaze is not taken for any of them."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from eyestream.cli.main import main
from eyestream.gaze.doubt import GAZE_DOUBTS, GazeDoubts
from eyestream.gaze.features import NAMES as FEATURES
from eyestream.gaze.intake import take_in
from eyestream.rim.files import recordings
from eyestream.rim.files.profiles import load_profile
from eyestream.rim.files.recordings import Recording
from eyestream.rim.sources.gaze import GazeFeeder, columns_of
from eyestream_lab.simulation.gaze import simulate_gaze

RATE_HZ = 120.0
DEGREES = load_profile("degrees").at_rate(RATE_HZ)
Gaze = NDArray[np.float64]


def gaze(rate_hz: float = RATE_HZ, seed: int = 1) -> Gaze:
    """A minute of (x, y) in degrees; NaN where the eye is lost."""
    ((samples, _),) = simulate_gaze(1, rate_hz, 60.0, seed)
    return np.stack((samples.x, samples.y), axis=1)


def judged(points: Gaze, pieces: int = 1, seconds: float = 60.0) -> str | None:
    doubts = GazeDoubts(DEGREES)
    t = np.arange(len(points)) / RATE_HZ
    for part in np.array_split(np.arange(len(points)), pieces):
        doubts.take(points[part], None, take_in(DEGREES, t[part], points[part]))
    return doubts.judge(seconds)


NONSENSE: list[tuple[Callable[[Gaze], Gaze], str]] = [
    (lambda points: np.array([960.0, 540.0]) + 40.0 * points, "outside"),
    (np.radians, "still"),
    (lambda points: 0.5 + points / 60.0, "still"),
    (np.zeros_like, "same"),
    (lambda points: np.random.default_rng(1).uniform(-20.0, 20.0, points.shape), "noise"),
    (lambda points: points[::3], "slow"),
    (lambda points: np.repeat(points, 2, axis=0), "fast"),
]
NAMES = ["pixels", "radians", "parts of a screen", "zeros", "noise", "slow", "fast"]


@pytest.mark.parametrize(("nonsense", "word"), NONSENSE, ids=NAMES)
@pytest.mark.parametrize("pieces", [1, 700])
def test_nonsense_is_noticed(nonsense: Callable[[Gaze], Gaze], word: str, pieces: int) -> None:
    assert judged(nonsense(gaze()), pieces) == word
    assert word in GAZE_DOUBTS


@pytest.mark.parametrize("seed", range(20))
def test_gaze_is_not_taken_for_nonsense(seed: int) -> None:
    points = gaze(seed=seed)
    assert judged(points) is None
    assert judged(np.where(np.arange(len(points))[:, None] < 5000, np.nan, points)) is None
    assert judged(np.full_like(points, np.nan)) is None


def test_a_judgement_is_of_what_came_since_the_one_before() -> None:
    doubts, points = GazeDoubts(DEGREES), gaze()
    t = np.arange(len(points)) / RATE_HZ
    for part, expected in ((np.zeros_like(points), "same"), (points, None)):
        doubts.take(part, None, take_in(DEGREES, t, part))
        assert doubts.judge(60.0) == expected


@pytest.mark.parametrize(("nonsense", "word"), [(np.radians, "still"), (lambda points: points, None)])
async def test_a_source_judges_its_gaze_once_a_minute(
    nonsense: Callable[[Gaze], Gaze], word: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    feeder = GazeFeeder(None, DEGREES)  # type: ignore[arg-type]
    points, now = nonsense(gaze(seed=2)), [0.0]
    monkeypatch.setattr(GazeFeeder, "_now", lambda self: now[0])
    for second in range(62):
        now[0] = float(second)
        part = points[120 * (second % 60) : 120 * (second % 60) + 120]
        feeder.take(columns_of(DEGREES, second + np.arange(len(part)) / RATE_HZ, part))
        feeder._work()
        assert feeder.doubt == (word if second >= 60 else None)


def test_a_file_in_another_unit_is_told_of(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    points = 960.0 + 40.0 * gaze()
    lines = [f"{i / RATE_HZ:.6f},{x:.4f},{y:.4f},1" for i, (x, y) in enumerate(points)]
    (tmp_path / "one.csv").write_text("\n".join(["t_s,x_deg,y_deg,valid", *lines]) + "\n")
    main(["extract", str(tmp_path / "one.csv"), "--profile", "degrees", "--out", str(tmp_path / "rows")])
    assert f"warning: {tmp_path}/one.csv: {GAZE_DOUBTS['outside']}" in capsys.readouterr().err


def test_a_recording_in_which_everything_is_missing_costs_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lost = Recording(np.arange(80) / 2.0, np.full((80, 52), np.nan), FEATURES)
    recordings.save(lost, tmp_path / "lost.npz")
    words = ["privatize", str(tmp_path / "lost.npz"), "--calibration", "everyday-klt-32", "--epsilon", "1"]
    with pytest.raises(SystemExit, match="2"):
        main([*words, "--out", str(tmp_path / "out")])
    said = capsys.readouterr()
    assert said.out == ""
    assert "every value of its 80 rows is missing, so nothing is released and nothing spent" in said.err
    assert not (tmp_path / "out").exists()
