"""Nothing of an event is left in live rows further from it than the stated memory, whatever latencies and numbers do.

The faults that these must catch are planted by the audit (`tools/verification/auditing/faults_gaze.py`).
"""

from typing import get_args

import numpy as np
import pytest

from eyestream.gaze.intake import take_in
from eyestream.gaze.profile import Algorithm
from tests.rigs.gaze_memory import Trace, border, degrees, glimpses, hunt, lived, reports, trace
from tests.rigs.gaze_people import shipped
from tests.rigs.gaze_streams import Event, Sent, more_data, ordinary, shorter_way

RATE_HZ = 200.0
EVENT = Event(4.0, 4.3)
BOTH = pytest.mark.parametrize("algorithm", get_args(Algorithm))


def compared(before: Sent, after: Sent) -> Trace:
    one, other = (lived(degrees(RATE_HZ), sent) for sent in (before, after))
    return trace(one, other, EVENT, degrees(RATE_HZ))


def test_a_shorter_way_while_the_eye_is_shut_changes_no_row() -> None:
    before, after = shorter_way(ordinary(RATE_HZ, 45.0), EVENT)
    assert (before.arrived != after.arrived).any()
    found = compared(before, after)
    assert (found.rows, found.escape) == (0, "")


@pytest.mark.parametrize("more", [1, 30])
def test_more_data_than_the_rate_change_no_row_after_the_memory(more: int) -> None:
    """Two monocular data a frame while one eye is unsure; and a flood."""
    sent = ordinary(RATE_HZ, 45.0)
    found = compared(sent, more_data(sent, EVENT, more))
    assert found.escape == ""
    assert found.rows > 0


def check(times: int, seed: int, algorithm: Algorithm) -> None:
    found = hunt(times, seed, algorithm=algorithm)
    assert [one.escape for one in found if one.escape] == []
    assert sum(one.rows > 0 for one in found) > times / 2  # rows that never differ would pass
    assert min(one.spare for one in found) < 6  # nor would a memory say much that nothing comes near


@BOTH
def test_no_event_is_left_in_rows_after_the_memory(algorithm: Algorithm) -> None:
    check(times=24, seed=1, algorithm=algorithm)


@BOTH
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_no_event_of_many_is_left_in_rows_after_the_memory(algorithm: Algorithm) -> None:
    check(times=50, seed=2, algorithm=algorithm)


@BOTH
@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_three_thousand_events(algorithm: Algorithm) -> None:
    check(times=3000, seed=5, algorithm=algorithm)


def test_one_sender_report_changes_no_row() -> None:
    assert [(one.rows, one.escape) for one in reports()] == [(0, ""), (0, "")]


def test_no_glimpse_in_silence_ends_a_session_or_is_left_in_rows() -> None:
    found = glimpses(times=12, seed=1)
    assert [one.escape for one in found if one.escape] == []
    assert sum(one.rows > 0 for one in found) > 6


def test_no_event_before_a_closed_border_is_left_in_the_border_or_after_it() -> None:
    assert border(times=12, seed=1) == []


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_no_glimpse_of_many_and_no_event_before_a_border() -> None:
    assert [one.escape for one in glimpses(times=20, seed=2) if one.escape] == []
    assert border(times=20, seed=2) == []


@pytest.mark.parametrize("name", ["core", "neon", "invisible", "mqtt", "smi-glasses"])
def test_how_records_are_joined_changes_no_bit_of_a_sample(name: str) -> None:
    """Portions depend on how many samples came, so a sample may not depend on its portion."""
    made, rng, n = shipped(name), np.random.default_rng(4), 600
    unit = (made.camera.width_px, made.camera.height_px) if made.gaze_unit == "px" and made.camera else (1.0, 1.0)
    gaze = rng.uniform(-0.1, 1.1, (n, 2)) * unit
    if made.gaze_unit == "vector":
        gaze = rng.normal(0.0, 300.0, (n, 3))
    pupil = rng.uniform(1.5, 9.0, (n, len(made.columns.pupil)))
    whole = take_in(made, np.arange(n), gaze, pupil=pupil)
    assert whole.valid.sum() > n / 5
    for size in (1, 2, 3, 5, 8, 13, 33, 256):
        for begin in range(0, n, size):
            part = take_in(made, np.arange(n)[begin : begin + size], gaze[begin:][:size], pupil=pupil[begin:][:size])
            for column in ("x", "y", "pupil_mm", "valid"):
                assert getattr(part, column).tobytes() == getattr(whole, column)[begin : begin + size].tobytes()
