"""`eyestream privatize` as a person uses it: file to file, with its price and its labels."""

import importlib
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from eyestream.cli.main import main
from eyestream.core.charge import Ceilings, Charge
from eyestream.core.reservation import Request
from eyestream.errors import CalibrationError
from eyestream.rim.files import calibrations, recordings
from eyestream.rim.files.recordings import Recording
from eyestream.rim.ledger.ledger import Ledger
from eyestream.rim.ledger.reading import read_ledger
from eyestream.streams import StreamKey
from eyestream_lab.calibration.fingerprints import overlap
from eyestream_lab.recordings.worth import refuse_own_people
from eyestream_lab.simulation.people import NAMES, load_statistics, simulate

Array = NDArray[np.float64]
MADE_FROM_IT = "the calibration was made from this recording, so nothing could be claimed of its release"
CONSTANTS = [name in ("wb1_min", "wb2_min", "wb3_min", "wb4_min") for name in NAMES]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A simulated person of 150 rows in the three formats, with missing values, from an uneven clock."""
    folder = tmp_path_factory.mktemp("people")
    rows = next(iter(simulate(load_statistics(), 1, 75.0, 7))).astype(np.float64)
    assert len(rows) == 150
    np.savez(folder / "whole.npz", t=100 + np.arange(150) / 2, features=rows.astype(np.float32), simulated=True)
    long = next(iter(simulate(load_statistics(), 1, 300.0, 1)))  # one in whom all 48 features change
    np.savez(folder / "long.npz", t=np.arange(600) / 2, features=long, names=np.array(NAMES), simulated=True)
    rows[40:60, 3] = np.nan
    rows[64:96] = np.nan
    t = 1000 + np.arange(150) / 2 + 0.01 * np.random.default_rng(0).random(150)
    for name in ("a.npz", "b.csv", "c.csv.gz"):
        recordings.save(Recording(t, rows, NAMES), folder / name)
    return folder


def run(folder: Path, name: str, calibration: str, out: Path, *options: str) -> None:
    main(["privatize", str(folder / name), "--calibration", calibration, "--out", str(out), *options])


@pytest.mark.parametrize("name", ["a.npz", "b.csv", "c.csv.gz", "whole.npz"])
@pytest.mark.parametrize("mechanism", ["lpa", "cfpa", "dcfpa"])
def test_the_same_name_keys_and_rows(
    folder: Path, name: str, mechanism: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    calibration = f"everyday-{mechanism}-32"
    run(folder, name, calibration, tmp_path / "out", "--epsilon", "4.8")
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == [name, f"{name}.claim.json"]
    before, after = recordings.load(folder / name), recordings.load(tmp_path / "out" / name)
    assert after.features.shape == before.features.shape
    assert (after.names, after.named, after.simulated) == (before.names, before.named, before.simulated)
    if name.endswith(".npz"):
        with np.load(folder / name) as source, np.load(tmp_path / "out" / name) as target:
            assert set(source.files) == set(target.files)
    np.testing.assert_array_equal(after.t, np.arange(150) / 2.0)  # the nominal grid, whatever the clock said
    assert np.isfinite(after.features).all()  # no pattern of missing values
    fill = calibrations.load(calibration).fill[CONSTANTS].astype(np.float32)
    assert (after.features[:, CONSTANTS] == fill).all()
    assert (after.features[:, ~np.array(CONSTANTS)].std(axis=0) > 0).all()
    printed = capsys.readouterr().out
    assert "epsilon 4.8 a chunk" in printed
    assert "5 chunks, epsilon 24 for the recording" in printed  # 150 rows: four whole chunks and a part
    assert "Another run on the same recordings adds as much again" in printed
    assert MADE_FROM_IT not in printed


def test_two_runs_differ_and_constants_do_not(folder: Path, tmp_path: Path) -> None:
    for out in ("one", "two"):
        run(folder, "a.npz", "everyday-cfpa-64", tmp_path / out, "--epsilon", "4.8")
    one, two = (recordings.load(tmp_path / out / "a.npz").features for out in ("one", "two"))
    same = (one == two).all(axis=0)
    assert same.tolist() == CONSTANTS


def calibrate(path: Path, mechanism: str, out: Path) -> None:
    words = ["--mechanism", mechanism, "--chunk", "32", "--coverage", "1", "--out", str(out)]
    main(["calibrate", str(path), *words])


def relative_error(path: Path, mechanism: str, tmp_path: Path, epsilon: float) -> Array:
    """(F,) root mean square error of the whole chunks over the feature's range, of those that are not constant.

    The calibration is of rows that differ by a hundred-thousandth: those that it was made from are refused.
    """
    own = recordings.load(path)
    recordings.save(replace(own, features=own.features * (1.0 + 1e-5)), tmp_path / "near.npz")
    made = tmp_path / f"calibration-{epsilon}"
    calibrate(tmp_path / "near.npz", mechanism, made)
    words = ["--calibration", str(made), "--epsilon", f"{epsilon}", "--out", str(tmp_path / "out")]
    main(["privatize", str(path), *words])
    active = ~calibrations.load(made).constant
    before, after = recordings.load(path).features, recordings.load(tmp_path / "out" / path.name).features
    rows = len(before) // 32 * 32
    before, after = before[:rows, active], after[:rows, active]
    width = before.max(axis=0) - before.min(axis=0)
    moving = width > 0
    return np.asarray(np.sqrt(((after - before) ** 2).mean(axis=0))[moving] / width[moving])


@pytest.mark.parametrize(("mechanism", "limit"), [("cfpa", 0.1), ("dcfpa", 0.3)])
def test_a_huge_epsilon_gives_the_recording_back(folder: Path, mechanism: str, limit: float, tmp_path: Path) -> None:
    assert relative_error(folder / "long.npz", mechanism, tmp_path, 48_000).max() < limit
    assert relative_error(folder / "long.npz", mechanism, tmp_path, 48).max() > limit  # and a small one does not


@pytest.mark.parametrize(("mechanism", "limit"), [("cfpa", 0.1), ("dcfpa", 0.3)])
def test_a_huge_epsilon_gives_a_real_recording_back(
    shared_data: Path, mechanism: str, limit: float, tmp_path: Path
) -> None:
    path = shared_data / "hoppe2018" / "features" / "P00.npz"
    assert relative_error(path, mechanism, tmp_path, 48_000).max() < limit


def test_gaze_of_the_corpus_is_known_again(
    shared_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gaze = shared_data / "hoppe2018" / "gaze" / "P04.csv.gz"
    words = ["--epsilon", "4.8", "--profile", "smi-glasses", "--calibration", "everyday-cfpa-32"]
    assert f"P04.csv.gz: {MADE_FROM_IT}" in refused(["privatize", str(gaze), *words, "--out", str(tmp_path)], capsys)


def test_post_processing_brings_the_error_down(folder: Path, tmp_path: Path) -> None:
    before = recordings.load(folder / "whole.npz").features
    errors = []
    for options in ((), ("--shrink",), ("--clip",)):
        run(folder, "whole.npz", "everyday-cfpa-32", tmp_path, "--epsilon", "4.8", *options)
        after = recordings.load(tmp_path / "whole.npz").features
        errors.append(np.median(((after - before) ** 2).mean(axis=0)[~np.array(CONSTANTS)]))
    plain, shrunk, clipped = errors
    assert shrunk < 0.1 * plain
    assert clipped < 0.1 * plain
    calibration = calibrations.load("everyday-cfpa-32")
    assert (after >= calibration.lo.astype(np.float32)).all()  # of the last run, the clipped one
    assert (after <= calibration.hi.astype(np.float32)).all()


def test_a_whole_recording_is_one_chunk(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(folder, "a.npz", "everyday-cfpa-32", tmp_path, "--epsilon", "4.8", "--whole")
    printed = capsys.readouterr().out
    assert "1 chunk, epsilon 4.8 for the recording" in printed
    after = recordings.load(tmp_path / "a.npz").features
    assert after.shape == (150, 52)
    assert np.ptp(after, axis=0).max() < 1e-3 * np.abs(after).max()  # k = 1: a noisy mean


def refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as end:
        main(arguments)
    assert end.value.code == 2
    captured = capsys.readouterr()
    assert captured.err.count("\n") == 1
    assert "Traceback" not in captured.err
    return captured.err


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"--epsilon": "0"}, "--epsilon"),
        ({"--epsilon": "-1"}, "--epsilon"),
        ({"--epsilon": "nan"}, "--epsilon"),
        ({"--epsilon": "inf"}, "--epsilon"),
        ({"--epsilon": "much"}, "--epsilon"),
        ({"--epsilon": "1e9"}, "epsilon must lie between 1e-12 and 1e+07"),
        ({"--epsilon": "1e-9"}, "epsilon 1e-09 is outside"),
        ({"--calibration": "everyday-cfpa-33"}, "no such file"),
        ({"--out": "/dev/null"}, "/dev/null: cannot be written"),
    ],
)
def test_what_a_person_gets_wrong_is_one_line(
    folder: Path, change: dict[str, str], complaint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = {"--calibration": "everyday-cfpa-32", "--epsilon": "4.8", "--out": str(tmp_path / "out")} | change
    words = [word for pair in options.items() for word in pair]
    assert complaint in refused(["privatize", str(folder / "a.npz"), *words], capsys)


def test_recordings_and_targets_that_do_not_fit_are_one_line(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = str(folder / "a.npz")
    (tmp_path / "few.csv").write_text("t,a\n0,1\n0.5,2\n")
    (tmp_path / "wrong.csv").write_text("t,a\n0,1\n0,2\n")
    t, rows = np.arange(150) / 5.0, recordings.load(folder / "a.npz").features
    recordings.save(Recording(t, rows, NAMES), tmp_path / "fast.npz")
    rest = ["--calibration", "everyday-cfpa-32", "--epsilon", "4.8", "--out", str(tmp_path / "out")]
    assert "1 features" in refused(["privatize", str(tmp_path / "few.csv"), *rest], capsys)
    assert "line 3: time does not increase" in refused(["privatize", str(tmp_path / "wrong.csv"), *rest], capsys)
    assert "5 rows a second" in refused(["privatize", str(tmp_path / "fast.npz"), *rest], capsys)
    assert "no such file" in refused(["privatize", str(tmp_path / "none.npz"), *rest], capsys)
    assert "two recordings are called a.npz" in refused(["privatize", source, source, *rest], capsys)
    assert not (tmp_path / "out").exists()
    before = Path(source).read_bytes()
    itself = ["--calibration", "everyday-cfpa-32", "--epsilon", "4.8", "--out", str(folder)]
    assert "would be overwritten by its own release" in refused(["privatize", source, *itself], capsys)
    assert Path(source).read_bytes() == before
    whole = ["privatize", source, *rest, "--whole", "--shrink"]
    assert "--shrink, --clip, --smooth, --option and --features are not for it" in refused(whole, capsys)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--epsilon", "4,8"), "argument --epsilon: expected a number above 0, not 4,8"),
        (("--calibration", "everyday-cfpa-32"), "recordings need both --calibration and --epsilon, such as"),
        (("--mechanism", "cfpa", "--epsilon", "1"), "to release recordings: --calibration everyday-cfpa-"),
    ],
)
def test_what_is_missing_is_said_with_an_example(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], options: tuple[str, ...], words: str
) -> None:
    with pytest.raises(SystemExit):
        main(["privatize", str(folder / "a.npz"), "--out", str(tmp_path), *options])
    assert words in capsys.readouterr().err


def test_people_whose_rows_are_the_same_few_categories_are_not_taken_for_each_other(tmp_path: Path) -> None:
    """Two people at three things: every row of the one is a row of the other."""
    one, other = (np.eye(52)[np.random.default_rng(seed).integers(0, 3, 400)] for seed in (1, 2))
    recordings.save(Recording(np.arange(400) / 2, one, NAMES), tmp_path / "one.npz")
    calibrate(tmp_path / "one.npz", "cfpa", tmp_path / "own")
    calibration = calibrations.load(str(tmp_path / "own"))
    assert overlap(calibration, other) > 0.5
    refuse_own_people(calibration, Recording(np.arange(400) / 2, other, NAMES), "other")
    with pytest.raises(CalibrationError, match="one: the calibration was made from this recording"):
        refuse_own_people(calibration, Recording(np.arange(400) / 2, one, NAMES), "one")


def test_the_price_of_a_minute_is_said_and_so_is_a_release_that_is_replaced(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for options, minute in (((), "18"), (("--every", "2"), "9")):
        run(folder, "a.npz", "everyday-cfpa-64", tmp_path, "--epsilon", "9.6", *options)
        said = capsys.readouterr().out
        assert f"epsilon 9.6 a chunk (all features together), so {minute} a minute, calibration" in said
    assert f"1 earlier release in {tmp_path} replaced. What was told still counts" in said


@pytest.mark.parametrize(("options", "mechanism", "chunks"), [((), "cfpa", 5), (("--whole",), "fpa", 1)])
def test_what_is_claimed_lies_beside_each_file(
    folder: Path, tmp_path: Path, options: tuple[str, ...], mechanism: str, chunks: int
) -> None:
    run(folder, "a.npz", "everyday-cfpa-32", tmp_path, "--epsilon", "4.8", *options)
    told = json.loads((tmp_path / "a.npz.claim.json").read_text())
    assert (told["chunks"], told["epsilon"], told["delta"]) == (chunks, pytest.approx(4.8 * chunks), 0.0)
    claim = told["claim"]
    assert (claim["mechanism"], claim["scopes"]) == (mechanism, [])
    assert claim["calibration"] == calibrations.load("everyday-cfpa-32").content_hash
    assert claim["loss"]["epsilon"] == pytest.approx(4.8)
    assert claim["unit"]["rows"] == (150 if options else 32)
    assert "800-226" in claim["evaluation"]["of"]


def others(folder: Path, name: str, target: Path, seed: int = 8) -> None:
    """Somebody else's rows, as many and under the same names, of which some are missing, and which have a gap."""
    recording = recordings.load(folder / name)
    rows = np.random.default_rng(seed).normal(size=recording.features.shape)
    rows[100:164] = np.nan
    t = 30.0 + recording.t + np.where(np.arange(len(rows)) >= 50, 712.3, 0.0)
    recordings.save(replace(recording, t=t, features=rows), target)


def envelope(path: Path) -> tuple[object, ...]:
    """All that a published file says but the released values."""
    kind = path.name.partition(".")[2]
    told = recordings.load(path)
    missing = np.isnan(told.features)
    said: tuple[object, ...] = (told.t.tobytes(), told.names, missing.tobytes(), told.simulated, told.simulation)
    if kind == "npz":
        with np.load(path) as arrays:
            said += tuple((key, arrays[key].dtype, arrays[key].shape) for key in arrays.files)
    if kind == "parquet":
        read = importlib.import_module("pyarrow.parquet").read_schema(path)
        said += (read.to_string(), read.metadata)
    return said


PARQUET = pytest.param("long.parquet", marks=pytest.mark.needs("pyarrow"))


@pytest.mark.parametrize("name", ["long.npz", "long.csv", "long.tsv.gz", PARQUET])
@pytest.mark.parametrize("options", [(), ("--every", "3"), ("--whole",), ("--clip", "--smooth")])
def test_what_is_published_depends_on_no_row_but_in_the_released_values(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, options: tuple[str, ...]
) -> None:
    """A person, and one with other rows, missing ones, a gap and another first moment: one claim."""
    own, person, other = tmp_path / "own", tmp_path / "person", tmp_path / "other"
    others(folder, "long.npz", tmp_path / "third.npz")
    calibrate(tmp_path / "third.npz", "cfpa", own)
    for place in (person, other):
        place.mkdir()
    long = recordings.load(folder / "long.npz")
    recordings.save(long, person / name)
    others(folder, "long.npz", other / name, seed=9)
    published = []
    for place in (person, other):
        run(place, name, str(own), place / "out", "--epsilon", "0.001", *options)
        assert ("compare row by row, not by t" in capsys.readouterr().out) == (place is other)
        claim = place / "out" / f"{name}.claim.json"
        published.append((claim.read_bytes(), envelope(place / "out" / name)))
    assert published[0] == published[1]
    told = json.loads(published[0][0])
    assert told["claim"]["loss"]["epsilon"] == pytest.approx(0.001)
    assert "row k of the release is of row k of the recording" in told["t"]


@pytest.mark.parametrize("options", [(), ("--anyway",), ("--whole",), ("--jobs", "1")])
def test_people_whom_the_calibration_was_made_from_are_refused_before_anything_is_spent(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], options: tuple[str, ...]
) -> None:
    """Also where a recording was cut, as a corpus refuses them."""
    own = tmp_path / "own"
    calibrate(folder / "long.npz", "cfpa", own)
    long = recordings.load(folder / "long.npz")
    recordings.save(replace(long, t=long.t[100:], features=long.features[100:]), tmp_path / "cut.npz")
    given = ["--calibration", str(own), "--epsilon", "1", "--out", str(tmp_path / "out"), *options]
    for path in (folder / "long.npz", tmp_path / "cut.npz"):
        assert f"{path}: {MADE_FROM_IT}" in refused(["privatize", str(folder / "whole.npz"), str(path), *given], capsys)
    assert not (tmp_path / "out").exists()


def test_the_installed_command(folder: Path, tmp_path: Path) -> None:
    """Once as another process: nothing on stderr, exit code 0; and 2 with one line."""
    words = [sys.executable, "-c", "from eyestream.cli.main import main; main()", "privatize", str(folder / "a.npz")]
    rest = ["--calibration", "everyday-cfpa-32", "--out", str(tmp_path), "--epsilon"]
    good = subprocess.run([*words, *rest, "4.8"], capture_output=True, text=True, check=False)
    assert (good.returncode, good.stderr) == (0, "")
    bad = subprocess.run([*words, *rest, "1e9"], capture_output=True, text=True, check=False)
    assert bad.returncode == 2
    assert bad.stderr.count("\n") == 1


def test_a_ledger_books_every_chunk_before_the_release(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ledger = tmp_path / "ledger"
    main(["budget", "--ledger", str(ledger), "--new"])
    book = ["--ledger", str(ledger), "--device", "p0", "--epsilon", "4.8"]
    for _ in range(2):
        run(folder, "whole.npz", "everyday-klt-32", tmp_path / "out", *book)
    said = capsys.readouterr().out
    assert "epsilon 24 for p0 since the ledger began" in said  # 150 rows are 5 chunks of 32
    assert "epsilon 48 for p0 since the ledger began" in said
    (odometer,) = read_ledger(ledger).odometers.values()
    assert (odometer.released, odometer.epsilon) == (10, 48 * 10**12)


def test_a_baseline_costs_nothing_and_gaps_that_are_closed_are_said(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    long, ledger = recordings.load(folder / "long.npz"), tmp_path / "ledger"
    t = long.t.copy()
    t[300:] += 3000.0
    recordings.save(replace(long, t=t), tmp_path / "gap.npz")
    main(["budget", "--ledger", str(ledger), "--new"])
    book = ["--ledger", str(ledger), "--device", "p0", "--epsilon", "4.8"]
    run(tmp_path, "gap.npz", "everyday-klt-anchored-64", tmp_path / "out", *book)
    said = capsys.readouterr().out
    assert "8 chunks, epsilon 38.4 for the recording" in said  # two more are the baseline
    assert "gaps of 3000 s in all are closed" in said
    assert "epsilon 38.4 for p0 since the ledger began" in said
    told = json.loads((tmp_path / "out" / "gap.npz.claim.json").read_text())
    assert (told["chunks"], told["epsilon"]) == (8, 38.4)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--ledger", "L"], "go together"),
        (["--device", "p0"], "go together"),
        (
            ["--ledger", "L", "--device", "p0"],
            "counts p0 in chunks of 64 rows and windows of 0 chunks; expected 32 rows",
        ),
        (["--ledger", "L", "--device", "p0", "--whole"], "not for --whole"),
        (["--ledger", "none", "--device", "p0"], "none"),
    ],
)
def test_a_ledger_that_does_not_fit_stops_the_release(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], words: str
) -> None:
    main(["budget", "--ledger", str(tmp_path / "L"), "--new"])
    with Ledger(tmp_path / "L", ceilings=Ceilings()) as ledger:
        ledger.reserve([Request(StreamKey("p0", "features"), 0, 0, 63, 64, Charge(1))], 20_000)
    options = [str(tmp_path / o) if o in {"L", "none"} else o for o in options]
    with pytest.raises(SystemExit) as stopped:
        run(folder, "whole.npz", "everyday-klt-32", tmp_path / "out", "--epsilon", "4.8", *options)
    assert stopped.value.code == 2
    assert words in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("blocked", ["whole.npz", "whole.npz.claim.json", None])
def test_a_release_that_cannot_be_written_names_its_file_and_what_was_booked_stays(
    folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    blocked: str | None,
) -> None:
    """A directory in the place is seen before anything is booked; a full disk is not."""
    ledger, place = tmp_path / "L", tmp_path / "out" / "whole.npz"
    main(["budget", "--ledger", str(ledger), "--new"])
    options = ["--calibration", "everyday-cfpa-32", "--epsilon", "4.8", "--out", str(place.parent)]
    words = ["privatize", str(folder / "whole.npz"), *options, "--ledger", str(ledger), "--device", "p0"]
    if blocked is None:
        monkeypatch.setattr(Path, "write_text", lambda *_, **__: (_ for _ in ()).throw(OSError(28, "No space left")))
        said = f"{place}: cannot be written: No space left; what was booked stays spent"
    else:
        place.with_name(blocked).mkdir(parents=True)
        said = f"{blocked}: is a directory; expected a place for the"
    complaint = refused(words, capsys)
    assert said in complaint
    assert "--ledger" not in complaint
    assert sum(one.released for one in read_ledger(ledger).odometers.values()) == (5 if blocked is None else 0)


def test_another_tracker_is_announced_and_the_same_is_not(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    calibration = calibrations.load("everyday-klt-32")
    own = calibration.front_end
    assert own is not None
    values = np.repeat(calibration.fill[None, :], 64, axis=0)
    base = Recording(np.arange(64) / 2.0, values, calibration.names)
    cases = {
        "same": (own, None),
        "other": (
            replace(own, front_end="0" * 16, profile="neon"),
            "rows of another tracker (neon) than the calibration's",
        ),
        "unknown": (None, "the rows do not say which tracker made them"),
    }
    for name, (mark, said) in cases.items():
        recordings.save(replace(base, front_end=mark), tmp_path / f"{name}.npz")
        words = ["privatize", str(tmp_path / f"{name}.npz"), "--calibration", "everyday-klt-32", "--epsilon", "4.8"]
        main([*words, "--out", str(tmp_path / "out")])
        printed = capsys.readouterr().out
        assert (said or "epsilon 4.8 a chunk") in printed
        assert ("the expected error may not" in printed) is (said is not None)
