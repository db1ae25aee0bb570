"""Simulated people look like the corpus; independent features, white noise in time and equal people do not."""

import subprocess
import sys
from argparse import ArgumentParser
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from eyestream.errors import ConfigError
from eyestream.rim.files import recordings
from eyestream_lab.cli import simulate as command
from eyestream_lab.simulation.people import CONSTANTS, NAMES, Statistics, load_statistics, simulate, simulate_person
from tests.rigs.likeness import COLUMNS, LAGS, Likeness, load_likeness, measure

SECONDS = 700.0  # 1400 rows, as long as the corpus' recordings
PEOPLE = 60
LIMITS = {"deciles": 0.06, "within": 0.12, "between": 0.20, "autocorrelation": 0.09, "share": 0.10}
"""The largest distances that pass; sampling alone costs about half of each."""


def distances(found: Likeness, wanted: Likeness) -> dict[str, float]:
    """Root mean square over features, or over pairs of different features; deciles: mean, in units of the spread.

    A decile counts as at most half the spread away: the upper ones of variances of variances lie anywhere.
    """
    pairs = ~np.eye(len(COLUMNS), dtype=bool)
    spread = wanted.deciles[-1] - wanted.deciles[0]
    spread = np.where(spread > 0, spread, 1.0)
    gaps = {
        "within": (found.within - wanted.within)[pairs],
        "between": (found.between - wanted.between)[pairs],
        "autocorrelation": found.autocorrelation - wanted.autocorrelation,
        "share": found.share - wanted.share,
    }
    deciles = float(np.mean(np.minimum(np.abs(found.deciles - wanted.deciles) / spread, 0.5)))
    return {"deciles": deciles} | {name: float(np.sqrt(np.mean(gap**2))) for name, gap in gaps.items()}


def missed(statistics: Statistics) -> set[str]:
    found = measure(list(simulate(statistics, PEOPLE, SECONDS, seed=5)))
    return {name for name, distance in distances(found, load_likeness()).items() if distance > LIMITS[name]}


@pytest.fixture(scope="module")
def statistics() -> Statistics:
    return load_statistics()


@pytest.fixture(scope="module")
def people(statistics: Statistics) -> list[np.ndarray]:
    return list(simulate(statistics, 20, 400.0, seed=11))


@pytest.mark.long
def test_simulated_people_are_like_the_corpus(statistics: Statistics) -> None:
    assert missed(statistics) == set()


@pytest.mark.long
def test_independent_features_are_seen(statistics: Statistics) -> None:
    """Negative control: variances kept, covariances dropped, within people and between them."""
    alone = [np.diag(np.sqrt((factor**2).sum(axis=1))) for factor in (statistics.person, statistics.basis)]
    assert {"within", "between"} <= missed(replace(statistics, person=alone[0], basis=alone[1]))


@pytest.mark.long
def test_white_noise_in_time_is_seen(statistics: Statistics, monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: rows independent of each other."""
    white = np.zeros((statistics.shares.shape[1], 1024))
    white[:, 0] = 1.0
    monkeypatch.setattr("eyestream_lab.simulation.people.windowed", lambda: white)
    assert "autocorrelation" in missed(statistics)


@pytest.mark.long
def test_equal_people_are_seen(statistics: Statistics) -> None:
    """Negative control: no person has a level of their own; all the spread is within."""
    size = np.sqrt((statistics.basis**2).sum(axis=1, keepdims=True))
    equal = replace(statistics, person=np.zeros_like(statistics.person), basis=statistics.basis / size)
    assert {"share", "between"} <= missed(equal)


@pytest.mark.long
def test_shifted_values_are_seen(statistics: Statistics) -> None:
    """Negative control: the right correlations on the wrong distributions."""
    assert missed(replace(statistics, quantiles=2 * statistics.quantiles)) >= {"deciles"}


def test_the_same_seed_gives_the_same_rows_and_another_does_not(statistics: Statistics) -> None:
    first, again, other = (list(simulate(statistics, 2, 60.0, seed)) for seed in (3, 3, 4))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first[0], other[0])
    assert not np.array_equal(first[0], first[1])


def test_a_person_does_not_depend_on_how_many_there_are(statistics: Statistics) -> None:
    few, many = (list(simulate(statistics, count, 60.0, seed=3)) for count in (1, 3))
    np.testing.assert_array_equal(few[0], many[0])


def test_what_the_definitions_say_holds_in_every_row(people: list[np.ndarray]) -> None:
    rows = np.concatenate(people).astype(np.float64)
    f = {name: rows[:, i] for i, name in enumerate(NAMES)}
    pupil = np.array([name.endswith("_diameter") for name in NAMES])
    lacking = [np.isnan(person[:, pupil]).all() for person in people]
    assert 0 < sum(lacking) < len(people)
    assert all(np.isfinite(person[:, pupil | True if whole else ~pupil]).all()
               for person, whole in zip(people, [not lacks for lacks in lacking], strict=True))  # fmt: skip
    assert (rows[:, ~pupil] >= 0).all()
    for name in CONSTANTS:
        assert not f[name].any()
    counts = np.rint(f["rate_saccades"] * 30)
    np.testing.assert_allclose(f["rate_saccades"] * 30, counts, atol=1e-4)
    for one, two in (("small", "large"), ("positive", "negative")):
        np.testing.assert_allclose(f[f"rate_{one}_saccades"] + f[f"rate_{two}_saccades"], f["rate_saccades"], atol=1e-5)
        ratios = f[f"ratio_{one}_saccades"] + f[f"ratio_{two}_saccades"]
        np.testing.assert_allclose(ratios, counts > 0, atol=1e-5)
    for w in (1, 2, 3, 4):
        words = np.maximum(counts - w + 1, 0)
        np.testing.assert_allclose(f[f"wb{w}_range"], f[f"wb{w}_max"] - f[f"wb{w}_min"])
        np.testing.assert_allclose(f[f"wb{w}_mean"] * 24**w, words, rtol=1e-5)
        assert ((f[f"wb{w}_nonzero"] <= words) & ((f[f"wb{w}_nonzero"] > 0) == (words > 0))).all()
    assert (f["max_fixation_duration"] >= f["mean_fixation_duration"] - 1e-6).all()
    assert not f["mean_blink_duration"][f["blink_rate"] == 0].any()


def test_length_and_type_of_a_person(statistics: Statistics) -> None:
    (features,) = simulate(statistics, 1, 10.9, seed=0)
    assert features.shape == (21, 52)
    assert features.dtype == np.float32
    assert simulate_person(statistics, 5000, np.random.default_rng(1)).shape == (5000, 52)


@pytest.mark.parametrize(
    ("people", "seconds", "seed"), [(0, 60, 1), (1, 0.4, 1), (1, float("nan"), 1), (1, 60, -1), (1, 1e9, 1)]
)
def test_numbers_out_of_range_are_refused(statistics: Statistics, people: int, seconds: float, seed: int) -> None:
    with pytest.raises(ConfigError, match="a simulation needs"):
        list(simulate(statistics, people, seconds, seed))


def run(*words: str) -> None:
    parser = ArgumentParser()
    command.add_parser(parser.add_subparsers())
    command.main(parser.parse_args(["simulate", *words]))


def test_the_command_writes_labelled_recordings(statistics: Statistics, tmp_path: Path) -> None:
    run("--people", "2", "--seconds", "60", "--seed", "9", "--out", str(tmp_path / "new"))
    files = sorted((tmp_path / "new").iterdir())
    assert [file.name for file in files] == ["sim-000.npz", "sim-001.npz"]
    recording = recordings.load(files[1])
    assert recording.simulated
    assert recording.names == NAMES
    np.testing.assert_array_equal(recording.t, np.arange(120) / 2)
    np.testing.assert_array_equal(recording.features, list(simulate(statistics, 2, 60.0, 9))[1])
    with np.load(files[0]) as arrays:
        assert (bool(arrays["simulated"]), int(arrays["generator"]), int(arrays["seed"])) == (True, 2, 9)


def test_a_directory_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="cannot be written"):
        run("--people", "1", "--seconds", "60", "--seed", "9", "--out", str(tmp_path / "file"))


def test_no_scipy_is_needed() -> None:
    code = "import sys, eyestream_lab.simulation.people; sys.exit('scipy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def own_rate(people: list[np.ndarray], deciles: np.ndarray) -> float:
    """Share of people whose second half is nearest to their own first half, by mean features clipped and scaled."""
    low, high = deciles[0], deciles[-1]
    clipped = [np.clip(x[:, COLUMNS], low, high) / np.maximum(high - low, 1e-12) for x in people]
    clipped = [np.where(np.isnan(x), np.nanmedian(np.concatenate(clipped), axis=0), x) for x in clipped]
    first, second = (np.array([np.array_split(x, 2)[half].mean(axis=0) for x in clipped]) for half in (0, 1))
    nearest = np.linalg.norm(first[:, None] - second, axis=2).argmin(axis=0)
    return float((nearest == np.arange(len(people))).mean())


@pytest.mark.long
def test_the_stored_figures_are_those_of_the_corpus_and_people_are_as_easily_told_apart(
    everyday: list[recordings.Recording], statistics: Statistics
) -> None:
    corpus = [person.features for person in everyday]
    shipped = load_likeness()
    for name, distance in distances(measure(corpus), shipped).items():
        assert distance < 1e-4, name
    real = own_rate(corpus, shipped.deciles)
    rates = [own_rate(list(simulate(statistics, len(corpus), SECONDS, seed)), shipped.deciles) for seed in range(8)]
    assert abs(float(np.mean(rates)) - real) < 0.2
    equal = replace(statistics, person=np.zeros_like(statistics.person))
    assert own_rate(list(simulate(equal, len(corpus), SECONDS, 0)), shipped.deciles) < real - 0.2


def test_autocorrelation_falls_from_one_towards_nothing() -> None:
    """The stored figures themselves: slow at one row, nearly forgotten after the window."""
    mean = load_likeness().autocorrelation.mean(axis=1)
    assert dict(zip(LAGS, mean > 0.5, strict=True)) == {1: True, 4: True, 16: True, 32: False, 64: False, 128: False}
    assert (mean[:4] > 0.4).all()
    assert (mean[4:] < 0.3).all()
