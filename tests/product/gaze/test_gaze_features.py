"""The 52 features from events that were made by hand, wordbooks against all words, and what must not matter."""

import math

import numpy as np
import pytest

from eyestream.gaze.events import Saccade
from eyestream.gaze.features import FEATURES, NAMES, UNITS
from eyestream.gaze.features import NAMES as FEATURES_52
from eyestream.gaze.front_end import FrontEnd
from eyestream.gaze.samples import Samples
from eyestream.gaze.window import LETTERS, WindowEvents, Wordbooks, letter_of, row
from tests.product.gaze.gaze_reference import words as all_words
from tests.rigs.gaze_people import gaze, profile

EMPTY = Wordbooks().features()


def test_names_and_their_order() -> None:
    assert NAMES == FEATURES_52
    assert len(FEATURES) == 52
    units = dict(zip(NAMES, UNITS, strict=True))
    assert (units["rate_fixations"], units["var_saccade_amplitude"], units["var_var_y"]) == ("1/s", "deg^2", "deg^4")
    assert (units["mean_var_x"], units["var_mean_diameter"], units["var_var_diameter"]) == ("deg^2", "mm^2", "mm^4")
    assert (units["var_fixation_duration"], units["blink_rate"], units["wb3_var"]) == ("s^2", "1/s", "1")


def test_values_by_hand() -> None:
    fixations = np.array([[0.2, 0.01, 0.04, 3.0, 0.1], [0.4, 0.03, 0.02, 5.0, 0.3], [0.6, 0.05, 0.0, np.nan, np.nan]])
    events = WindowEvents(fixations, [1.0, 3.0], small=1, positive=2, blinks=[0.1, 0.3], pupil=True, words=EMPTY)
    got = dict(zip(NAMES, row(events), strict=True))
    wanted = {
        "rate_fixations": 3 / 30, "rate_saccades": 2 / 30, "rate_small_saccades": 1 / 30, "rate_large_saccades": 1 / 30,
        "rate_positive_saccades": 2 / 30, "rate_negative_saccades": 0.0, "ratio_saccades_fixations": 2 / 3,
        "ratio_small_saccades": 0.5, "ratio_large_saccades": 0.5, "ratio_positive_saccades": 1.0,
        "ratio_negative_saccades": 0.0, "mean_saccade_amplitude": 2.0, "var_saccade_amplitude": 1.0,
        "max_saccade_amplitude": 3.0, "mean_fixation_duration": 0.4, "var_fixation_duration": 0.08 / 3,
        "max_fixation_duration": 0.6, "mean_var_x": 0.03, "mean_var_y": 0.02, "var_var_x": 0.0008 / 3,
        "var_var_y": 0.0008 / 3, "mean_mean_diameter": 4.0, "var_mean_diameter": 1.0, "mean_var_diameter": 0.2,
        "var_var_diameter": 0.01, "mean_blink_duration": 0.2, "var_blink_duration": 0.01, "blink_rate": 2 / 30,
    }  # fmt: skip
    for name, value in wanted.items():
        assert got[name] == pytest.approx(value, rel=1e-12), name


def test_empty_sets_are_zero_and_what_is_not_told_is_nan() -> None:
    nothing = WindowEvents(np.zeros((0, 5)), [], small=0, positive=0, blinks=[], pupil=True, words=EMPTY)
    np.testing.assert_array_equal(row(nothing), np.zeros(52))
    without = WindowEvents(np.zeros((0, 5)), [], small=0, positive=0, blinks=[], pupil=False, words=EMPTY)
    assert [name for name, value in zip(NAMES, row(without), strict=True) if np.isnan(value)] == [
        "mean_mean_diameter", "var_mean_diameter", "mean_var_diameter", "var_var_diameter",
    ]  # fmt: skip


@pytest.mark.parametrize("variety", [1, 3, 24])
def test_wordbooks_against_all_words(variety: int) -> None:
    rng = np.random.default_rng(variety)
    books, letters = Wordbooks(), [0] * 0
    for step in range(400):
        if letters and (len(letters) > 150 or rng.random() < 0.4):
            books.pop()
            letters.pop(0)
        else:
            letters.append(int(rng.integers(0, variety)))
            books.push(letters[-1])
        if step % 20 == 0:
            got = np.array(books.features()).reshape(4, 6)
            for n in (1, 2, 3):
                wanted = all_words(np.array(letters), n)
                np.testing.assert_array_equal(got[n - 1, :4], wanted[:4])
                np.testing.assert_allclose(got[n - 1, 4:], wanted[4:], rtol=1e-12, atol=1e-15)


def test_the_least_word_counts_when_every_one_occurs() -> None:
    books = Wordbooks()
    for letter in [*range(LETTERS), *range(LETTERS), 0]:
        books.push(letter)
    assert books.features()[:4] == [24, 3, 2, 1]
    assert books.features()[6:10] == [24, 2, 0, 2]


def test_letters_are_centred_on_the_axes() -> None:
    def letter(angle: float, amplitude: float) -> int:
        dx, dy = (amplitude * part(math.radians(angle)) for part in (math.cos, math.sin))
        return letter_of(Saccade(0, 1, 2, 0.0, 0.0, dx, dy), small_below_deg=3.0)

    for k in range(8):
        assert {letter(45 * k + off, 1.0) for off in (-22, 0, 22)} == {k}
    for k in range(16):
        assert {letter(22.5 * k + off, 5.0) for off in (-11, 0, 11)} == {8 + k}
    assert letter(0.0, 2.999) == 0
    assert letter(0.0, 3.0) == 8


def rows(samples: Samples, **detection: float) -> np.ndarray:
    values = FrontEnd(profile(125.0, **detection)).feed(samples).values
    assert len(values) == 21
    return values


def dyadic() -> Samples:
    """Coordinates and times with few bits, so that shifting and doubling them is exact."""
    samples, _ = gaze(125.0, 40.1, seed=12)
    x, y = np.round(samples.x * 1024) / 1024, np.round(samples.y * 1024) / 1024
    return Samples.of(samples.t, x, y, samples.pupil_mm)


def test_shifting_the_eye_changes_nothing() -> None:
    s = dyadic()
    shifted = Samples.of(s.t, s.x + 16.0, s.y - 32.0, s.pupil_mm)
    np.testing.assert_allclose(rows(shifted), rows(s), rtol=1e-10, atol=1e-12)


def test_shifting_the_clock_changes_nothing() -> None:
    s = dyadic()
    for origin in (-1000.0, 86_400.5, 1.7e9):
        np.testing.assert_array_equal(rows(Samples.of(s.t + origin, s.x, s.y, s.pupil_mm)), rows(s))


def test_scaling_angles_and_thresholds_scales_the_features_by_their_unit() -> None:
    s, k = dyadic(), 2.0
    larger = Samples.of(s.t, s.x * k, s.y * k, s.pupil_mm)
    scaled = rows(larger, onset_deg_per_s=80.0, offset_deg_per_s=40.0, small_below_deg=6.0)
    power = {"deg": 1, "deg^2": 2, "deg^4": 4}
    factor = np.array([k ** power.get(unit, 0) for unit in UNITS])
    np.testing.assert_array_equal(scaled, rows(s) * factor)
    assert set(power) <= set(UNITS)
    assert not np.array_equal(rows(larger), rows(s) * factor)  # the thresholds alone are not
