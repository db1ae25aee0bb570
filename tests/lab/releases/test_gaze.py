"""What is measured in released gaze: right on gaze whose answer is known, and different where it must be."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from eyestream.rim.files.gaze import GazeRecording
from eyestream_lab.corpora.kinds import Map, on_grid
from eyestream_lab.corpora.saliency import Field
from eyestream_lab.releases.gaze import (
    EVENTS,
    events_in,
    predicted_deg,
    recognised_by_events,
    saliency,
    saliency_kl,
    shares_on_cells,
    statistics,
)
from eyestream_lab.releases.published import ACTIVITY, Paper, Published, verdict

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
    own, other = recognised_by_events(events_in(raw), (events_in(raw), events_in(noisy)), splits)
    assert own.min() == 1.0
    assert other.mean() <= 0.5  # the same gaze for all four: one name, or shared


def test_saliency_moves_with_gaze() -> None:
    raw = saliency(people())
    assert saliency_kl(raw, raw) == 0.0
    near, far = (saliency_kl(raw, saliency(people(centre=shift))) for shift in (0.5, 8.0))
    assert 0.0 < near < far


def test_a_released_map_lies_on_the_same_cells() -> None:
    """Finer cells, the first row at the top: what is up stays up."""
    gaze = people(spread=0.05, centre=5.0)
    field = Field(cell_deg=1.0)
    fine = sum(
        field.counts(np.stack((r.samples.x, r.samples.y), axis=1)) for own in gaze.values() for r in own.values()
    )
    coarse = np.sum(list(saliency(gaze).values()), axis=0)
    np.testing.assert_array_equal(shares_on_cells(Map(fine, *field.edges())), coarse)


def test_statistics_are_those_of_the_rhythm() -> None:
    held = {
        "P0": {"A": on_grid(moved(1, 0.05, 30), RATE_HZ)},
        "P1": {"A": on_grid(np.zeros((600, 2)), RATE_HZ)},
    }
    told = {name: values.tolist() for name, values in statistics(held).items()}
    assert told["fixations a second"][0] == pytest.approx(2.0, rel=0.2)
    assert told["mean fixation in s"][0] == pytest.approx(0.5, rel=0.3)
    assert told["mean saccade in degrees"][0] == pytest.approx(15.6, rel=0.25)  # two uniform places, 30 degrees wide
    assert np.isnan(told["mean saccade in degrees"][1])  # never moved


def test_a_straight_way_is_predicted_and_noise_spoils_it() -> None:
    t = np.arange(600) / RATE_HZ
    line = {
        f"P{i}": {"A": on_grid(np.column_stack((10 * np.sin(t + i), 5 * np.cos(t + i))), RATE_HZ)} for i in range(4)
    }
    noisy = {
        name: {"A": on_grid(np.random.default_rng(i).normal(0, 10, (600, 2)), RATE_HZ)} for i, name in enumerate(line)
    }
    assert predicted_deg(line, line).max() < 0.01
    assert predicted_deg(noisy, line).min() > 0.5


def test_a_comparison_that_raw_gaze_or_a_guess_would_pass_decides_nothing() -> None:
    raw, few = named(20, 40), named(1, 40)
    near_chance = replace(LINE, share=0.07)
    assert verdict(near_chance, "nlgem", few, raw, 0.025) == "in kind: not decided: a guess would pass too"
    assert verdict(near_chance, "nlgem", raw, raw, 0.025).startswith("in kind: not reproduced")
    near_raw = replace(LINE, share=0.84)
    assert verdict(near_raw, "nlgem", raw, raw, 0.025) == "in kind: not decided: raw gaze would pass too"
    few_people = replace(LINE, paper=replace(LINE.paper, people=1))
    said = "in kind: not decided: raw gaze and a guess would pass too"
    assert verdict(few_people, "nlgem", raw, raw, 0.025) == said
    assert verdict(near_chance, "et-dk2", named(1, 18), named(15, 18), 1 / 18) == "not decided: a guess would pass too"


def test_pieces_of_a_recording_are_no_activities() -> None:
    tasks = Published("k-same-select, k = 2", Paper("mpiidpeye", ACTIVITY, 20, 1 / 3, 0.96), 0.81)
    assert verdict(tasks, "everyday", named(20, 40), named(30, 40), 0.25) == (
        "not judged: the tasks of everyday are pieces of one recording"
    )
    assert verdict(tasks, "gazegraph", named(20, 40), named(30, 40), 0.25).startswith("in kind: ")


LINE = Published("gaussian, sd_deg = 10", Paper("et-dk2", EVENTS, 18, 1 / 18, 0.85), 0.30)


def named(right: int, people: int) -> NDArray[np.float64]:
    """So many of so many people."""
    return np.repeat([1.0, 0.0], [right, people - right])


def test_on_the_papers_own_corpus_shares_are_compared() -> None:
    raw = named(15, 18)
    assert verdict(LINE, "et-dk2", None, raw, 1 / 18) == "not judged: there is no such release"
    assert verdict(LINE, "et-dk2", named(6, 18), raw, 1 / 18) == "reproduced"
    assert verdict(LINE, "et-dk2", named(15, 18), raw, 1 / 18) == "not reproduced: ours is higher by 0.53"
    assert verdict(LINE, "et-dk2", named(0, 18), raw, 1 / 18) == "not reproduced: ours is lower by 0.30"


def test_on_another_corpus_what_is_left_is_compared() -> None:
    """The paper leaves (0.30 - 1/18) / (0.85 - 1/18) = 0.31 of what raw gaze shows above chance."""
    raw = named(20, 40)  # half of them: 0.31 of 0.475 above a chance of 0.025 is 0.17
    assert verdict(LINE, "nlgem", named(7, 40), raw, 0.025) == "in kind: reproduced"
    assert verdict(LINE, "nlgem", raw, raw, 0.025) == "in kind: not reproduced: ours is higher by 0.33"
    assert verdict(LINE, "nlgem", named(7, 40), named(2, 40), 0.025).startswith("not judged: raw gaze is within two")
    hidden = Published("k-same-synth, k = 2", Paper("dgaze", EVENTS, 43, 1 / 43, 0.023), 0.02)
    assert verdict(hidden, "nlgem", named(7, 40), raw, 0.025).startswith("not judged: hardly anybody of dgaze")
    assert verdict(LINE, "everyday", named(7, 40), raw, 0.025) == "in kind: reproduced"
    unprotected = Published("raw", Paper("ran", EVENTS, np.inf, 0.0, None), 0.9262)
    assert verdict(unprotected, "nlgem", raw, raw, 0.025) == "not judged: the figure is of ran"
