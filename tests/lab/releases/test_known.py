"""Attackers who hold all raw recordings: each finds what it is for, and chance where nothing of a person is left."""

import numpy as np
import pytest
from numpy.typing import NDArray

from eyestream.rim.files.gaze import GazeRecording
from eyestream_lab.corpora.kinds import on_grid
from eyestream_lab.releases.known import Known, known_by_gaze, known_by_rows
from tests.lab.releases.test_gaze import RATE_HZ, moved

Array = NDArray[np.float64]
TASKS = ("a", "b")
PEOPLE = 6
World = dict[str, dict[str, GazeRecording]]


def world(seed: int) -> dict[str, dict[str, Array]]:
    """Gaze that jumps around one place for everybody, 20 s a recording and a sample more for each person."""
    return {
        f"P{i}": {task: moved(1000 * seed + 10 * i + at, 0.2, 20)[: 1200 + i] for at, task in enumerate(TASKS)}
        for i in range(PEOPLE)
    }


def recorded(places: dict[str, dict[str, Array]]) -> World:
    return {name: {task: on_grid(xy, RATE_HZ) for task, xy in tasks.items()} for name, tasks in places.items()}


RAW = world(1)


def found(released: World) -> Known:
    return known_by_gaze(recorded(RAW), released)


def shuffled(rng: np.random.Generator, xy: Array) -> Array:
    return xy[rng.permutation(len(xy))][:900]


def test_samples_that_are_raw_ones_name_their_person_wherever_they_stand() -> None:
    """One sample in ten is raw, at four decimals, at another time and among samples of nobody."""
    rng = np.random.default_rng(2)
    released = {
        name: {
            task: on_grid(
                np.concatenate((rng.uniform(-12, 12, (810, 2)), np.round(shuffled(rng, xy)[:90], 4))), RATE_HZ
            )
            for task, xy in tasks.items()
        }
        for name, tasks in RAW.items()
    }
    known = found(released)
    assert known["copies"] == (1.0, 1.0)
    assert known["timeline"][0] < 0.5
    assert known["number of samples"] == pytest.approx((1 / PEOPLE, 1 / PEOPLE))


def test_places_are_named_through_noise() -> None:
    rng = np.random.default_rng(3)
    released = {
        name: {task: on_grid(shuffled(rng, xy + rng.normal(0, 0.1, xy.shape)), RATE_HZ) for task, xy in tasks.items()}
        for name, tasks in RAW.items()
    }
    assert found(released)["places"] == (1.0, 1.0)


def test_moments_are_named_through_much_noise() -> None:
    rng = np.random.default_rng(4)
    released = {
        name: {task: on_grid(xy + rng.normal(0, 5.0, xy.shape), RATE_HZ) for task, xy in tasks.items()}
        for name, tasks in RAW.items()
    }
    known = found(released)
    assert known["gaze at each moment"] == (1.0, 1.0)
    assert known["number of samples"] == (1.0, 1.0)


def test_a_timeline_is_enough() -> None:
    """Everybody's gaze is that of one stranger; what is left of a person is when their events were."""
    stranger = world(9)["P0"]
    raw = {name: {task: labelled(xy) for task, xy in tasks.items()} for name, tasks in RAW.items()}
    released = {
        name: {task: on_grid(np.resize(stranger[task], xy.shape), RATE_HZ, raw[name][task].labels)
               for task, xy in tasks.items()}
        for name, tasks in RAW.items()
    }  # fmt: skip
    known = known_by_gaze(raw, released)
    assert known["timeline"] == (1.0, 1.0)
    assert known["copies"][0] < 0.5


def labelled(xy: Array) -> GazeRecording:
    """Samples that move by more than a degree are of a saccade."""
    fast = np.hypot(*np.diff(xy, axis=0, prepend=xy[:1]).T) > 1.0
    return on_grid(xy, RATE_HZ, np.where(fast, "S", "F"))


def test_nothing_of_a_person_is_nothing_found() -> None:
    """Gaze of strangers with other lengths. Of 30 decisions of a guess, more than 13 are right once in 4,000 seeds."""
    strangers = {name: {task: xy[:900] for task, xy in tasks.items()} for name, tasks in world(77).items()}
    for name, (one, _) in found(recorded(strangers)).items():
        assert one < 0.45, name


def test_a_recording_without_a_sample_is_no_evidence() -> None:
    lost = {name: {task: np.full_like(xy, np.nan)[:900] for task, xy in own.items()} for name, own in RAW.items()}
    for one, every in found(recorded(lost)).values():
        assert (one, every) == pytest.approx((1 / PEOPLE, 1 / PEOPLE))


def test_assignments_are_tried_where_people_are_few() -> None:
    rng = np.random.default_rng(5)
    rows = {f"P{i:02}": {task: rng.standard_normal((30, 3)) for task in TASKS} for i in range(9)}
    few = dict(list(rows.items())[:4])
    assert known_by_rows(few, few) == {"rows": (1.0, 1.0)}
    assert known_by_rows(rows, rows) == {}
