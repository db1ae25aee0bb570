"""Schedules of `eyestream privatize`: chunks that are left out, and a target for what a whole recording tells."""

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from eyestream.cli.main import main
from eyestream.core.chunking.settings import DeviceSettings
from eyestream.core.mechanisms import build
from eyestream.core.reservation import Granted
from eyestream.rim.files import calibrations, recordings
from eyestream.rim.ledger.reading import read_ledger
from eyestream_lab.recordings.recording import RecordingRelease
from eyestream_lab.simulation.people import NAMES, load_statistics, simulate
from eyestream_lab.testing.noise import SeededNoise

Array = NDArray[np.float64]


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A simulated person of 600 rows, in whom all 48 features change."""
    path = tmp_path_factory.mktemp("people") / "long.npz"
    rows = next(iter(simulate(load_statistics(), 1, 300.0, 1)))
    np.savez(path, t=np.arange(600) / 2, features=rows, names=np.array(NAMES), simulated=True)
    return path


def run(long: Path, calibration: str, out: Path, *options: str) -> None:
    main(["privatize", str(long), "--calibration", calibration, "--out", str(out), *options])


@pytest.mark.parametrize("calibration", ["everyday-klt-32", "everyday-cfpa-32"])
def test_chunks_that_are_left_out_cost_nothing_and_do_not_come(long: Path, tmp_path: Path, calibration: str) -> None:
    """600 rows are 19 chunks; every seventh is three. What is claimed is what is booked, to the last bit."""
    ledger = tmp_path / "ledger"
    main(["budget", "--ledger", str(ledger), "--new"])
    book = ["--ledger", str(ledger), "--device", "p0", "--epsilon", "4.8", "--every", "7"]
    run(long, calibration, tmp_path / "out", *book)
    rows = recordings.load(tmp_path / "out" / "long.npz").features
    there = np.isfinite(rows).all(axis=1)
    assert (there == (np.arange(600) // 32 % 7 == 0)).all()
    assert np.isnan(rows[~there]).all()
    (odometer,) = read_ledger(ledger).odometers.values()
    assert (odometer.released, odometer.epsilon) == (3, 144 * 10**11)
    told = json.loads((tmp_path / "out" / "long.npz.claim.json").read_text())
    assert (told["chunks"], told["epsilon"]) == (3, 14.4)
    assert [one["chunks"] for one in told["epsilon_of_chunks"]] == [3]


def test_a_target_for_a_whole_recording_lowers_epsilon_and_is_claimed(
    long: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Chunks that are left out allow the others more than twice as much at the same target."""
    allowed = []
    for every in ("1", "4"):
        out = tmp_path / every
        run(long, "everyday-cfpa-32", out, "--epsilon", "48", "--epsilon-prime", "24", "--every", every)
        told = json.loads((out / "long.npz.claim.json").read_text())
        assert "correlation" not in told, "it stands in the claim, once"
        correlation = told["claim"]["correlation"]
        assert 23.5 < correlation["epsilon_prime"]["chunk"] <= 24.0
        assert correlation["chunks"] == {"1": 19, "4": 5}[every]
        assert f"epsilon {told['claim']['loss']['epsilon']:.4g} a chunk instead" in capsys.readouterr().out
        assert correlation["epsilon_prime"]["second_of_gaze"] is None, "nobody knows what memory these rows have"
        allowed.append(told["claim"]["loss"]["epsilon"])
    assert 2 < allowed[1] / allowed[0] < 4


def test_what_keeps_to_its_target_is_released_as_it_was_asked_for(
    long: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(long, "everyday-cfpa-32", tmp_path, "--epsilon", "0.48", "--epsilon-prime", "240")
    assert json.loads((tmp_path / "long.npz.claim.json").read_text())["claim"]["loss"]["epsilon"] <= 0.48
    said = capsys.readouterr().out
    assert "epsilon 0.48 a chunk: if the chunks follow the class" in said
    assert "one second of gaze" not in said


def test_a_session_that_is_split_into_files_is_claimed_no_lower(
    long: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """600 rows are 19 chunks in one file and 21 in three, which count together unless they are said to be sessions."""
    whole, parts = recordings.load(long), tmp_path / "parts"
    parts.mkdir()
    for part in range(3):
        rows = slice(200 * part, 200 * part + 200)
        np.savez(parts / f"{part}.npz", t=whole.t[rows], features=whole.features[rows], names=np.array(NAMES))
    claims = {}
    for sessions, files in (("whole", [long]), ("one", [*parts.iterdir()]), ("files", [*parts.iterdir()])):
        out, more = tmp_path / sessions, [] if sessions == "whole" else ["--sessions", sessions]
        given = [*map(str, files), "--calibration", "everyday-cfpa-32", "--out", str(out)]
        main(["privatize", *given, "--epsilon", "48", "--epsilon-prime", "24", *more])
        told = {json.dumps(json.loads(path.read_text())["claim"]["correlation"]) for path in out.glob("*.claim.json")}
        [claim] = told
        claims[sessions] = json.loads(claim) | {
            "loss": float(capsys.readouterr().out.split("\nepsilon ")[1].split()[0])
        }
    assert {name: claim["chunks"] for name, claim in claims.items()} == {"whole": 19, "one": 21, "files": 7}
    assert claims["whole"]["counted"] == "of the file, counted as a session"
    assert claims["one"]["counted"] == "of 3 files, counted together as one session"
    assert claims["files"]["counted"] == "of the longest of 3 files, each counted as a session of its own"
    assert claims["one"]["loss"] < claims["whole"]["loss"] < claims["files"]["loss"]
    main(["privatize", *given, "--epsilon", "48", "--epsilon-prime", "24"])
    assert "at most 21 chunks (of 3 files, counted together as one session)" in capsys.readouterr().out


def test_a_lower_epsilon_is_not_one_that_fades(long: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(long, "everyday-cfpa-32", tmp_path, "--epsilon", "48", "--epsilon-prime", "24")
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "19 chunks, epsilon" in line]
    assert line.endswith("for the recording")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("everyday-cfpa-32 --every 0", "--every must be at least 1, not 0"),
        ("everyday-cfpa-32 --every 2 --smooth", "--smooth takes the chunks that are released for neighbours"),
        ("everyday-cfpa-32 --every 2 --option smooth=true", "it is not for --every"),
        ("everyday-cfpa-32 --every 2 --whole", "they are not for --whole"),
        ("everyday-asked-64 --whole", "not for a calibration with a baseline, whose ranges are of residual rows"),
        ("everyday-cfpa-32 --sessions files", "--sessions says what --epsilon-prime counts"),
        ("everyday-klt-anchored-32 --epsilon-prime 9", "of a calibration with a baseline the class says nothing"),
    ],
)
def test_schedules_that_make_no_sense_are_one_line(
    long: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], words: str, said: str
) -> None:
    calibration, *options = words.split()
    with pytest.raises(SystemExit):
        run(long, calibration, tmp_path / "out", "--epsilon", "4.8", *options)
    told = capsys.readouterr().err
    assert said in told
    assert told.count("\n") == 1


@pytest.mark.parametrize("calibration", ["everyday-klt-32", "everyday-cfpa-32"])
def test_what_is_left_out_has_no_part_in_what_is_released(long: Path, calibration: str) -> None:
    """The same noise, and other rows where nothing is released: equal to the last bit. With every chunk it is not."""
    rows = recordings.load(long).features
    other = np.where((np.arange(len(rows)) // 32 % 4 == 0)[:, None], rows, 1e9)
    made = calibrations.load(calibration)
    settings = DeviceSettings(
        id="p", stream="features", schema=0, names=made.names, rate_hz=2.0, n=32, grace_s=1.0, idle_s=1.0, jump_chunks=1
    )

    def released(values: Array, every: int) -> Array:
        one = RecordingRelease(settings, build(made, 4.8, noise=SeededNoise(5)), 0, values, every=every)
        assert sum(not request.unreleased for request in one.requests) == -(-19 // every)
        return one.release([Granted(request) for request in one.requests])

    np.testing.assert_array_equal(released(rows, 4), released(other, 4))
    assert not np.array_equal(released(rows, 1), released(other, 1), equal_nan=True)
