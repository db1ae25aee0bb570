"""Units, geometry, and what is a lost eye."""

import dataclasses

import numpy as np
import pytest

from eyestream.gaze.intake import image_to_degrees, take_in, vector_to_degrees
from eyestream.gaze.profile import Camera, Columns, Profile
from eyestream.gaze.profile_text import parse_profile
from eyestream.gaze.samples import Samples
from tests.rigs.gaze_people import shipped

BAD = (np.nan, np.inf, -np.inf, 1e308, -1e308)


def array(*values: float) -> np.ndarray:
    return np.array(values, dtype=float)


def test_directions() -> None:
    right, up, ahead = array(1, 0, 0, 0, -1, 1), array(0, 1, 0, 0, 0, 1), array(0, 0, 1, -1, 1, np.sqrt(2))
    x, y = vector_to_degrees(right, up, ahead)
    np.testing.assert_allclose(x[[0, 2, 3, 4]], [90, 0, 180, -45])
    np.testing.assert_allclose(y, [0, 90, 0, 0, 0, 30])
    for scale in (1e-300, 1e300):
        np.testing.assert_allclose(vector_to_degrees(right * scale, up * scale, ahead * scale), (x, y))
    nothing = vector_to_degrees(array(0, *BAD), array(0, *BAD), array(0, 1, 1, 1, 1, 1))
    assert np.isnan(nothing[0][[0, 1, 2, 3]]).all()


def test_images() -> None:
    x, y = image_to_degrees(array(0, 0.5, 1, 0.5), array(0.5, 0.5, 0.5, 0), (60.0, 46.0), y_axis="down")
    np.testing.assert_allclose(x, [-30, 0, 30, 0], atol=1e-12)
    np.testing.assert_allclose(y, [0, 0, 0, 23], atol=1e-12)
    _, up = image_to_degrees(array(0.5), array(0.0), (60.0, 46.0), y_axis="up")
    np.testing.assert_allclose(up, [-23])
    for fov in ((60.0, 46.0), (103.0, 77.0)):  # on the axes an equidistant lens is a straight line
        x, y = image_to_degrees(array(0, 0.25, 0.5), array(0.5, 0.5, 1), fov, y_axis="down", projection="equidistant")
        np.testing.assert_allclose(x, [-fov[0] / 2, -fov[0] / 4, 0], atol=1e-12)
        np.testing.assert_allclose(y, [0, 0, -fov[1] / 2], atol=1e-12)


@pytest.mark.parametrize("projection", ["pinhole", "equidistant"])
def test_both_lenses_agree_near_their_middle_and_with_the_angle_between_directions(projection: str) -> None:
    rng = np.random.default_rng(3)
    u, v = rng.uniform(0, 1, (2, 500))
    x, y = np.radians(image_to_degrees(u, v, (103.0, 77.0), y_axis="down", projection=projection))  # type: ignore[arg-type]
    off_axis = np.degrees(np.arccos(np.cos(x) * np.cos(y)))
    if projection == "pinhole":
        plane = np.hypot((u - 0.5) * 2 * np.tan(np.radians(51.5)), (v - 0.5) * 2 * np.tan(np.radians(38.5)))
        wanted = np.degrees(np.arctan(plane))
    else:
        wanted = np.hypot((u - 0.5) * 103.0, (v - 0.5) * 77.0)
    np.testing.assert_allclose(off_axis, wanted, atol=1e-9)


@pytest.mark.parametrize("name", ["core", "degrees", "invisible", "lsl", "mqtt", "neon", "smi-glasses"])
def test_bad_numbers_are_a_lost_eye_with_every_profile(name: str) -> None:
    made = shipped(name)
    width = len(made.columns.gaze)
    fine = {"px": [800.0, 600.0], "image": [0.5, 0.4], "deg": [3.0, 4.0], "vector": [10.0, 20.0, 500.0]}[made.gaze_unit]
    points = np.array([fine] * (1 + len(BAD) * width))
    for i, (value, column) in enumerate((value, column) for value in BAD for column in range(width)):
        points[1 + i, column] = value
    samples = take_in(made, np.arange(len(points)), points, pupil=np.full((len(points), 2), 3.0))
    if made.gaze_unit == "vector":  # a direction of 1e308 to one side is one: it may point out of sight
        assert samples.valid[0]
        assert not samples.valid[1:10].any()
    else:
        assert samples.valid.tolist() == [True] + [False] * (len(points) - 1)
    assert np.isnan(samples.x[~samples.valid]).all()
    np.testing.assert_array_equal(samples.pupil_mm, np.nan if made.pupil_unit == "none" else 3.0)


def test_what_lies_outside_of_the_field_is_lost() -> None:
    made = shipped("smi-glasses")
    points = [(-0.5, 0.5), (-0.51, 0.5), (1.5, 1.5), (1.51, 0.5), (0.5, 7e4), (0.0, 0.0)]
    assert take_in(made, np.arange(6), points).valid.tolist() == [True, False, True, False, False, True]
    degrees = shipped("degrees")
    valid = take_in(degrees, np.arange(3), [(90.0, 0.0), (90.1, 0.0), (0.0, -91.0)]).valid
    assert valid.tolist() == [True, False, False]


def test_zero_is_lost_where_the_profile_says_so() -> None:
    points = [(0.0, 0.0), (0.0, 1.0)]
    assert take_in(shipped("lsl"), np.arange(2), points).valid.tolist() == [False, True]
    assert take_in(shipped("degrees"), np.arange(2), points).valid.tolist() == [True, True]


def test_pupils() -> None:
    made = shipped("smi-glasses")
    eyes = [(3.0, 5.0), (0.0, 5.0), (-1.0, 4.0), (np.nan, 2.0), (1e308, np.inf), (0.0, 0.0)]
    samples = take_in(made, np.arange(6), [(0.5, 0.5)] * 6, pupil=eyes)
    np.testing.assert_array_equal(samples.pupil_mm, [4.0, np.nan, np.nan, np.nan, np.nan, np.nan])
    assert samples.valid.all()  # a lost pupil is not a lost eye
    metres = Profile("m", 60.0, "s", "deg", "up", Columns("t", ("x", "y"), ("p",)), pupil_unit="m")
    np.testing.assert_allclose(take_in(metres, [0.0], [(0, 0)], pupil=[0.004]).pupil_mm, 4.0)
    none = Profile("n", 60.0, "s", "deg", "up", Columns("t", ("x", "y")))
    assert np.isnan(take_in(none, [0.0], [(0, 0)], pupil=[4.0]).pupil_mm).all()


def test_lids_and_the_trackers_own_word() -> None:
    lids = Profile("n", 60.0, "s", "deg", "up", Columns("t", ("x", "y"), openness=("l", "r")), openness_min=2.0)
    open_eyes = take_in(lids, np.arange(4), [(0, 0)] * 4, openness=[(9, 9), (1, 3), (1, 1), (np.nan, np.nan)])
    assert open_eyes.valid.tolist() == [True, True, False, False]
    told = take_in(shipped("neon"), np.arange(4), [(800, 600)] * 4, valid=[1, 0, np.nan, 255])
    assert told.valid.tolist() == [True, False, False, True]


def test_units() -> None:
    for unit, scale in (("s", 1), ("ms", 1e3), ("us", 1e6), ("ns", 1e9)):
        made = Profile("u", 60.0, unit, "rad", "down", Columns("t", ("x", "y")))  # type: ignore[arg-type]
        samples = take_in(made, array(1.5, 2.5) * scale, [(np.pi / 180, np.pi / 90)] * 2)
        np.testing.assert_allclose(samples.t, [1.5, 2.5])
        np.testing.assert_allclose((samples.x[0], samples.y[0]), (1.0, -2.0))
    core = take_in(shipped("core"), [0.0], [(100.0, 100.0, 100.0)])
    np.testing.assert_allclose((core.x[0], core.y[0]), (45.0, -np.degrees(np.arctan(np.sqrt(0.5)))))
    neon = take_in(shipped("neon"), [0.0], [(1600.0, 600.0)])
    np.testing.assert_allclose((neon.x[0], neon.y[0]), (51.5, 0.0), atol=1e-12)


def test_degrees_of_invisible_are_those_of_its_camera() -> None:
    """The model of distortion with which Pupil Labs' software ships for "PI world v1": rational, 766.3 pixels."""
    k1, k2, k3, k4, k5, k6 = -0.12390716, 0.09983010, 0.02007240, 0.20521730, 0.00992138, 0.06631870
    angles = np.radians(np.linspace(1.0, 40.0, 40))
    square = np.tan(angles) ** 2
    bent = 1 + k1 * square + k2 * square**2 + k3 * square**3
    bent /= 1 + k4 * square + k5 * square**2 + k6 * square**3
    pixels = 766.3 * np.tan(angles) * bent
    right = take_in(shipped("invisible"), np.arange(40), np.stack((544.0 + pixels, np.full(40, 540.0)), axis=1))
    up = take_in(shipped("invisible"), np.arange(40), np.stack((np.full(40, 544.0), 540.0 - pixels), axis=1))
    np.testing.assert_allclose(right.x, np.degrees(angles), rtol=0.01)
    np.testing.assert_allclose(up.y, np.degrees(angles), rtol=0.01)
    plain = Camera(70.8, 70.4, width_px=1088, height_px=1080)  # a pinhole of the same length would be far off
    pinhole = dataclasses.replace(shipped("invisible"), camera=plain)
    wrong = take_in(pinhole, [0.0], [(544.0 + pixels[-1], 540.0)])
    assert abs(wrong.x[0] / 40.0 - 1) > 0.1
    neither = take_in(shipped("invisible"), [0.0, 1.0], [(544, 540)] * 2, pupil=[[3.0, 3.0]] * 2, valid=[255, 0])
    assert neither.valid.tolist() == [True, False]
    assert np.isnan(neither.pupil_mm).all()


def test_shapes_that_do_not_fit() -> None:
    made = shipped("degrees")
    for points in ([(0, 0)], [(0, 0, 0)] * 2, [0, 0]):
        with pytest.raises(ValueError, match=r"gaze: \(2, 2\) numbers wanted"):
            take_in(made, [0, 1], points)
    with pytest.raises(ValueError, match="five arrays of one length"):
        Samples.of([0, 1], [0], [0, 1])


def test_nothing_is_nothing() -> None:
    made = parse_profile('name="n"\ntime_unit="s"\ngaze_unit="deg"\ny_axis="up"\n[columns]\ntime="t"\ngaze=["x","y"]')
    assert len(take_in(made, [], np.zeros((0, 2)))) == 0
