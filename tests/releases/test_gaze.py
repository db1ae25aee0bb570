"""What is measured in released gaze: right on gaze whose answer is known, and different where it must be."""

import numpy as np
import pytest
from numpy.typing import NDArray

from eyestream.lab.releases.gaze import predicted_deg, recognised_by_events, saliency_kl, statistics
from eyestream.lab.releases.published import Published, verdict
from eyestream.offline.corpora.kinds import on_grid
from eyestream.rim.files.gaze import GazeRecording

RATE_HZ = 60.0
TASKS = ("A", "B")


def moved(seed: int, spread: float, hold: int, centre: float = 0.0) -> NDArray[np.float64]:
    """A minute of fixations of `hold` samples with jumps between them."""
    rng = np.random.default_rng(seed)
    count = int(60 * RATE_HZ)
    places = np.repeat(rng.uniform(-15, 15, (count // hold + 1, 2)), hold, axis=0)[:count]
    return places + spread * rng.standard_normal((count, 2)) + (centre, 0.0)


def people(spread: float | None = None, centre: float = 0.0) -> dict[str, dict[str, GazeRecording]]:
    """Four who differ in spread and rhythm, or have one spread."""
    return {
        f"P{i}": {
            task: on_grid(moved(10 * i + at, 0.05 * (i + 1) if spread is None else spread, 12 + 6 * i, centre), RATE_HZ)
            for at, task in enumerate(TASKS)
        }
        for i in range(4)
    }


def test_people_are_recognised_by_their_events_and_not_by_noise() -> None:
    raw = people()
    noisy = {
        name: {
            task: on_grid(np.random.default_rng(n).normal(0, 10, (3600, 2)), RATE_HZ) for n, task in enumerate(TASKS)
        }
        for name in raw
    }
    splits = [(["A"], ["B"]), (["B"], ["A"])]
    own, other = recognised_by_events(raw, (raw, noisy), splits)
    assert own.min() == 1.0
    assert other.max() <= 0.5  # the same gaze for all four: one name, or shared


def test_saliency_moves_with_gaze() -> None:
    raw = people()
    assert saliency_kl(raw, raw) == 0.0
    near, far = (saliency_kl(raw, people(centre=shift)) for shift in (0.5, 8.0))
    assert 0.0 < near < far


def test_statistics_are_those_of_the_rhythm() -> None:
    held = {"P0": {"A": on_grid(moved(1, 0.05, 30), RATE_HZ)}}
    told = statistics(held)
    assert told["fixations a second"] == pytest.approx(2.0, rel=0.2)
    assert told["mean fixation in s"] == pytest.approx(0.5, rel=0.3)
    assert told["mean saccade in degrees"] == pytest.approx(15.6, rel=0.25)  # two uniform places, 30 degrees wide


def test_a_straight_way_is_predicted_and_noise_spoils_it() -> None:
    t = np.arange(600) / RATE_HZ
    line = {
        f"P{i}": {"A": on_grid(np.column_stack((10 * np.sin(t + i), 5 * np.cos(t + i))), RATE_HZ)} for i in range(4)
    }
    noisy = {
        name: {"A": on_grid(np.random.default_rng(i).normal(0, 10, (600, 2)), RATE_HZ)} for i, name in enumerate(line)
    }
    assert predicted_deg(line, line) < 0.01
    assert predicted_deg(noisy, line) > 0.5


def test_a_verdict_needs_the_papers_own_corpus() -> None:
    one = Published("gaussian, sd_deg = 10", "et-dk2", 0.30)
    assert verdict(one, "gazegraph", [0.3], 7).startswith("not judged: the figure is of et-dk2; give its folder")
    assert verdict(one, "et-dk2", None, 18) == "not judged: this cell could not be made"
    assert verdict(one, "et-dk2", [0.4, 0.35, 0.3], 18) == "reproduced"
    assert verdict(one, "et-dk2", [0.8, 0.85, 0.9], 18) == "not reproduced: ours is higher by 0.55"
