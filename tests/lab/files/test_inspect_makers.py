"""`inspect` of files as twelve makers describe them, made up here: the right columns, unit, axis, losses and rate."""

import gzip
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from eyestream.cli.main import main
from eyestream.gaze.profile_text import parse_profile
from eyestream.rim.files.gaze import load_gaze
from eyestream.rim.files.profiles import load_profile
from eyestream_lab.files.inspection import inspect_table
from eyestream_lab.simulation.gaze import gaze_of, gaze_person

RATE_HZ = 100.0
RNG = np.random.default_rng(4)
GAZE = gaze_of(gaze_person(RNG), RATE_HZ, 60.0, RNG)[0]
T = np.arange(len(GAZE)) / RATE_HZ
SEEN = GAZE.valid
X, Y = np.where(SEEN, GAZE.x, 0.0), np.where(SEEN, GAZE.y, 0.0)
RIGHT, UP = np.radians(X), np.radians(Y)
UNIT = np.column_stack([np.sin(RIGHT) * np.cos(UP), np.sin(UP), np.cos(RIGHT) * np.cos(UP)])
UNIT_OR_0 = np.where(SEEN[:, None], UNIT, 0.0)
HEAD = RNG.normal(0.0, 0.01, (len(GAZE), 3)) + np.array([0.03, 1.6, 0.2])
FLAG = SEEN.astype(float)
ONES = np.ones(len(GAZE))
PIXELS = np.column_stack([960 + 40 * X, 540 - 40 * Y])

Columns = Sequence[tuple[str, np.ndarray]]


def xyz(pattern: str, points: np.ndarray, letters: str = "xyz") -> Columns:
    return [(pattern.replace("*", letter), points[:, i]) for i, letter in enumerate(letters)]


MAKERS: dict[str, tuple[Columns, dict[str, object], dict[str, object]]] = {
    "Vive Pro Eye (SRanipal)": (
        [("time(100ns)", T * 1e7), ("time_stamp(ms)", T * 1e3), *xyz("gaze_origin_L.*(mm)", 1e3 * HEAD),
         *xyz("gaze_L.*", UNIT_OR_0), ("pupil_diameter_L(mm)", 3.5 * FLAG), ("openness_L", FLAG),
         ("eye_valid_L", 31 * FLAG)],
        {"gaze_unit": "vector", "y_axis": "up", "time_unit": "ms", "openness_min": 0.2},
        {"gaze": ["gaze_L.x", "gaze_L.y", "gaze_L.z"], "valid": "eye_valid_L", "openness": ["openness_L"]},
    ),
    "Varjo": (
        [("raw_timestamp", 1e18 + T * 1e9), ("status", 2 * FLAG), *xyz("gaze_origin_*", 0 * HEAD),
         *xyz("gaze_forward_*", UNIT_OR_0), *xyz("left_origin_*", 0.03 * ONES[:, None] + 0 * HEAD),
         ("left_status", 3 * FLAG), ("left_eye_openness", FLAG), ("right_eye_openness", FLAG)],
        {"gaze_unit": "vector", "y_axis": "up", "time_unit": "ns"},
        {"gaze": ["gaze_forward_x", "gaze_forward_y", "gaze_forward_z"], "valid": "status"},
    ),
    "Pico Neo 3": (
        [("timestamp", T * 1e3), *xyz("EyeGaze.position.*", HEAD), *xyz("EyeGaze.vector.*", UNIT_OR_0),
         ("leftEyeOpenness", FLAG), ("rightEyeOpenness", FLAG), ("leftEyePoseStatus", FLAG)],
        {"gaze_unit": "vector", "y_axis": "up", "time_unit": "ms"},
        {"gaze": ["EyeGaze.vector.x", "EyeGaze.vector.y", "EyeGaze.vector.z"], "valid": "leftEyePoseStatus"},
    ),
    "Quest Pro (Unity)": (
        [("Time", T), *xyz("HeadPosition*", HEAD, "XYZ"), *xyz("EyePosition*", HEAD, "XYZ"),
         *xyz("EyeDirection*", UNIT_OR_0, "XYZ"), ("Confidence", FLAG)],
        {"gaze_unit": "vector", "y_axis": "up", "time_unit": "s"},
        {"gaze": ["EyeDirectionX", "EyeDirectionY", "EyeDirectionZ"], "confidence": "Confidence"},
    ),
    "HoloLens 2": (
        [("timestamp_ms", T * 1e3), ("isGazeValid", FLAG), *xyz("gazeOrigin_*", HEAD),
         *xyz("gazeDirection_*", UNIT_OR_0)],
        {"gaze_unit": "vector", "y_axis": "up", "time_unit": "ms"},
        {"gaze": ["gazeDirection_x", "gazeDirection_y", "gazeDirection_z"], "valid": "isGazeValid"},
    ),
    "SilicoLabs": (
        [("Time_s", T), *xyz("Eye_Center_Pos*", HEAD, "XYZ"), *xyz("Eye_Center_Dir*", UNIT_OR_0, "XYZ"),
         *xyz("Eye_Left_Pos*", HEAD, "XYZ"), *xyz("Eye_Left_Dir*", UNIT_OR_0, "XYZ")],
        {"gaze_unit": "vector", "y_axis": "up", "time_unit": "s"},
        {"gaze": ["Eye_Center_DirX", "Eye_Center_DirY", "Eye_Center_DirZ"]},
    ),
    "Project Aria": (
        [("tracking_timestamp_us", T * 1e6), ("yaw_rads_cpf", np.where(SEEN, RIGHT, np.nan)),
         ("pitch_rads_cpf", np.where(SEEN, UP, np.nan)), ("depth_m", ONES)],
        {"gaze_unit": "rad", "y_axis": "up", "time_unit": "us"},
        {"gaze": ["yaw_rads_cpf", "pitch_rads_cpf"]},
    ),
    "Neon (Pupil Cloud)": (
        [("timestamp [ns]", 1e18 + T * 1e9), ("gaze x [px]", 800 + 10 * X), ("gaze y [px]", 600 - 10 * Y),
         ("worn", ONES),
         ("fixation id", np.floor(T)), ("blink id", np.where(SEEN, np.nan, 3)), ("azimuth [deg]", X),
         ("elevation [deg]", Y)],
        {"gaze_unit": "deg", "y_axis": "up", "time_unit": "ns"},
        {"gaze": ["azimuth [deg]", "elevation [deg]"], "valid": "worn", "lost": "blink id"},
    ),
    "Invisible (Pupil Cloud)": (
        [("timestamp [ns]", 1e18 + T * 1e9), ("gaze x [px]", 544 + 12 * X), ("gaze y [px]", 540 - 12 * Y),
         ("worn", ONES),
         ("fixation id", np.floor(T)), ("blink id", np.where(SEEN, np.nan, 3))],
        {"gaze_unit": "px", "y_axis": "down", "time_unit": "ns"},
        {"gaze": ["gaze x [px]", "gaze y [px]"], "valid": "worn", "lost": "blink id"},
    ),
    "Tobii Studio": (
        [("Timestamp", np.floor(T * 1e3)), *xyz("EyeLoc*Left", 1e3 * HEAD, "XYZ"),
         ("GazePointX", np.where(SEEN, PIXELS[:, 0], -1)), ("GazePointY", np.where(SEEN, PIXELS[:, 1], -1)),
         ("Validity", 4 * (1 - FLAG)), ("PupilLeft", np.where(SEEN, 3.1, -1))],
        {"gaze_unit": "px", "y_axis": "down", "time_unit": "ms", "pupil_unit": "mm"},
        {"gaze": ["GazePointX", "GazePointY"], "lost": "Validity"},
    ),
    "Gazepoint": (
        [("TIME(s)", T), ("FPOGX", 0.5 + X / 50), ("FPOGY", 0.5 - Y / 30), ("FPOGV", FLAG),
         ("BPOGX", 0.5 + X / 50), ("BPOGY", 0.5 - Y / 30), ("BPOGV", FLAG)],
        {"gaze_unit": "image", "y_axis": "down", "time_unit": "s"},
        {"gaze": ["BPOGX", "BPOGY"], "valid": "BPOGV"},
    ),
    "SMI": (
        [("Time", T * 1e6), ("Point of Regard Binocular X [px]", PIXELS[:, 0]),
         ("Point of Regard Binocular Y [px]", PIXELS[:, 1]), ("Gaze Vector Right X", UNIT_OR_0[:, 0]),
         ("Gaze Vector Right Y", UNIT_OR_0[:, 1]), ("Gaze Vector Right Z", UNIT_OR_0[:, 2]),
         ("Eye Position Right X [mm]", HEAD[:, 0]), ("Eye Position Right Y [mm]", HEAD[:, 1]),
         ("Eye Position Right Z [mm]", HEAD[:, 2])],
        {"gaze_unit": "vector", "y_axis": "up", "time_unit": "us"},
        {"gaze": ["Gaze Vector Right X", "Gaze Vector Right Y", "Gaze Vector Right Z"]},
    ),
}  # fmt: skip


def written(path: Path, columns: Columns) -> Path:
    lines = [",".join(name for name, _ in columns)]
    values = [values for _, values in columns]
    lines += [
        ",".join("" if np.isnan(v) else f"{v:.9g}" if abs(v) < 1e9 else f"{v:.0f}" for v in row)
        for row in zip(*values, strict=True)
    ]
    path.write_text("\n".join([*lines, ""]))
    return path


@pytest.mark.parametrize("maker", list(MAKERS))
def test_a_maker_s_file_is_read_as_its_documentation_says(maker: str, tmp_path: Path) -> None:
    columns, plain, named = MAKERS[maker]
    path = written(tmp_path / "a.csv", columns)
    proposal = inspect_table(path)
    assert {key: proposal.plain.get(key) for key in plain} == plain
    assert {key: proposal.tables["columns"].get(key) for key in named} == named
    assert proposal.unusual == []
    found = load_gaze(path, parse_profile(proposal.toml()))
    assert found.profile.rate_hz == RATE_HZ
    if proposal.plain["gaze_unit"] not in {"px", "image"}:
        both = found.samples.valid & SEEN
        assert both.mean() > 0.8
        np.testing.assert_allclose(found.samples.x[both], GAZE.x[both], atol=0.01)
        np.testing.assert_allclose(found.samples.y[both], GAZE.y[both], atol=0.01)
    if named.keys() & {"valid", "lost", "openness", "confidence"}:
        assert not found.samples.valid[~SEEN].any()


@pytest.mark.parametrize(
    ("points", "said"),
    [(HEAD, "have lengths of 1.6"), (UNIT_OR_0 * [1, 1, -1], "is negative straight ahead")],
    ids=["a position", "OpenXR"],
)
def test_what_is_no_direction_does_not_look_like_gaze(
    points: np.ndarray, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["inspect", str(written(tmp_path / "a.csv", [("time_s", T), *xyz("gaze_*", points)]))])
    told = capsys.readouterr().out
    assert said in told
    assert "looks like a person's gaze" not in told


def test_the_rate_is_counted_where_steps_have_two_sizes(tmp_path: Path) -> None:
    """Four whole milliseconds, or eight: 1,000 / 5 a second, and the middle step would be of 250."""
    steps = np.where(np.arange(len(T)) % 4 == 3, 8.0, 4.0)
    path = written(tmp_path / "a.csv", [("time_ms", np.cumsum(steps)), *xyz("gaze_*", UNIT)])
    assert any("time in ms, 200 samples a second" in line for line in inspect_table(path).reasons)


def test_blinks_of_invisible_are_losses(tmp_path: Path) -> None:
    path = written(tmp_path / "gaze.csv", MAKERS["Invisible (Pupil Cloud)"][0])
    np.testing.assert_array_equal(load_gaze(path, load_profile("pupil-cloud-invisible")).samples.valid, SEEN)


def test_a_short_trial_is_said_to_make_no_row(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path / "a.csv", [(name, values[:1000]) for name, values in MAKERS["Varjo"][0]])
    main(["inspect", str(path)])
    told = capsys.readouterr().out
    assert "10 s is less than the 30 s of a row" in told
    assert "looks like a person's gaze" not in told


def test_eyelink_tells_its_screen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    head = "MSG\t1 DISPLAY_COORDS 0 0 1279 719\nSAMPLES\tGAZE\tLEFT\tRATE\t1000.00\tTRACKING\tCR\n"
    lines = [f"{1000 + i}\t640.0\t360.0\t900.0\t...\n" for i in range(400)]
    path = tmp_path / "a.asc"
    path.write_text(head + "".join(lines))
    main(["inspect", str(path), "--out", str(tmp_path / "mine.toml")])
    assert "a screen of 1280 x 720 pixels" in capsys.readouterr().out
    assert load_gaze(path, load_profile(str(tmp_path / "mine.toml"))).samples.valid.all()


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz"])
def test_gzip_is_told_by_its_first_bytes(name: str, tmp_path: Path) -> None:
    plain = written(tmp_path / "plain.csv", MAKERS["Varjo"][0])
    (tmp_path / name).write_bytes(gzip.compress(plain.read_bytes()))
    assert inspect_table(tmp_path / name).tables == inspect_table(plain).tables
