"""Recordings of gaze as they should not be: each is refused by name, or the samples that are meant are invalid.

Whatever happens, rows stay on the grid of the clock, one each half second: nothing about the eye changes the cadence.
"""

import gzip
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from eyestream.errors import RecordingError
from eyestream.rim.files.extraction import extract
from eyestream.rim.files.gaze import load_gaze
from eyestream.rim.files.profiles import load_profile
from eyestream_lab.events.labels import detect

RATE, N = 60, 2400
HEADER = "t_s,x_deg,y_deg,pupil_mm\n"
Row = tuple[object, object, object, object]


def usual(i: int) -> Row:
    """A good sample: the eye at two places in turn, with a little noise."""
    jump = 4.0 if i // 20 % 2 else -4.0
    return f"{i / RATE:.6f}", f"{jump + 0.02 * np.sin(i):.4f}", f"{0.02 * np.cos(3 * i):.4f}", "3.2"


def table(change: Callable[[int, Row], Row | None], header: str = HEADER) -> str:
    rows = (change(i, usual(i)) for i in range(N))
    return header + "".join(",".join(map(str, row)) + "\n" for row in rows if row is not None)


def at(index: range | int, **cells: object) -> str:
    """The usual table with other cells in some rows."""
    where = index if isinstance(index, range) else range(index, index + 1)
    names = ("t", "x", "y", "pupil")
    return table(
        lambda i, row: tuple(cells.get(n, c) for n, c in zip(names, row, strict=True)) if i in where else row  # type: ignore[return-value]
    )


def times(change: Callable[[int], float]) -> str:
    return table(lambda i, row: (f"{change(i):.6f}", *row[1:]))


SOME = range(600, 700)

INVALID = {
    "nan": at(SOME, x="nan"),
    "infinity": at(SOME, y="inf"),
    "minus infinity": at(SOME, x="-inf"),
    "1e308": at(SOME, x="1e308", y="-1e308"),
    "outside of the field": at(SOME, x="91"),
    "empty cells": at(SOME, x="", y=""),
    "n/a": at(SOME, x="n/a"),
    "a dot": at(SOME, y="."),
}
"""The hundred samples are no gaze, and the others are."""

PUPILS = {
    "pupil of -1": at(SOME, pupil="-1"),
    "pupil of 0": at(SOME, pupil="0"),
    "pupil n/a": at(SOME, pupil="n/a"),
    "pupil in micrometres": at(SOME, pupil="3200"),
    "pupil infinite": at(SOME, pupil="inf"),
}
"""The hundred samples have no diameter, and are gaze."""

REFUSED = {
    "milliseconds for seconds": (times(lambda i: 1000 * i / RATE), "0.06 samples a second, if its unit is 's'"),
    "nanoseconds for seconds": (times(lambda i: 1e9 * i / RATE), "samples a second, if its unit is 's'"),
    "hours for seconds": (times(lambda i: i / RATE / 3600), "samples a second, if its unit is"),
    "no time at all": (at(range(N), t=""), "no sample has a time"),
    "one time for all": (at(range(N), t="5"), "time does not go forward"),
    "backward": (times(lambda i: -i / RATE), "time does not go forward"),
    "repeated": (times(lambda i: i // 2 / RATE), "time does not go forward"),
    "half behind a jump of a year": (
        times(lambda i: i / RATE + (3e7 if i > N // 2 else 0)),
        "samples have no time that goes forward",
    ),
    "a text": (at(7, x="left"), "line 9: column 'x_deg' holds no number"),
    "decimal commas": (at(7, x='"1,5"'), r"line 9: column 'x_deg' holds no number \(a decimal comma?"),
    "commas as they come": (at(7, x="1,5"), "line 9: 5 values, 4 wanted"),
    "a row cut off": (table(lambda i, row: row)[:-10], "values, 4 wanted|holds no number"),
    "no header": (table(lambda i, row: row, header=""), "line 1: a header with the names"),
    "a column missing": (table(lambda i, row: row, header="t_s,x_deg,other,pupil_mm\n"), "no column 'y_deg'"),
    "a column twice": (table(lambda i, row: row, header="t_s,x_deg,y_deg,y_deg\n"), "two columns are called 'y_deg'"),
    "nothing": ("", "line 1: a header"),
    "a header alone": (HEADER, "holds no samples"),
    "one sample": (HEADER + "0,1,1,3\n", "time does not go forward"),
    "shorter than a window": (HEADER + "".join(f"{i / 60:.4f},1,1,3\n" for i in range(1000)), "shorter than the 30 s"),
}  # fmt: skip


def load(tmp_path: Path, text: str, name: str = "a.csv"):  # type: ignore[no-untyped-def]
    path = tmp_path / name
    path.write_text(text)
    return load_gaze(path, load_profile("degrees"))


def on_the_grid(t: np.ndarray, seconds: float) -> bool:
    return bool(np.allclose(t, 30.0 + 0.5 * np.arange(len(t)))) and len(t) == int((seconds - 30.0) / 0.5) + 1


@pytest.mark.parametrize("name", INVALID)
def test_samples_that_are_no_gaze_are_invalid(tmp_path: Path, name: str) -> None:
    gaze = load(tmp_path, INVALID[name])
    assert np.flatnonzero(~gaze.samples.valid).tolist() == list(SOME)
    _, letters = detect(gaze.profile, gaze.samples)
    assert not np.isin(letters[600:700], ["F", "S"]).any()
    rows = extract(gaze)
    assert on_the_grid(rows.t, (N - 1) / RATE)
    assert np.isfinite(rows.features).all()


@pytest.mark.parametrize("name", PUPILS)
def test_diameters_that_are_none_are_missing(tmp_path: Path, name: str) -> None:
    gaze = load(tmp_path, PUPILS[name])
    assert gaze.samples.valid.all()
    assert np.flatnonzero(np.isnan(gaze.samples.pupil_mm)).tolist() == list(SOME)
    assert np.isfinite(extract(gaze).features).all()


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_recording_is_refused_by_name(tmp_path: Path, name: str) -> None:
    text, message = REFUSED[name]
    with pytest.raises(RecordingError, match=message.replace("+", r"\+")) as refused:
        extract(load(tmp_path, text))
    assert str(tmp_path / "a.csv") in str(refused.value)
    assert "left" not in str(refused.value)


@pytest.mark.parametrize("keep", [0, 1, 10, 1000, -9, -1])
def test_a_packed_file_that_is_cut_off_is_refused_by_name(tmp_path: Path, keep: int) -> None:
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(table(lambda i, row: row).encode())[:keep])
    with pytest.raises(RecordingError, match=r"cut off|not a gzip file|a header"):
        load_gaze(tmp_path / "a.csv.gz", load_profile("degrees"))


@pytest.mark.parametrize(
    ("name", "lost"),
    [("all lost", range(N)), ("30 s of silence", range(200, 2100)), ("not worn from the start", range(2000))],
)
def test_a_lost_eye_is_rows_of_nan_on_the_same_grid(tmp_path: Path, name: str, lost: range) -> None:
    rows = extract(load(tmp_path, at(lost, x="", y="", pupil="")))
    assert on_the_grid(rows.t, (N - 1) / RATE)
    assert np.isnan(rows.features).all(axis=1).any()
    silent = extract(load(tmp_path, table(lambda i, row: None if i in lost and i not in (0, N - 1) else row)))\
        if name == "30 s of silence" else rows  # fmt: skip
    np.testing.assert_array_equal(silent.t, rows.t)
    np.testing.assert_array_equal(np.isnan(silent.features), np.isnan(rows.features))


def test_a_frozen_value_is_a_lost_eye_where_the_profile_says_so(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    header = "t_s,x_deg,y_deg,pupil_right_mm,pupil_left_mm\n"
    path.write_text(header + "".join(f"{i / RATE:.6f},2.5,1.5,3,3\n" for i in range(N)))
    rows = extract(load_gaze(path, load_profile("lsl")))
    assert on_the_grid(rows.t, (N - 1) / RATE)
    assert np.isnan(rows.features).all()


def test_one_eye_has_no_diameter_and_gaze(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    header = "t_s,x_deg,y_deg,pupil_right_mm,pupil_left_mm\n"
    rows = (usual(i) for i in range(N))
    path.write_text(header + "".join(",".join((*map(str, row), "")) + "\n" for row in rows))
    made = extract(load_gaze(path, load_profile("lsl")))
    pupils = np.array([name.endswith("_diameter") for name in made.names])
    assert np.isnan(made.features[:, pupils]).all()
    assert np.isfinite(made.features[:, ~pupils]).all()
