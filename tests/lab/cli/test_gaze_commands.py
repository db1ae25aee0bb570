"""`extract` and `events`, and gaze in `calibrate` and `privatize`: as a user calls them, on simulated people."""

import json
from pathlib import Path

import numpy as np
import pytest

from eyestream.cli.main import main
from eyestream.gaze.features import NAMES
from eyestream.gaze.front_end import FrontEnd
from eyestream.gaze.profile_text import front_end_mark
from eyestream.rim.files import calibrations, recordings
from eyestream.rim.files.extraction import stem
from eyestream.rim.files.gaze import load_gaze
from eyestream.rim.files.profiles import load_profile
from eyestream_lab.events.scoring import event_agreement
from tests.rigs.mosquitto import Mosquitto


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Gaze of three people, 60 s at 120 Hz."""
    out = tmp_path_factory.mktemp("gaze")
    main(["simulate", "--gaze", "--people", "3", "--seconds", "65", "--rate", "120", "--seed", "5", "--out", str(out)])
    return out


def complaint(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    with pytest.raises(SystemExit) as ended:
        main(list(words))
    assert ended.value.code == 2
    return capsys.readouterr().err


def test_extract_twice_and_in_pieces(folder: Path, tmp_path: Path) -> None:
    files = sorted(map(str, folder.glob("*.csv")))
    for name in ("one", "two"):
        main(["extract", *files, "--profile", "degrees", "--out", str(tmp_path / name)])
    made = sorted((tmp_path / "one").iterdir())
    assert [path.name for path in made] == ["sim-000.npz", "sim-001.npz", "sim-002.npz"]
    assert all(path.read_bytes() == (tmp_path / "two" / path.name).read_bytes() for path in made)
    recording = recordings.load(made[0])
    assert recording.names == NAMES
    np.testing.assert_allclose(recording.t, 30.0 + 0.5 * np.arange(len(recording.t)))
    gaze = load_gaze(files[0], load_profile("degrees"))
    assert recording.front_end == front_end_mark(gaze.profile)
    front_end, rng, begin, values = FrontEnd(gaze.profile), np.random.default_rng(3), 0, []
    while begin < len(gaze.samples):
        end = begin + int(rng.integers(0, 400))
        values.append(front_end.feed(gaze.samples[begin:end]).values)
        begin = end
    values.append(front_end.advance(np.nan).values)
    np.testing.assert_array_equal(np.concatenate(values).astype(np.float32), recording.features.astype(np.float32))


def test_processes_extract_the_same_bytes_and_leave_what_is_there(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = sorted(map(str, folder.glob("*.csv")))[:2]
    for name, more in (("alone", []), ("many", ["--jobs", "2"])):
        main(["extract", *files, "--profile", "degrees", "--out", str(tmp_path / name), *more])
    made = {path.name: path.read_bytes() for path in (tmp_path / "alone").iterdir()}
    assert {path.name: path.read_bytes() for path in (tmp_path / "many").iterdir()} == made
    assert len(made) == 2
    before = next((tmp_path / "many").iterdir()).stat().st_mtime_ns
    main(["extract", *files, "--profile", "degrees", "--out", str(tmp_path / "many"), "--jobs", "2"])
    assert "2 files of rows were there already" in capsys.readouterr().out
    assert next((tmp_path / "many").iterdir()).stat().st_mtime_ns == before


def test_names_of_what_is_extracted() -> None:
    wanted = {"P33.csv.gz": "P33", "a.b.tsv": "a.b", "x.asc": "x", "s_physio.tsv.GZ": "s_physio", "plain": "plain"}
    assert {name: stem(Path(name)) for name in wanted} == wanted


def test_events_are_written_and_scored(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = sorted(map(str, folder.glob("*.csv")))
    main(["events", *files, "--profile", "degrees", "--out", str(tmp_path / "out"), "--json"])
    told = json.loads(capsys.readouterr().out)
    assert [said["file"] for said in told["files"]] == files
    gaze = load_gaze(files[1], load_profile("degrees"))
    lines = (tmp_path / "out" / "sim-001.csv").read_text().splitlines()
    assert lines[0] == "t_s,x_deg,y_deg,event"
    assert len(lines) == len(gaze.samples) + 1
    cells = [line.split(",") for line in lines[1:]]
    found = np.array([row[3] for row in cells])
    assert set(found) <= set("FSB-")
    assert [bool(row[1]) for row in cells] == gaze.samples.valid.tolist()
    np.testing.assert_allclose([float(row[0]) for row in cells], gaze.samples.t, atol=1e-6)
    said = told["files"][1]
    assert said["f1_events"]["S"] == round(event_agreement(gaze.labels, found, "S").f1, 4) > 0.9
    assert said["saccades"] == sum(a != "S" and b == "S" for a, b in zip(["-", *found], found, strict=False))
    assert told["all"]["samples"] == 3 * len(gaze.samples)
    assert told["all"]["kappa"]["F"] > 0.8
    main(["events", *files, "--profile", "degrees"])
    said_lines = capsys.readouterr().out.splitlines()
    assert len(said_lines) == 4
    assert "F1 of samples F 0.9" in said_lines[3]


def test_events_without_labels_are_counted_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    still = "".join(f"{i / 60:.4f},{'1.5' if i % 40 else 'nan'},2\n" for i in range(120))
    (tmp_path / "a.csv").write_text("t_s,x_deg,y_deg\n" + still)
    main(["events", str(tmp_path / "a.csv"), "--profile", "degrees", "--json"])
    (said,) = json.loads(capsys.readouterr().out)["files"]
    assert (said["samples"], said["lost"], said["saccades"], said["blinks"]) == (120, 3, 0, 0)
    assert "kappa" not in said


def test_blinks_that_are_gaps_in_time_are_counted_as_inspect_counts_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """60 s at 30 Hz with eleven gaps of 0.3 s: eleven blinks, and each ends a fixation."""
    times = [i / 30 for i in range(1800) if i % 150 not in range(141, 150)]
    words = [f"{t:.4f},{(4 * np.floor(t / 3)) % 12},2,{'Fix' if t > 1 else 'F'}\n" for t in times]
    (tmp_path / "a.csv").write_text("t_s,x_deg,y_deg,label\n" + "".join(words))
    main(["events", str(tmp_path / "a.csv"), "--profile", "degrees", "--json"])
    told = capsys.readouterr()
    (said,) = json.loads(told.out)["files"]
    assert (said["lost"], said["blinks"]) == (0, 11)
    assert said["fixations"] > 11
    assert "most labels are other words than F, S, B" in told.err
    main(["inspect", str(tmp_path / "a.csv"), "--profile", "degrees"])
    seconds, lines = times[-1], capsys.readouterr().out
    for name in ("fixations", "saccades", "blinks"):
        assert f"{name:<10} {said[name] / seconds:.2f} a second" in lines


def test_calibrate_and_privatize_gaze(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files, made = sorted(map(str, folder.glob("*.csv"))), str(tmp_path / "own.npz")
    gaze = ["--profile", "degrees"]
    main(["calibrate", *files[:2], *gaze, "--mechanism", "cfpa", "--chunk", "32", "--out", made])
    mark = calibrations.load(made).front_end
    assert mark is not None
    assert mark.profile == "degrees"
    main(["privatize", files[2], *gaze, "--calibration", made, "--epsilon", "4.8", "--out", str(tmp_path / "out")])
    released = recordings.load(tmp_path / "out" / "sim-002.npz")
    assert np.isfinite(released.features).all()
    capsys.readouterr()
    thresholds = tmp_path / "mine.toml"
    shipped = Path(recordings.__file__).parents[2] / "data" / "profiles" / "degrees.toml"
    thresholds.write_text(shipped.read_text() + "\n[detection]\nonset_deg_per_s = 50.0\n")
    said = complaint(
        capsys, "privatize", files[2], "--profile", str(thresholds), "--calibration", made,
        "--epsilon", "4.8", "--out", str(tmp_path / "no"),
    )  # fmt: skip
    assert "was made from rows of front end" in said
    assert "eyestream calibrate" in said
    main(["extract", files[2], *gaze, "--out", str(tmp_path / "rows")])
    old = Path(__file__).resolve().parents[2] / "product" / "tape" / "calibrations" / "everyday-klt-32.npz"
    rows = str(tmp_path / "rows" / "sim-002.npz")
    said = complaint(
        capsys, "privatize", rows, "--calibration", str(old), "--epsilon", "4.8", "--out", str(tmp_path / "no")
    )
    assert "does not tell which front end made its rows" in said
    assert not (tmp_path / "no").exists()


def test_replay_sends_the_rows_of_gaze(folder: Path, mosquitto: Mosquitto, capsys: pytest.CaptureFixture[str]) -> None:
    files = sorted(map(str, folder.glob("*.csv")))[:2]
    there = ["--broker", mosquitto.url, "--device", "hmd-1"]
    main(["replay", *files, "--profile", "degrees", *there, "--speed", "max"])
    said = capsys.readouterr().err
    assert [f"{file}: 70 rows sent" in said for file in files] == [True, True]


def test_what_does_not_fit_is_said_in_a_line(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, out = str(folder / "sim-000.csv"), ["--out", str(tmp_path)]
    assert "not one of core, degrees" in complaint(capsys, "extract", file, "--profile", "none", *out)
    assert "no column 'x'" in complaint(capsys, "extract", file, "--profile", "smi-glasses", *out)
    assert "two recordings" in complaint(capsys, "extract", file, file, "--profile", "degrees", *out)
    assert "two recordings" in complaint(capsys, "events", file, file, "--profile", "degrees", *out)
    own = ["--out", str(folder)]
    assert "overwritten by its own events" in complaint(capsys, "events", file, "--profile", "degrees", *own)
    (tmp_path / "short.csv").write_text("t_s,x_deg,y_deg\n" + "".join(f"{i / 60},0,0\n" for i in range(600)))
    said = complaint(capsys, "extract", str(tmp_path / "short.csv"), "--profile", "degrees", *out)
    assert "shorter than the 30 s" in said
    times = [i / 60 if i < 300 else 1e9 + i / 60 for i in range(3000)]
    (tmp_path / "jump.csv").write_text("t_s,x_deg,y_deg\n" + "".join(f"{t:.5f},0,0\n" for t in times))
    said = complaint(capsys, "extract", str(tmp_path / "jump.csv"), "--profile", "degrees", *out)
    assert "2700 of 3000 samples have no time that goes forward" in said
