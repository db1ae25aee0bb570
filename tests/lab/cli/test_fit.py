"""`eyestream fit`: which features of a tracker fit a calibration, in words, and never on live data."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from eyestream.cli.main import main
from eyestream.errors import CalibrationError
from eyestream.rim.files import calibrations, recordings
from eyestream.rim.files.recordings import Recording
from eyestream_lab.simulation.fit import FeatureFit, feature_fits
from eyestream_lab.simulation.people import NAMES, load_statistics, simulate


@pytest.fixture(scope="module")
def rows() -> np.ndarray:
    """Like the corpus: six simulated people with pupils."""
    people = simulate(load_statistics(), 8, 300.0, seed=3)
    return np.concatenate([person for person in people if np.isfinite(person).all()]).astype(np.float64)


def verdicts(name: str, rows: np.ndarray) -> dict[str, FeatureFit]:
    return {fit.name: fit for fit in feature_fits(calibrations.load(name), [rows[:100], rows[100:]])}


@pytest.mark.parametrize("name", ["everyday-klt-one-64", "everyday-cfpa-32"])
def test_the_own_tracker_fits_and_another_one_is_told(name: str, rows: np.ndarray) -> None:
    fits = verdicts(name, rows)
    assert set(fits) == set(NAMES) - {f"wb{n}_min" for n in (1, 2, 3, 4)}
    assert sum(fit.verdict == "fits" for fit in fits.values()) >= 44
    wrong = rows.copy()
    wrong[:, NAMES.index("mean_saccade_amplitude")] *= 60.0  # minutes of arc
    wrong[:, NAMES.index("rate_saccades")] = rows[0, NAMES.index("rate_saccades")]
    wrong[:, NAMES.index("mean_mean_diameter")] = np.nan
    wrong[:, NAMES.index("blink_rate")] -= 100.0
    wrong[: len(rows) // 2, NAMES.index("var_blink_duration")] = np.inf
    told = verdicts(name, wrong)
    amplitude, blinks = told["mean_saccade_amplitude"], told["blink_rate"]
    assert (amplitude.verdict, amplitude.below) == ("does not fit", 0.0)
    assert amplitude.above > 0.9
    assert (blinks.verdict, blinks.below, blinks.above) == ("does not fit", 1.0, 0.0)
    assert told["rate_saccades"].verdict == "stands still"
    assert told["mean_mean_diameter"].verdict == "no data"
    assert told["var_blink_duration"].missing == pytest.approx(0.5, abs=0.01)


def test_a_baseline_is_taken_off_each_recording_before_it_is_judged() -> None:
    """A constant cancels in units of a feature, another unit does not; what is too short for a baseline is refused."""
    calibration = calibrations.load("everyday-klt-anchored-64")
    people = [np.asarray(p, np.float64) for p in simulate(load_statistics(), 8, 300.0, seed=3) if np.isfinite(p).all()]

    def fitting(offset: float, factor: float) -> tuple[int, FeatureFit]:
        changed = [person.copy() for person in people]
        for rows in changed:
            rows[:, NAMES.index("mean_saccade_amplitude")] *= factor
            rows[:, NAMES.index("mean_saccade_amplitude")] += offset
        fits = {fit.name: fit for fit in feature_fits(calibration, changed)}
        return sum(fit.verdict == "fits" for fit in fits.values()), fits["mean_saccade_amplitude"]

    count, amplitude = fitting(0.0, 1.0)
    assert count >= 44
    assert amplitude.verdict == "fits"
    assert fitting(500.0, 1.0)[0] == count
    assert fitting(500.0, 1.0)[1].clipped == pytest.approx(amplitude.clipped, abs=1e-3)
    assert fitting(0.0, 60.0)[1].verdict != "fits"
    with pytest.raises(CalibrationError, match="no recording holds a row behind the 60 s of its baseline"):
        feature_fits(calibration, [people[0][:128], people[1][:60]])


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    code = 0
    try:
        main(["fit", *words])
    except SystemExit as ended:
        code = int(ended.code or 0)
    told = capsys.readouterr()
    return code, told.out + told.err


def test_the_command_says_it_in_words(tmp_path: Path, rows: np.ndarray, capsys: pytest.CaptureFixture[str]) -> None:
    front_end = calibrations.load("everyday-klt-32").front_end
    made = Recording(np.arange(len(rows)) / 2.0, rows, NAMES, front_end=front_end)
    wrong = rows.copy()
    wrong[:, NAMES.index("rate_fixations")] *= 10.0
    recordings.save(made, tmp_path / "fine.npz")
    recordings.save(replace(made, features=wrong, front_end=None), tmp_path / "wrong.npz")
    _, said = run(capsys, str(tmp_path / "fine.npz"))
    assert "front end: the very one (smi-glasses)" in said
    assert "everyday-klt-anchored-64: " in said
    code, said = run(capsys, str(tmp_path / "wrong.npz"), "--calibration", "everyday-cfpa-32")
    assert code == 1
    assert "everyday-cfpa-32: " in said
    assert "rate_fixations: does not fit: " in said
    assert "that they mean the same is not known" in said
    assert "remedy: make a calibration for this tracker: eyestream calibrate --adapt" in said
    other = replace(made, front_end=replace(front_end, detector="0" * 16))
    recordings.save(other, tmp_path / "other.npz")
    code, said = run(capsys, str(tmp_path / "other.npz"))
    assert code == 1
    assert "front end: the calibration was made from rows of front end" in said
    main(["init", str(tmp_path / "sidecar")])
    capsys.readouterr()
    config = str(tmp_path / "sidecar" / "sidecar.toml")
    _, said = run(capsys, str(tmp_path / "fine.npz"), "--config", config)
    assert "everyday-klt-anchored-64: " in said
    for words in (
        ["x.npz", "--config", config, "--calibration", "a"],
        [],
    ):
        assert run(capsys, *words)[0] == 2  # fmt: skip


def test_features_that_stand_still_do_not_fit_all_in_all(
    tmp_path: Path, rows: np.ndarray, capsys: pytest.CaptureFixture[str]
) -> None:
    front_end = calibrations.load("everyday-klt-32").front_end
    for still, fits in ((2, True), (7, False)):
        stiff = rows.copy()
        stiff[:, :still] = rows[0, :still]
        recordings.save(Recording(np.arange(len(rows)) / 2.0, stiff, NAMES, front_end=front_end), tmp_path / "a.npz")
        code, said = run(capsys, str(tmp_path / "a.npz"), "--calibration", "everyday-klt-mapped-64")
        assert code == (0 if fits else 1)
        assert ("all in all it fits" in said) is fits
        assert ("all in all it does not fit: 7 of 48 features do not, stand still or lack data" in said) is not fits


def test_what_runs_live_cannot_reach_it() -> None:
    """The sidecar with everything that it imports does not load the room for recordings."""
    code = (
        "import sys, eyestream.cli.run, eyestream.rim.sidecar.sidecar, eyestream.rim.sidecar.sidecar;"
        "sys.exit(any(name.startswith(('eyestream_lab', 'eyestream.offline')) for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
