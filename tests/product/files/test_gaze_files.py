"""Recordings of gaze from files: what is read, and how what cannot be read is named."""

import csv
import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eyestream.errors import ConfigError, RecordingError
from eyestream.rim.files.gaze import GazeRecording, load_gaze
from eyestream.rim.files.profiles import SHIPPED, load_profile


def table(path: Path, header: list[str], rows: list[list[Any]], delimiter: str = ",") -> Path:
    opener = gzip.open if path.name.endswith(".gz") else open
    with opener(path, "wt", newline="") as file:
        writer = csv.writer(file, delimiter=delimiter)
        if header:
            writer.writerow(header)
        writer.writerows(rows)
    return path


def degrees(tmp_path: Path, text: str, name: str = "a.csv") -> GazeRecording:
    path = tmp_path / name
    path.write_text(text)
    return load_gaze(path, load_profile("degrees"))


def line(i: int, x: object = 1.5, y: object = -2.0) -> str:
    return f"{i / 100},{x},{y},3.1,F\n"


FINE = "t_s,x_deg,y_deg,pupil_mm,label\n" + "".join(map(line, range(20)))


def test_a_table_of_degrees(tmp_path: Path) -> None:
    header = ["t_s", "x_deg", "y_deg", "pupil_mm", "label"]
    rows: list[list[Any]] = [[i / 125, i / 2, -i, 3.5, "FSBxPn"[i]] for i in range(6)]
    rows[3][2], rows[4][3] = "", "n/a"
    for name in ("a.csv", "b.csv.gz", "c.tsv"):
        path = table(tmp_path / name, header, rows, "\t" if name.endswith(".tsv") else ",")
        got = load_gaze(path, load_profile("degrees"))
        assert got.profile.rate_hz == pytest.approx(125.0)
        assert got.path == str(path)
        np.testing.assert_array_equal(got.samples.valid, [True, True, True, False, True, True])
        np.testing.assert_array_equal(got.samples.x, [0, 0.5, 1, np.nan, 2, 2.5])
        np.testing.assert_array_equal(got.samples.pupil_mm, [3.5, 3.5, 3.5, 3.5, np.nan, 3.5])
        assert got.labels is not None
        assert "".join(got.labels) == "FSB???"


def test_columns_may_stand_anywhere_and_others_are_ignored(tmp_path: Path) -> None:
    text = "note,y_deg,t_s,x_deg\n" + "".join(f'"a, b",{i},{i / 60},7\n' for i in range(10))
    got = degrees(tmp_path, "\ufeff" + text + "\n\n")
    np.testing.assert_array_equal(got.samples.y, np.arange(10))
    assert np.isnan(got.samples.pupil_mm).all()
    assert got.labels is None


def test_labels_in_words(tmp_path: Path) -> None:
    words = ["Fixation", "saccade", "BLINK", "", "-", "pursuit", "f"]
    text = "t_s,x_deg,y_deg,label\n" + "".join(f"{i / 60},0,0,{word}\n" for i, word in enumerate(words))
    labels = degrees(tmp_path, text).labels
    assert labels is not None
    assert "".join(labels) == "FSB--?F"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (FINE.replace("x_deg", "x"), "no column 'x_deg'; the columns are 't_s', 'x', 'y_deg', 'pupil_mm', 'label'"),
        (FINE.replace("y_deg", "x_deg"), "line 1: two columns are called 'x_deg'"),
        (FINE.split("\n", 1)[1], "line 1: a header with the names of the columns is wanted"),
        ("", "line 1: a header with the names of the columns is wanted"),
        ("t_s,x_deg,y_deg\n", "holds no samples"),
        (FINE + "0.2,1.5\n", "line 22: 2 values, 5 wanted"),
        (FINE + '0.2,"1,5",2,3,F\n', "line 22: column 'x_deg' holds no number (a decimal comma?)"),
        (FINE + "0.2,secret,2,3,F\n", "line 22: column 'x_deg' holds no number"),
        (FINE + "\n0.2,1,2,3,F\n", "line 22: 0 values, 5 wanted"),
        (FINE.replace("\n", "\n-", 20).replace("-0.0,", "0.0,"), "column 't_s': time does not go forward"),
        ("t_s,x_deg,y_deg\n,1,1\n,2,2\n", "no sample has a time"),
        ("t_s,x_deg,y_deg\n1,1,1\n", "time does not go forward"),
    ],
)
def test_what_is_wrong_is_named_and_no_value_is_told(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(RecordingError) as error:
        degrees(tmp_path, text)
    assert str(error.value).startswith(str(tmp_path / "a.csv"))
    assert message in str(error.value)
    assert "secret" not in str(error.value)


def test_a_wrong_unit_of_time_is_named(tmp_path: Path) -> None:
    for step, rate in ((16.6, "0.0602"), (4e6, "2.5e-07"), (1e-5, "1e+05")):
        text = "t_s,x_deg,y_deg\n" + "".join(f"{i * step},0,0\n" for i in range(9))
        with pytest.raises(RecordingError, match="samples a second, if its unit is 's'; 20 to 5000 wanted") as error:
            degrees(tmp_path, text)
        assert rate in str(error.value)


@pytest.mark.parametrize(
    ("told", "rate_hz"), [(59.94, 60.0), (60.9, 60.0), (62.4, 62.5), (249.9, 250.0), (333.4, 333.0)]
)
def test_the_nominal_rate(tmp_path: Path, told: float, rate_hz: float) -> None:
    text = "t_s,x_deg,y_deg\n" + "".join(f"{i / told},0,0\n" for i in range(20))
    assert degrees(tmp_path, text).profile.rate_hz == rate_hz


def test_another_rate_than_the_profile_is_named(tmp_path: Path) -> None:
    path = table(tmp_path / "a.csv", ["t_s", "x", "y"], [[i / 120, 0.5, 0.5] for i in range(50)])
    with pytest.raises(ConfigError, match="profile smi-glasses: made for 60 samples a second, not 120"):
        load_gaze(path, load_profile("smi-glasses"))


def test_damaged_files(tmp_path: Path) -> None:
    whole = gzip.compress(FINE.encode() * 50)
    cases = {
        "cut.csv.gz": (whole[: len(whole) // 2], "cut off|damaged"),
        "no.csv.gz": (FINE.encode(), "not a gzip file"),
        "text.csv": (b"t_s,x_deg,y_deg\n0,\xff\xfe,1\n", "UTF-8"),
        "a.dat": (b"", "gaze is read from .csv"),
    }
    for name, (data, message) in cases.items():
        (tmp_path / name).write_bytes(data)
        with pytest.raises(RecordingError, match=message):
            load_gaze(tmp_path / name, load_profile("degrees"))
    with pytest.raises(RecordingError, match="no such file"):
        load_gaze(tmp_path / "none.csv", load_profile("degrees"))
    with pytest.raises(RecordingError, match="is a folder"):
        load_gaze(tmp_path, load_profile("degrees"))


def test_profiles_by_name_and_path(tmp_path: Path) -> None:
    assert {load_profile(name).name for name in SHIPPED} == set(SHIPPED)
    with pytest.raises(ConfigError, match="'tobii': not one of core, degrees"):
        load_profile("tobii")
    with pytest.raises(ConfigError, match=r"none\.toml: cannot read the profile"):
        load_profile(str(tmp_path / "none.toml"))
    (tmp_path / "bad.toml").write_bytes(b"\xff")
    with pytest.raises(ConfigError, match="not a text file"):
        load_profile(str(tmp_path / "bad.toml"))


def test_a_person(shared_data: Path) -> None:
    got = load_gaze(shared_data / "hoppe2018" / "gaze" / "P17.csv.gz", load_profile("smi-glasses"))
    assert got.profile.rate_hz == 60.0
    assert np.isnan(got.samples.pupil_mm).all()
    assert got.labels is not None
    assert set(got.labels) <= set("FSB-")
    assert len(got.labels) == len(got.samples) > 30_000


def test_gazebase(tmp_path: Path) -> None:
    rows = [[i, 1.25 if i != 2 else "NaN", 2.5, 0 if i != 3 else 4, 0, 0, 1, 900] for i in range(5)]
    path = table(tmp_path / "S_1001_S1_TEX.csv", ["n", "x", "y", "val", "xp", "yp", "lab", "dP"], rows)
    got = load_gaze(path, load_profile("gazebase"))
    assert got.samples.valid.tolist() == [True, True, False, False, True]
    np.testing.assert_allclose(np.diff(got.samples.t), 0.001)
    rows = [[i * 4, 1.25, -2.5, 0, 0, 0, 0] for i in range(5)]
    path = table(tmp_path / "S_1002_S1_1_VRG.csv", ["n", "x", "y", "lx", "ly", "rx", "ry"], rows)
    assert load_gaze(path, load_profile("gazebasevr")).samples.valid.all()


def test_pupil_cloud(tmp_path: Path) -> None:
    header = ["section id", "recording id", "timestamp [ns]", "gaze x [px]", "gaze y [px]", "worn", "fixation id"]
    header += ["blink id", "azimuth [deg]", "elevation [deg]"]
    start = 1_700_000_000_123_456_789
    rows = [["a", "b", start + i * 5_000_000, 800, 600, "1.0", 1, "", -3.5, 4.5] for i in range(5)]
    rows[1][5], rows[2][7], rows[3][5] = "0.0", 7, "True"
    got = load_gaze(table(tmp_path / "gaze.csv", header, rows), load_profile("pupil-cloud"))
    assert got.samples.valid.tolist() == [True, False, False, True, True]
    np.testing.assert_allclose(np.diff(got.samples.t), 0.005, atol=1e-6)
    assert (got.samples.x[0], got.samples.y[0]) == (-3.5, 4.5)
    old = table(tmp_path / "old.csv", header[:7] + header[8:], [row[:7] + row[8:] for row in rows])
    with pytest.raises(RecordingError, match="no column 'blink id'"):
        load_gaze(old, load_profile("pupil-cloud"))
