"""The gatekeeper as published."""

from eyestream.gaze.events import Blink, Fixation, Saccade
from eyestream.gaze.questions import Rectangle
from eyestream_lab.study.raw_gatekeeper import CLAIM, RawGatekeeper


def fixation(start: int, x: float) -> Fixation:
    return Fixation(start, start + 200_000, start + 210_000, x, 0.0, 0.1, 0.1, 3.0, 0.0)


def test_it_answers_from_the_events_of_raw_gaze() -> None:
    events = [
        fixation(500_000, 5.0),
        fixation(0, -5.0),
        Saccade(200_000, 240_000, 1, -5.0, 0.0, 6.0, 8.0),
        Blink(0, 1, 1),
    ]
    own, right = RawGatekeeper(events), Rectangle(0.0, 10.0, -10.0, 10.0)
    assert CLAIM == "none"
    assert [one.start for one in own.fixations(right)] == [500_000]
    assert [one.start for one in own.fixations(Rectangle(-10.0, 10.0, -10.0, 10.0))] == [0, 500_000]
    assert own.dwell_time_ms(own.fixations(right)[0]) == 200.0
    assert own.saccades(right) == [(0.04, 10.0)]
    assert own.saccades(Rectangle(-10.0, 0.0, -10.0, 10.0)) == []
