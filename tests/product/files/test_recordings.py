"""Recordings in and out: round trips, missing values, and refusals that name file and line."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from eyestream.errors import RecordingError
from eyestream.gaze.features import NAMES as FEATURES_52
from eyestream.rim.files.recordings import Recording, load, save

SUFFIXES = [".npz", ".csv", ".csv.gz", ".tsv", ".tsv.gz", ".NPZ", ".CSV", ".CSV.GZ"]


def recording(rows: int = 20) -> Recording:
    features = np.random.default_rng(0).normal(size=(rows, 3)).astype(np.float32).astype(np.float64)
    features[1, 0] = features[4] = np.nan
    features[2, 1] = np.float32(1e-40)
    features[3, 2] = -np.float32(3.4e38)
    return Recording(np.arange(rows) / 3.0 + 0.1, features, ("alpha", "beta, with a comma", "gamma"))


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_round_trip(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"person.one{suffix}"
    save(recording(), path)
    assert [p.name for p in tmp_path.iterdir()] == [path.name]  # exactly the path that was asked for
    read = load(path)
    np.testing.assert_array_equal(read.t, recording().t)
    np.testing.assert_array_equal(read.features.astype(np.float32), recording().features.astype(np.float32))
    assert read.names == recording().names
    assert read.features.dtype == read.t.dtype == np.float64
    assert read.rate_hz == pytest.approx(3.0)
    assert not read.simulated
    save(read, tmp_path / f"again{suffix}")
    np.testing.assert_array_equal(load(tmp_path / f"again{suffix}").features, read.features)


def test_the_same_recording_gives_the_same_bytes(tmp_path: Path) -> None:
    for suffix in (".csv", ".csv.gz"):
        save(recording(), tmp_path / f"a{suffix}")
        save(recording(), tmp_path / f"b{suffix}")
        assert (tmp_path / f"a{suffix}").read_bytes() == (tmp_path / f"b{suffix}").read_bytes()


@pytest.mark.parametrize(("features", "names"), [(52, FEATURES_52), (2, ("feature_0", "feature_1"))])
def test_names_that_the_file_does_not_hold_are_not_written(
    tmp_path: Path, features: int, names: tuple[str, ...]
) -> None:
    np.savez(tmp_path / "a.npz", t=np.arange(4.0), features=np.zeros((4, features), dtype=np.float32), extra=np.ones(2))
    read = load(tmp_path / "a.npz")
    assert read.names == names
    assert not read.named
    assert read.others == ("extra",)
    save(read, tmp_path / "b.npz")
    assert set(np.load(tmp_path / "b.npz").files) == {"t", "features"}


def test_simulated_recordings_stay_labelled(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", t=np.arange(4.0), features=np.zeros((4, 2)), names=["a", "b"], simulated=True)
    read = load(tmp_path / "a.npz")
    assert read.simulated
    save(read, tmp_path / "b.npz")
    assert set(np.load(tmp_path / "b.npz").files) == {"t", "features", "names", "simulated"}


def test_empty_cells_nan_and_infinity_are_missing_values(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("t,a,b\n0,1,\n0.5,nan,2\n1, ,inf\n")
    read = load(tmp_path / "a.csv")
    np.testing.assert_array_equal(read.features, [[1, np.nan], [np.nan, 2], [np.nan, np.inf]])


BAD_CSV = {
    "": "line 1: expected a header with a column of seconds and at least one feature, found an empty file",
    "t_s,x_deg,y_deg\n0,1,2\n": "columns x_deg, y_deg look like gaze, not like features: try --profile degrees",
    "t_s,x,y,pupil_right_mm,pupil_left_mm,event\n0,1,2,3,3,F\n": "look like gaze, not like features: try --profile smi",
    "t\n0\n": "line 1: expected a header",
    "0,1.5\n1,2.5\n": "line 1: expected a header with names, found numbers",
    "t,a\n": "holds no rows",
    "t,a\n0,1\n1,2,3\n": "line 3: expected 2 values, found 3",
    "t,a\n0,1\n1\n": "line 3: expected 2 values, found 1",
    "t,a\n0,1\n1,x\n": "line 3: column a: expected a number",
    "t,a\n0,1\n,2\n": "line 3: the time is not a number",
    "t,a\n0,1\nnan,2\n": "line 3: the time is not a number",
    "t,a\n0,1\n1,2\n1,3\n": "line 4: time does not increase",
    "t,a\n0,1\n1,2\n2,2\n0.5,3\n": "line 5: time does not increase",
    "t,a,a\n0,1,2\n": "expected 2 different names, found 1",
}


@pytest.mark.parametrize(("text", "complaint"), BAD_CSV.items())
@pytest.mark.parametrize("suffix", [".csv", ".csv.gz"])
def test_a_csv_that_is_none_is_refused_by_line(tmp_path: Path, text: str, complaint: str, suffix: str) -> None:
    path = tmp_path / f"bad{suffix}"
    path.write_bytes(gzip.compress(text.encode()) if suffix.endswith("gz") else text.encode())
    with pytest.raises(RecordingError) as refusal:
        load(path)
    message = str(refusal.value)
    assert message.startswith(f"{path}: ")
    assert complaint in message
    assert "\n" not in message


def test_no_message_carries_a_value(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("t,a\n0,1\n1,secret4711\n")
    with pytest.raises(RecordingError) as refusal:
        load(tmp_path / "a.csv")
    assert "4711" not in str(refusal.value)


BAD_NPZ = {
    "no features": {"t": np.arange(3.0)},
    "no t": {"features": np.zeros((3, 2))},
    "another length": {"t": np.arange(4.0), "features": np.zeros((3, 2))},
    "one dimension": {"t": np.arange(3.0), "features": np.zeros(3)},
    "no dimension": {"t": np.arange(3.0), "features": np.array(1.0)},
    "three dimensions": {"t": np.arange(3.0), "features": np.zeros((3, 2, 2))},
    "t of two": {"t": np.zeros((3, 1)), "features": np.zeros((3, 2))},
    "words": {"t": np.arange(3.0), "features": np.array([["a", "b"]] * 3)},
    "objects": {"t": np.arange(3.0), "features": np.array([[None, {}]] * 3)},
    "too few names": {"t": np.arange(3.0), "features": np.zeros((3, 2)), "names": np.array(["a"])},
    "names twice": {"t": np.arange(3.0), "features": np.zeros((3, 2)), "names": np.array(["a", "a"])},
    "one name": {"t": np.arange(3.0), "features": np.zeros((3, 2)), "names": np.array("ab")},
    "no rows": {"t": np.zeros(0), "features": np.zeros((0, 2))},
    "time stands": {"t": np.zeros(3), "features": np.zeros((3, 2))},
    "time is no number": {"t": np.array([0, np.nan, 2]), "features": np.zeros((3, 2))},
    "time ends": {"t": np.array([0, 1, np.inf]), "features": np.zeros((3, 2))},
}


@pytest.mark.parametrize("what", BAD_NPZ)
def test_an_npz_that_is_none_is_refused(tmp_path: Path, what: str) -> None:
    path = tmp_path / "bad.npz"
    np.savez(path, allow_pickle=True, **BAD_NPZ[what])
    with pytest.raises(RecordingError) as refusal:
        load(path)
    assert str(refusal.value).startswith(f"{path}: ")
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("name", "said"),
    [("missing.npz", "no such file"), ("missing.csv", "no such file"), ("folder.npz", "is a folder, expected a file")],
)
def test_a_missing_file_is_refused_and_a_folder_is_called_one(tmp_path: Path, name: str, said: str) -> None:
    (tmp_path / "folder.npz").mkdir()
    with pytest.raises(RecordingError, match=said):
        load(tmp_path / name)


def test_another_kind_of_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("t,a\n0,1\n")
    with pytest.raises(RecordingError, match=r"\.npz, \.csv, \.tsv or \.parquet"):
        load(tmp_path / "a.txt")
    for name in ("a.npz", "a.csv.gz"):
        (tmp_path / name).write_bytes(b"something else")
        with pytest.raises(RecordingError, match="is not a"):
            load(tmp_path / name)
    (tmp_path / "a.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(RecordingError, match=r"is not a \.csv recording"):
        load(tmp_path / "a.csv")


@pytest.mark.parametrize("suffix", [".npz", ".csv.gz"])
def test_damage_anywhere_is_an_error_of_the_operator(tmp_path: Path, suffix: str) -> None:
    """A wrong byte gives a recording or a refusal, never another exception."""
    path = tmp_path / f"a{suffix}"
    save(recording(), path)
    whole = path.read_bytes()
    rng = np.random.default_rng(1)
    refused = 0
    for turn in range(300):
        data = bytearray(whole)
        if turn % 3:
            data[rng.integers(len(data))] ^= int(rng.integers(1, 256))
        else:
            data = data[: rng.integers(len(data))]
        path.write_bytes(data)
        try:
            load(path)
        except RecordingError:
            refused += 1
    assert refused > 150


def test_an_array_that_claims_to_be_larger_than_memory_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    np.savez(path, t=np.arange(3.0), features=np.zeros((3, 2)))
    data = path.read_bytes()
    assert data.count(b"(3, 2), }" + 10 * b" ") == 1
    path.write_bytes(data.replace(b"(3, 2), }" + 10 * b" ", b"(3" + 10 * b"3" + b", 2), }"))
    with pytest.raises(RecordingError):
        load(path)


def test_features_that_are_called_x_y_and_z_are_no_gaze(tmp_path: Path) -> None:
    (tmp_path / "hand.csv").write_text("t_s,x,y,z\n0,1,2,3\n0.02,1,2,3\n")
    assert load(tmp_path / "hand.csv").names == ("x", "y", "z")
