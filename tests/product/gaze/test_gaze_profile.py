"""Profiles: strict both ways, checked, hashed; the memory and the delay that follow from them."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from eyestream.errors import ConfigError
from eyestream.gaze import profile_text
from eyestream.gaze.front_end import FrontEnd
from eyestream.gaze.profile import Camera, Columns, Detection, Profile
from eyestream.gaze.profile_text import detector_hash, front_end_hash, parse_profile
from eyestream_lab.files.inspection import profile_text as text_of
from tests.rigs.gaze_people import PROFILES, profile, shipped

SHIPPED = (
    "core", "degrees", "ehtask", "eyelink", "gazebase", "gazebasevr", "invisible", "lsl", "mpiidpeye", "mqtt", "neon",
    "pupil-cloud", "pupil-cloud-invisible", "pupil-player", "smi-glasses", "tobii-pro-lab",
)  # fmt: skip

TEXT = """
name = "mine"
rate_hz = 120
time_unit = "ms"
gaze_unit = "px"
y_axis = "down"
pupil_unit = "mm"
[columns]
time = "t"
gaze = ["x", "y"]
pupil = ["p"]
[camera]
field_of_view_x_deg = 60.0
field_of_view_y_deg = 40
width_px = 640
height_px = 480
"""


def test_a_profile_from_text() -> None:
    made = parse_profile(TEXT)
    assert made == Profile(
        "mine", 120.0, "ms", "px", "down", Columns("t", ("x", "y"), ("p",)),
        camera=Camera(60.0, 40.0, width_px=640, height_px=480), pupil_unit="mm",
    )  # fmt: skip
    assert isinstance(made.rate_hz, float)
    assert parse_profile(text_of(made)) == made


def test_the_shipped_ones() -> None:
    assert sorted(path.stem for path in Path(PROFILES).glob("*.toml")) == list(SHIPPED)
    for name in SHIPPED:
        made = shipped(name)
        assert made.name == name
        assert parse_profile(text_of(made)) == made
        at_60 = made if made.rate_hz else made.at_rate(60.0)
        assert at_60.memory_s <= (
            1.5 if at_60.fixed_rate_hz >= 60.0 else 1.7
        )  # what one second of gaze costs at 32, 64 and 128 rows a chunk rests on it


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('name = "mine"', "", "mine.toml: name: missing"),
        ('name = "mine"', "name = 3", "mine.toml: name: expected a text"),
        ("rate_hz = 120", "rate = 120", "mine.toml: rate: unknown key"),
        ("rate_hz = 120", "rate_hz = nan", "mine.toml: rate_hz: expected a finite number"),
        ("rate_hz = 120", "rate_hz = true", "mine.toml: rate_hz: expected a finite number"),
        ("rate_hz = 120", "rate_hz = 5", "profile mine: rate_hz: expected 20 to 5000"),
        ('"ms"', '"min"', "mine.toml: time_unit: expected 'ms' or 'ns' or 's' or 'us', found"),
        ('gaze_unit = "px"', "", "mine.toml: gaze_unit: missing"),
        ('gaze_unit = "px"', 'gaze_unit = "deg"', "profile mine: [camera]: expected no table: unit 'deg'"),
        ('["x", "y"]', '"x"', "mine.toml: [columns] gaze: expected a list of names"),
        ('["x", "y"]', '["x", "y", "z"]', "profile mine: [columns] gaze: expected 2 names: unit 'px'"),
        ("[camera]", "[kamera]", "mine.toml: [kamera]: unknown key; did you mean camera?"),
        ("field_of_view_y_deg = 40", "", "mine.toml: [camera] field_of_view_y_deg: missing"),
        ("field_of_view_y_deg = 40", "field_of_view_y_deg = 190", "more than 0, less than 180"),
        ("width_px = 640", "", "profile mine: [camera] width_px: expected pixels, if gaze is in px"),
        ("width_px = 640", "width_px = 640.5", "mine.toml: [camera] width_px: expected a whole number"),
        ('pupil_unit = "mm"', "", "profile mine: [pupil] unit: expected one, beside [columns] pupil"),
        ("[camera]", "[detection]\nonset = 3\n[camera]", "mine.toml: [detection] onset: unknown key"),
        ("[camera]", "[detection]\noffset_deg_per_s = 50.0\n[camera]", "expected more than offset_deg_per_s"),
        ("[camera]", "[detection]\nblink_min_s = 0\n[camera]", "blink_min_s: expected a finite number above 0"),
        ("[camera]", "[detection]\ncut_grid_s = 0.01\n[camera]", "cut_grid_s: expected 0.2 to 10"),
        ("[columns]", "columns = 3\n[other]", "mine.toml: [columns]: expected a table, found 3"),
        ("[columns]", "[columns", "mine.toml: not TOML"),
    ],
)
def test_what_is_wrong_is_named(old: str, new: str, message: str) -> None:
    assert old in TEXT
    with pytest.raises(ConfigError) as error:
        parse_profile(TEXT.replace(old, new, 1), "mine.toml")
    assert message in str(error.value)


def test_the_rate_of_a_recording() -> None:
    open_rate = dataclasses.replace(profile(60.0), rate_hz=None)
    assert open_rate.at_rate(250.0).rate_hz == 250.0
    with pytest.raises(ConfigError, match="rate_hz: missing, and the source does not tell it"):
        FrontEnd(open_rate)
    with pytest.raises(ConfigError, match="rate_hz: expected 20 to 5000"):
        open_rate.at_rate(0.06)  # milliseconds taken for seconds
    assert profile(60.0).at_rate(59.2).rate_hz == 60.0
    for other in (30.0, 120.0, float("nan")):
        with pytest.raises(ConfigError, match="made for 60 samples a second"):
            profile(60.0).at_rate(other)


def test_the_hash_names_profile_and_algorithm(monkeypatch: pytest.MonkeyPatch) -> None:
    made = parse_profile(TEXT)
    seen = {front_end_hash(made)}
    changes: list[dict[str, Any]] = [
        {"rate_hz": 121.0}, {"zero_is_lost": True}, {"pupil_max_mm": 9.0},
        {"detection": Detection(onset_deg_per_s=41.0)},
        {"camera": Camera(61.0, 40.0, width_px=640, height_px=480)},
    ]  # fmt: skip
    for change in changes:
        seen.add(front_end_hash(dataclasses.replace(made, **change)))
    monkeypatch.setattr(profile_text, "ALGORITHM_VERSION", profile_text.ALGORITHM_VERSION + 1)
    seen.add(front_end_hash(made))
    assert len(seen) == len(changes) + 2
    monkeypatch.undo()
    assert detector_hash(made) == detector_hash(dataclasses.replace(made, name="other", rate_hz=60.0))
    assert detector_hash(made) != detector_hash(dataclasses.replace(made, detection=Detection(onset_deg_per_s=41.0)))
    assert front_end_hash(parse_profile(text_of(made))) == front_end_hash(made)


def test_profiles_of_before_mean_algorithm_1_and_keep_their_hashes() -> None:
    """Those that the shipped calibrations and everybody's own ones were made with."""
    made, newer = profile(60.0), profile(60.0, algorithm=2)
    assert (front_end_hash(made), detector_hash(made)) == ("f7aeefe96e5adaaa", "09413c2bed897957")
    assert front_end_hash(newer) != front_end_hash(made)
    assert detector_hash(newer) != detector_hash(made)
    assert parse_profile(TEXT).detection.algorithm == 1
    with pytest.raises(ConfigError, match="algorithm: expected 1 or 2, found 3"):
        parse_profile(TEXT.replace("[columns]", "[detection]\nalgorithm = 3\n[columns]", 1))


def test_memory_and_delay_as_derived() -> None:
    made = profile(60.0)
    gap, hysteresis = 2.5 / 60, 0.04
    live = 1.5 / 60 + 2 / (8 * 60)
    assert made.memory_s == pytest.approx(0.85 + 0.35 + 0.06 + 4 * gap + hysteresis + live, abs=2e-5)
    assert made.lag_s == pytest.approx(max(0.1 + gap, 0.06 + 2 * gap), abs=2e-5)
    long_blinks = profile(60.0, blink_max_s=3.0)
    assert long_blinks.memory_s == pytest.approx(3.0 + 1 / 60 + gap + live, abs=2e-5)
    assert profile(60.0, frozen_s=2.0).memory_s == pytest.approx(2.0 + gap + live, abs=2e-5)
    for rate in (20.0, 60.0, 250.0, 1000.0):  # a saccade of algorithm 2 reads less than a fixation
        assert profile(rate, algorithm=2).memory_s == profile(rate).memory_s
    short = profile(60.0, cut_after_s=0.2, algorithm=2)
    assert short.memory_s == pytest.approx(0.3 + 2 * 0.4 + 3 * gap + hysteresis + live, abs=2e-5)
    assert profile(60.0, algorithm=2).lag_s == pytest.approx(0.4 + 2 * gap, abs=2e-5)
    assert [profile(rate).memory_s <= 1.5 for rate in (60.0, 62.5, 120.0, 200.0, 250.0, 500.0, 1000.0)] == [True] * 7
