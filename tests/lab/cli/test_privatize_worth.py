"""`eyestream privatize` looks before it spends: lost baselines, empty rows, one person under two names."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from eyestream.cli.main import main
from eyestream.rim.files import recordings
from eyestream.rim.files.recordings import Recording
from eyestream.rim.ledger.reading import read_ledger
from eyestream_lab.simulation.people import NAMES, load_statistics, simulate

Array = NDArray[np.float64]
BASELINE = 128
"""Rows of `everyday-klt-anchored-64`: two chunks."""


@pytest.fixture(scope="module")
def person() -> Array:
    """A simulated person, 320 rows in whom every feature has values."""
    people = simulate(load_statistics(), 8, 160.0, seed=3)
    return next(np.asarray(rows, np.float64) for rows in people if np.isfinite(rows).all())


def lost(person: Array, begin: int, end: int) -> Array:
    rows = person.copy()
    rows[begin:end] = np.nan
    return rows


def privatized(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], people: dict[str, Array], *options: str
) -> tuple[int, str, int]:
    """Exit code, what was said, and how many chunks the ledger has booked."""
    ledger, names = tmp_path / "L", []
    for name, rows in people.items():
        names.append(str(tmp_path / f"{name}.npz"))
        recordings.save(Recording(np.arange(len(rows)) / 2, rows, NAMES), tmp_path / f"{name}.npz")
    if not ledger.exists():
        main(["budget", "--ledger", str(ledger), "--new"])
    words = ["--calibration", "everyday-klt-anchored-64", "--epsilon", "4.8", "--out", str(tmp_path / "out")]
    code = 0
    try:
        main(["privatize", *names, *words, "--ledger", str(ledger), "--device", "p", *options])
    except SystemExit as ended:
        code = int(ended.code or 0)
    told, odometers = capsys.readouterr(), read_ledger(ledger).odometers
    return code, told.out + told.err, round(odometers["p"].epsilon / 4.8e12) if "p" in odometers else 0


def test_a_lost_baseline_is_refused_before_anything_is_spent_and_a_later_one_is_offered(
    tmp_path: Path, person: Array, capsys: pytest.CaptureFixture[str]
) -> None:
    people = {"good": person, "weak": lost(person, 10, 100)}
    code, said, booked = privatized(tmp_path, capsys, people)
    assert (code, booked) == (2, 0)
    assert "weak.npz: 38 of the 128 rows of its baseline have values, expected 50%" in said
    assert "good.npz:" not in said
    assert "--baseline-at 18, " in said  # 64 of rows 36 to 163 have values
    assert not (tmp_path / "out").exists()

    code, said, booked = privatized(tmp_path, capsys, people, "--baseline-at", "18")
    assert (code, booked) == (0, 2 * 3)  # 284 rows: two chunks of the baseline, two whole ones and a part
    assert "a time chosen after a look at recordings tells of them" in said
    for name in people:
        released = recordings.load(tmp_path / "out" / f"{name}.npz").features
        assert np.isnan(released[: 36 + BASELINE]).all()
        assert np.isfinite(released[36 + BASELINE :]).all()
    claim = (tmp_path / "out" / "weak.npz.claim.json").read_text()
    assert f'"first_row": {36 + BASELINE}' in claim
    assert claim == (tmp_path / "out" / "good.npz.claim.json").read_text()

    code, said, booked = privatized(tmp_path, capsys, people, "--anyway")
    assert (code, booked) == (0, 2 * 3 + 2 * 3)
    assert "weak.npz: 38 of the 128 rows" in said


def test_half_of_a_baseline_is_enough(tmp_path: Path, person: Array, capsys: pytest.CaptureFixture[str]) -> None:
    assert privatized(tmp_path, capsys, {"half": lost(person, 0, 64)})[::2] == (0, 3)
    code, said, booked = privatized(tmp_path, capsys, {"less": lost(person, 0, 65)})
    assert (code, booked) == (2, 3)
    assert "less.npz: 63 of the 128 rows" in said


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ((0, BASELINE), "has 128 rows, expected more than 128, as its baseline takes 128"),
        ((0, 60), "has 60 rows, expected more than 128, as its baseline takes 128"),
    ],
)
def test_what_is_shorter_than_its_baseline_is_refused(
    tmp_path: Path, person: Array, rows: tuple[int, int], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, said, booked = privatized(tmp_path, capsys, {"short": person[slice(*rows)]})
    assert (code, booked) == (2, 0)
    assert words in said


def test_one_valid_row_is_refused_without_a_baseline_too(
    tmp_path: Path, person: Array, capsys: pytest.CaptureFixture[str]
) -> None:
    one = lost(person, 1, 320)
    for calibration, words in (
        ("everyday-klt-anchored-64", "1 of the 128 rows of its baseline have values"),
        ("everyday-cfpa-64", "1 of its 320 rows have values, expected half a chunk"),
    ):
        code, said, booked = privatized(tmp_path, capsys, {"one": one}, "--calibration", calibration)
        assert (code, booked) == (2, 0)
        assert words in said


def test_one_person_under_two_names_is_refused(
    tmp_path: Path, person: Array, capsys: pytest.CaptureFixture[str]
) -> None:
    code, said, booked = privatized(tmp_path, capsys, {"a": person, "b": person})
    assert (code, booked) == (2, 0)
    assert "b.npz: holds the very rows of " in said
    assert privatized(tmp_path, capsys, {"a": person, "b": person + 1e-3})[::2] == (0, 6)


def test_a_feature_without_a_value_is_said_and_does_not_refuse(
    tmp_path: Path, person: Array, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = person.copy()
    rows[:, NAMES.index("blink_rate")] = np.nan
    rows[:BASELINE, NAMES.index("rate_saccades")] = np.nan  # its offset could not be taken off
    code, said, booked = privatized(tmp_path, capsys, {"a": rows})
    assert (code, booked) == (0, 3)
    assert "a.npz: no value of rate_saccades, blink_rate: released as if at the corpus' mean" in said


def test_a_later_baseline_is_for_calibrations_that_take_one(
    tmp_path: Path, person: Array, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--baseline-at", "18", "--calibration", "everyday-cfpa-64")
    code, said, booked = privatized(tmp_path, capsys, {"a": person}, *words)
    assert (code, booked) == (2, 0)
    assert "--baseline-at: expected a calibration that takes a baseline" in said


def test_asked_features_alone_decide_whether_a_recording_is_worth_its_epsilon(
    tmp_path: Path, person: Array, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["--calibration", "everyday-asked-64", "--option", 'features=["blink_rate"]']
    blinks, alone, lacking = NAMES.index("blink_rate"), np.full_like(person, np.nan), person.copy()
    alone[:, blinks] = person[:, blinks]
    lacking[: BASELINE // 2 + 1, blinks] = np.nan
    code, said, booked = privatized(tmp_path, capsys, {"alone": alone}, *asked)
    assert (code, booked) == (0, 3)
    assert "no value of" not in said
    code, said, booked = privatized(tmp_path, capsys, {"lacking": lacking}, *asked, "--jobs", "1")
    assert (code, booked) == (2, 3)
    assert "lacking.npz: 63 of the 128 rows of its baseline have values" in said


def test_asked_features_are_all_that_a_released_recording_has(
    person: Array, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["--calibration", "everyday-asked-64", "--features", "fatigue"]
    code, said, booked = privatized(tmp_path, capsys, {"a": person}, *asked)
    assert (code, booked) == (0, 3), said
    assert recordings.load(tmp_path / "out" / "a.npz").names == ("blink_rate", "mean_blink_duration")


@pytest.mark.parametrize("jobs", [[], ["--jobs", "1"]])
def test_an_epsilon_that_leaves_nothing_is_said_before_anything_is_released(
    person: Array, tmp_path: Path, capsys: pytest.CaptureFixture[str], jobs: list[str]
) -> None:
    asked = ["--calibration", "everyday-asked-64", "--features", "comfort", *jobs]
    code, said, _ = privatized(tmp_path, capsys, {"a": person}, *asked)
    assert code == 0
    assert "warning" not in said
    code, said, _ = privatized(tmp_path, capsys, {"a": person}, *asked, "--epsilon", "1.2")
    assert code == 0
    warning, _, after = said.partition("a.npz: ")
    assert "warning: epsilon 1.2 of a chunk is too little for what is asked for: blink_rate +-" in warning
    assert "3 chunks" in after
