"""EyeLink's ASC and Eye-Tracking-BIDS: what is read, and how what cannot be read is named."""

import csv
import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eyestream.errors import RecordingError
from eyestream.gaze.profile_text import parse_profile
from eyestream.rim.files.gaze import load_gaze
from eyestream.rim.files.profiles import load_profile

SCREEN = parse_profile("""
name = "screen"
time_unit = "ms"
gaze_unit = "px"
y_axis = "down"
[columns]
time = "timestamp"
gaze = ["x_coordinate", "y_coordinate"]
[camera]
field_of_view_x_deg = 40.0
field_of_view_y_deg = 30.0
width_px = 1000
height_px = 750
""")


def table(path: Path, header: list[str], rows: list[list[Any]], delimiter: str = ",") -> Path:
    opener = gzip.open if path.name.endswith(".gz") else open
    with opener(path, "wt", newline="") as file:
        writer = csv.writer(file, delimiter=delimiter)
        if header:
            writer.writerow(header)
        writer.writerows(rows)
    return path


ASC = """** CONVERTED FROM test.edf
MSG 1000 DISPLAY_COORDS 0 0 999 749
START\t1000 \tLEFT\tSAMPLES\tEVENTS
SAMPLES\tGAZE\tLEFT\tRATE\t 500.00\tTRACKING\tCR\tFILTER\t2
1000\t  500.0\t  375.0\t  900.0\t...
1002\t  1000.0\t  375.0\t  900.0\t...
SSACC L 1002
1004\t   .\t   .\t    0.0\t...
EBLINK L\t1004\t1006\t2
1006\t  500.0\t  0.0\t  900.0\t...
END\t1006 \tSAMPLES\tEVENTS
"""


def test_eyelink(tmp_path: Path) -> None:
    path = tmp_path / "a.asc"
    path.write_text(ASC)
    got = load_gaze(path, SCREEN)
    np.testing.assert_allclose(got.samples.t, [1.0, 1.002, 1.004, 1.006])
    assert got.samples.valid.tolist() == [True, True, False, True]
    np.testing.assert_allclose(got.samples.x[[0, 1]], [0.0, 20.0], atol=1e-9)
    np.testing.assert_allclose(got.samples.y[3], 15.0)
    both = ASC.replace("GAZE\tLEFT\t", "GAZE\tLEFT\tRIGHT\t")
    for old, new in (("900.0\t", "900.0\t 500.0\t 375.0\t 800.0\t"), ("0.0\t...", " 0.0\t 400.0\t 300.0\t 800.0\t...")):
        both = both.replace(old, new)
    path.write_text(both)
    two = load_gaze(path, SCREEN)
    assert two.samples.valid.all()
    np.testing.assert_allclose(two.samples.x[1], np.degrees(np.arctan(0.5 * np.tan(np.radians(20.0)))))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("GAZE", "HREF", "line 4: samples are ['HREF'], GAZE is wanted"),
        ("SAMPLES\tGAZE", "NOTHING", "line 5: a sample before any SAMPLES line"),
        ("1002\t  1000.0\t", "1002\t  1000,0\t", "line 6: not a sample of GAZE LEFT"),
        ("1002\t  1000.0\t  375.0\t  900.0\t...", "1002", "line 6: not a sample of"),
    ],
)
def test_what_is_no_eyelink_file_is_named(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = tmp_path / "a.asc"
    path.write_text(ASC.replace(old, new))
    with pytest.raises(RecordingError) as error:
        load_gaze(path, SCREEN)
    assert message in str(error.value)


def test_eyelink_needs_the_screen(tmp_path: Path) -> None:
    (tmp_path / "a.asc").write_text(ASC)
    with pytest.raises(RecordingError, match=r"the profile needs gaze_unit = \"px\" with a \[camera\] for the screen"):
        load_gaze(tmp_path / "a.asc", load_profile("degrees"))


def bids(tmp_path: Path, **changes: Any) -> Path:
    told: dict[str, Any] = {
        "PhysioType": "eyetrack",
        "Columns": ["timestamp", "x_coordinate", "y_coordinate", "pupil_size"],
        "SamplingFrequency": 100,
        "timestamp": {"Units": "ms"},
        "x_coordinate": {"Units": "pixel"},
        "y_coordinate": {"Units": "pixel"},
        "pupil_size": {"Units": "arbitrary"},
    }
    told = {key: value for key, value in {**told, **changes}.items() if value is not None}
    (tmp_path / "sub-01_task-read_recording-eye1_physio.json").write_text(json.dumps(told))
    first = 4 - len(told.get("Columns", "four"))
    rows = [[1000 + 10 * i, 500 if i != 1 else "n/a", 375, 900][first:] for i in range(4)]
    return table(tmp_path / "sub-01_task-read_recording-eye1_physio.tsv.gz", [], rows, "\t")


def test_bids(tmp_path: Path) -> None:
    got = load_gaze(bids(tmp_path), SCREEN)
    np.testing.assert_allclose(got.samples.t, [1.0, 1.01, 1.02, 1.03])
    assert got.samples.valid.tolist() == [True, False, True, True]
    untimed = bids(tmp_path, Columns=["x_coordinate", "y_coordinate", "pupil_size"], StartTime=2, timestamp=None)
    np.testing.assert_allclose(load_gaze(untimed, SCREEN).samples.t, [2.0, 2.01, 2.02, 2.03])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"PhysioType": "generic"}, "physio.json: PhysioType: 'eyetrack' is wanted"),
        ({"Columns": None}, "physio.json: Columns: a list of names is wanted"),
        ({"x_coordinate": None}, "physio.json: x_coordinate: Units: 'px' is wanted by profile screen"),
        ({"x_coordinate": {"Units": "degree"}}, "physio.json: x_coordinate: Units: 'px' is wanted"),
        ({"timestamp": {}}, "physio.json: timestamp: Units: 'ms' is wanted"),
        ({"Columns": ["timestamp", "a", "y_coordinate", "pupil_size"]}, "x_coordinate"),
        ({"Columns": ["x_coordinate", "y_coordinate", "z"], "SamplingFrequency": None}, "SamplingFrequency: wanted"),
    ],
)
def test_what_is_no_bids_is_named(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    path = bids(tmp_path, **changes)
    with pytest.raises(RecordingError) as error:
        load_gaze(path, SCREEN)
    assert message in str(error.value)


def test_bids_needs_its_json(tmp_path: Path) -> None:
    path = bids(tmp_path)
    beside = tmp_path / "sub-01_task-read_recording-eye1_physio.json"
    for text, message in (("{", "not JSON"), ("[]", "not a JSON object")):
        beside.write_text(text)
        with pytest.raises(RecordingError, match=message):
            load_gaze(path, SCREEN)
    beside.unlink()
    with pytest.raises(RecordingError, match=r"physio\.json: wanted beside the recording"):
        load_gaze(path, SCREEN)
