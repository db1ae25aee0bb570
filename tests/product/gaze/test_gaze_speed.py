"""Processor time of the front end: live gaze must cost next to nothing, and a corpus must be made in minutes."""

import time

import pytest

from eyestream.gaze.front_end import FrontEnd
from tests.rigs.gaze_people import gaze, profile


@pytest.mark.slow
@pytest.mark.parametrize("rate_hz", [60.0, 250.0, 1000.0])
def test_100_000_samples_a_second_with_their_rows(rate_hz: float) -> None:
    samples = gaze(rate_hz, 300.0, seed=1)[0]
    made = profile(rate_hz, frozen_s=1.0)
    best = 0.0
    for _ in range(3):
        begin = time.process_time()
        assert len(FrontEnd(made).feed(samples)) == 540
        best = max(best, len(samples) / (time.process_time() - begin))
    assert best > 100_000


@pytest.mark.slow
def test_a_row_takes_less_than_half_a_millisecond() -> None:
    front_end = FrontEnd(profile(60.0))
    front_end.feed(gaze(60.0, 120.0, seed=2)[0])
    begin = time.process_time()
    for _ in range(500):
        front_end._window.row()
    assert (time.process_time() - begin) / 500 < 0.0005
