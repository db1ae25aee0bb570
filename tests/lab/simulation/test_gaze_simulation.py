"""Simulated gaze: what its labels say is what its samples do, people differ, and the file comes back as it was."""

from argparse import ArgumentParser
from pathlib import Path

import numpy as np
import pytest

from eyestream.errors import ConfigError
from eyestream.rim.files.gaze import load_gaze
from eyestream.rim.files.profiles import load_profile
from eyestream_lab.cli import simulate as command
from eyestream_lab.events.labels import detect
from eyestream_lab.events.scoring import event_agreement
from eyestream_lab.simulation.gaze import GazePerson, gaze_of, gaze_person, simulate_gaze


def test_labels_are_true() -> None:
    """Without noise and pursuits: fixations are slow, saccades are fast and follow the main sequence, blinks lose."""
    rate = 500.0
    person = GazePerson(noise_deg=0.0, pursuits=0.0)
    samples, labels = gaze_of(person, rate, 120.0, np.random.default_rng(1))
    assert set(labels) == {"F", "S", "B"}
    assert not np.isin(labels[~samples.valid], ["F", "S"]).any()
    assert np.isnan(samples.pupil_mm[~samples.valid]).all()
    speed = np.hypot(np.diff(samples.x), np.diff(samples.y)) * rate
    inside = labels[1:] == labels[:-1]
    assert np.nanquantile(speed[inside & (labels[1:] == "F")], 0.5) < 15
    assert np.nanquantile(speed[inside & (labels[1:] == "S")], 0.5) > 50
    edges = np.flatnonzero(np.diff(np.concatenate(([False], labels == "S", [False])).astype(int))).reshape(-1, 2)
    steps = [(end - begin, np.hypot(*(end_at - at))) for begin, end, at, end_at in (
        (a, b, np.array([samples.x[a], samples.y[a]]), np.array([samples.x[b - 1], samples.y[b - 1]])) for a, b in edges
    )]  # fmt: skip
    for count, amplitude in steps[:-1]:
        assert count / rate == pytest.approx(0.021 + 0.0022 * amplitude, abs=0.012)


def test_people_differ_and_come_again() -> None:
    people = [gaze_person(np.random.default_rng(i)) for i in range(8)]
    assert len({person.pupil_mm for person in people}) == 8
    few, many = (list(simulate_gaze(count, 60.0, 5.0, seed=3)) for count in (1, 3))
    np.testing.assert_array_equal(few[0][0].x, many[0][0].x)
    np.testing.assert_array_equal(few[0][1], many[0][1])
    assert not np.array_equal(many[0][0].x, many[1][0].x, equal_nan=True)
    other = next(simulate_gaze(1, 60.0, 5.0, seed=4))
    assert not np.array_equal(few[0][0].x, other[0].x, equal_nan=True)


@pytest.mark.parametrize(
    ("people", "rate_hz", "seconds", "seed"),
    [(0, 60, 10, 1), (1, 5, 10, 1), (1, 60, 0.1, 1), (1, 60, 1e9, 1), (1, 60, 10, -1), (1, 60, float("nan"), 1)],
)
def test_numbers_out_of_range_are_refused(people: int, rate_hz: float, seconds: float, seed: int) -> None:
    with pytest.raises(ConfigError, match="a simulation of gaze needs"):
        next(simulate_gaze(people, rate_hz, seconds, seed))


def run(*words: str) -> None:
    parser = ArgumentParser()
    command.add_parser(parser.add_subparsers())
    command.main(parser.parse_args(["simulate", *words]))


def test_the_command_writes_gaze_that_is_read_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--gaze", "--people", "2", "--seconds", "40", "--seed", "9", "--rate", "120"]
    for name in ("one", "two"):
        run(*words, "--out", str(tmp_path / name))
    assert "2 simulated people, 4800 samples each" in capsys.readouterr().out
    files = sorted((tmp_path / "one").iterdir())
    assert [file.name for file in files] == ["sim-000.csv", "sim-001.csv"]
    assert all(file.read_bytes() == (tmp_path / "two" / file.name).read_bytes() for file in files)
    recording = load_gaze(files[1], load_profile("degrees"))
    samples, labels = list(simulate_gaze(2, 120.0, 40.0, 9))[1]
    assert recording.profile.rate_hz == 120.0
    np.testing.assert_allclose(recording.samples.x, samples.x, atol=1e-4)
    np.testing.assert_array_equal(recording.labels, np.where(labels == "P", "?", labels))
    _, found = detect(recording.profile, recording.samples)
    assert event_agreement(recording.labels, found, "S").f1 > 0.85
