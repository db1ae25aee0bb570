"""Events of gaze that was made by hand, to the sample."""

import itertools

import numpy as np
import pytest

from eyestream.gaze.events import Blink, Event, Fixation, Saccade
from eyestream.gaze.profile import Algorithm
from eyestream.gaze.samples import Samples
from eyestream_lab.events.labels import detect
from tests.rigs.gaze_people import profile

RATE_HZ = 250.0
STEP = 4_000  # ticks between two samples
MADE = profile(RATE_HZ)
D = MADE.delay_ticks


def still(n: int, x: float = 0.0, y: float = 0.0) -> list[tuple[float, float]]:
    return [(x, y)] * n


def jump(n: int, start: float, end: float) -> list[tuple[float, float]]:
    """n samples between two places, both excluded, at an even speed."""
    return [(float(x), 0.0) for x in np.linspace(start, end, n + 2)[1:-1]]


def upright(path: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """To the right becomes down."""
    return [(y, -x) for x, y in path]


def lost(n: int) -> list[tuple[float, float]]:
    return [(np.nan, np.nan)] * n


def found(path: list[tuple[float, float]], rate_hz: float = RATE_HZ, algorithm: Algorithm = 1) -> list[Event]:
    t = 50.0 + np.arange(len(path)) / rate_hz
    x, y = np.array(path).T
    return detect(profile(rate_hz), Samples.of(t, x, y), algorithm)[0]


def spans(events: list[Event]) -> list[tuple[str, int, int]]:
    return [(type(event).__name__[0], event.start, event.end) for event in events]


def test_two_fixations_and_the_saccade_between_them() -> None:
    # 100 samples, 9 on the way (10 steps of 1 degree: 250 deg/s), 100 samples.
    events = found(still(100) + jump(9, 0.0, 10.0) + still(100, 10.0))
    # The slope over +-3 samples passes 40 deg/s where the window holds two moving samples, and 20 deg/s with one.
    speeds = [0.0, 0.0]
    for moving in (1, 2):
        path = np.array([0.0] * (7 - moving) + [float(k) for k in range(1, moving + 1)])
        speeds[moving - 1] = float(np.polyfit(np.arange(-3, 4) / RATE_HZ, path, 1)[0])
    assert 20.0 < speeds[0] < 40.0 < speeds[1]
    begin, end = 100 - 2, 108 + 3 + 1  # two moving samples in the first window, one in the last
    assert spans(events) == [("F", 0, begin * STEP), ("S", begin * STEP, end * STEP), ("F", end * STEP, 209 * STEP)]
    first, saccade, last = events
    assert isinstance(saccade, Saccade)
    assert (saccade.x, saccade.dx, saccade.dy) == (0.0, 10.0, 0.0)
    assert first.confirmed == begin * STEP + D
    assert saccade.confirmed == end * STEP + 100_000 + D
    assert last.confirmed == 208 * STEP + MADE.gap_ticks + D
    assert isinstance(first, Fixation)
    assert (first.x, first.var_x, first.var_y) == (0.0, 0.0, 0.0)
    assert isinstance(last, Fixation)
    assert last.x == pytest.approx(10.0, abs=0.01)
    assert last.duration_s == pytest.approx((209 - end) / RATE_HZ)


def test_a_fixation_of_less_than_60_ms_is_none() -> None:
    for n, is_one in ((14, False), (15, True)):  # 56 and 60 ms
        fixations = [span for span in spans(found(lost(40) + still(n) + lost(400))) if span[0] == "F"]
        assert fixations == ([("F", 160_000, 160_000 + n * STEP)] if is_one else [])


def test_a_loss_of_50_ms_to_1_s_is_a_blink() -> None:
    for n, is_one in ((12, False), (13, True), (250, True), (251, False)):
        events = found(still(100) + lost(n) + still(100))
        blinks = [event for event in events if isinstance(event, Blink)]
        assert spans(blinks) == ([("B", 100 * STEP, (100 + n) * STEP)] if is_one else [])
        assert all(blink.confirmed == blink.end + D for blink in blinks)
        assert [kind for kind, *_ in spans(events)].count("F") == 2


def test_missing_samples_are_a_loss_as_invalid_ones_are() -> None:
    path = np.array(still(100) + lost(30) + still(100, 1.0))
    t = np.arange(len(path)) / RATE_HZ
    there = ~np.isnan(path[:, 0])
    with_nan = detect(MADE, Samples.of(t, *path.T))[0]
    without = detect(MADE, Samples.of(t[there], *path[there].T))[0]
    assert with_nan == without
    assert [kind for kind, *_ in spans(with_nan)] == ["F", "B", "F"]


def test_two_lost_samples_are_bridged() -> None:
    """At 250 Hz samples up to 14 ms apart belong together."""
    assert spans(found(still(50) + lost(2) + still(50))) == [("F", 0, 102 * STEP)]
    assert len(found(still(50) + lost(3) + still(50))) == 2


def test_a_blink_absorbs_saccades_within_50_ms() -> None:
    for apart, absorbed in ((0, True), (10, True), (30, False)):
        before = still(100) + jump(4, 0.0, -8.0) + still(apart, -8.0) + lost(40) + still(100, -8.0)
        after = still(100) + lost(40) + still(apart) + jump(4, 0.0, 8.0) + still(100, 8.0)
        for path in (before, after):
            kinds = [kind for kind, *_ in spans(found(path))]
            assert kinds.count("B") == 1
            assert kinds.count("S") == (0 if absorbed else 1), (apart, kinds)


def test_a_movement_too_long_for_a_saccade_is_none() -> None:
    assert [kind for kind, *_ in spans(found(still(100) + jump(60, 0.0, 30.0) + still(100, 30.0)))] == ["F", "S", "F"]
    assert [kind for kind, *_ in spans(found(still(100) + jump(90, 0.0, 45.0) + still(100, 45.0)))] == ["F", "F"]


def test_long_fixations_are_cut_on_the_grid_of_the_clock() -> None:
    grid, after = 350_000, 850_000
    for lead in (25, 60, 88):  # the fixation begins elsewhere on the grid, the cuts stay on it
        path = lost(lead) + still(1000)
        pieces = [span for span in spans(found(path)) if span[0] == "F"]
        start, end = lead * STEP, (lead + 1000) * STEP
        cuts = [line for line in range(0, end, grid) if line >= start + after and line + 60_000 <= end - STEP]
        edges = [start, *cuts, end]
        assert [(a, b) for _, a, b in pieces] == list(itertools.pairwise(edges))
        assert len(cuts) > 5


def test_a_slow_pursuit_is_a_fixation_and_a_fast_one_no_event() -> None:
    slow = [(15.0 * i / RATE_HZ, 0.0) for i in range(150)]
    assert spans(found(slow)) == [("F", 0, 150 * STEP)]
    fast = [(60.0 * i / RATE_HZ, 0.0) for i in range(150)]
    assert found(fast) == []


def test_hysteresis() -> None:
    """Between the thresholds a sample is fast behind a faster one, for 40 ms at most."""
    x = np.concatenate((np.zeros(50), np.arange(1, 6) * 1.0, 5.0 + np.arange(1, 76) * 30.0 / RATE_HZ))
    events = found([(float(v), 0.0) for v in x])
    (saccade,) = [event for event in events if isinstance(event, Saccade)]
    last_fast = 54 + 3  # the last window that holds enough of the jump
    assert abs(saccade.end - (last_fast + 1) * STEP - 40_000) <= STEP
    only_slow = [(30.0 * i / RATE_HZ, 0.0) for i in range(100)]
    assert spans(found(only_slow)) == [("F", 0, 100 * STEP)]


def test_thresholds_below_100_hz() -> None:
    path = still(30) + [(0.5 * i, 0.0) for i in range(1, 9)] + still(30, 4.0)  # 31 deg/s at 62.5 Hz
    assert [kind for kind, *_ in spans(found(path, rate_hz=62.5))] == ["F", "S", "F"]
    assert [kind for kind, *_ in spans(found(path, rate_hz=125.0))].count("S") == 1  # 62 deg/s
    slower = still(30) + [(0.4 * i, 0.0) for i in range(1, 9)] + still(30, 3.2)  # 25 deg/s
    assert [kind for kind, *_ in spans(found(slower, rate_hz=62.5))] == ["F"]


def test_a_tracker_that_flickers_between_two_places_does_not_fixate() -> None:
    """At 60 Hz every other sample elsewhere: the slope through three samples is 0."""
    for apart, kinds in ((1.9, ["F"]), (2.1, [])):
        path = [(apart * (i % 2), 0.0) for i in range(60)]
        assert [kind for kind, *_ in spans(found(path, rate_hz=60.0))] == kinds
    path = still(30) + [(10.0 * (i % 2), 0.0) for i in range(9)] + still(30)
    assert [kind for kind, *_ in spans(found(path, rate_hz=60.0))] == ["F", "F"]


def test_labels() -> None:
    path = still(100) + jump(9, 0.0, 10.0) + still(100, 10.0) + lost(30) + still(50, 10.0)
    t = np.arange(len(path)) / RATE_HZ
    x, y = np.array(path).T
    _, letters = detect(MADE, Samples.of(t, x, y), 1)
    assert "".join(letters) == "F" * 98 + "S" * 14 + "F" * 97 + "B" * 30 + "F" * 50


def test_samples_that_go_backward_end_no_event() -> None:
    t = np.array([*np.arange(50), 20, 49, *np.arange(50, 100)]) / RATE_HZ
    events, letters = detect(MADE, Samples.of(t, np.zeros(102), np.zeros(102)))
    assert spans(events) == [("F", 0, 100 * STEP)]
    assert "".join(letters) == "F" * 102
    assert detect(MADE, Samples.of([], [], []))[0] == []


def kinds(path: list[tuple[float, float]], algorithm: Algorithm) -> str:
    return "".join(kind for kind, *_ in spans(found(path, algorithm=algorithm)))


def test_gaze_that_goes_down_and_up_again_is_a_lid() -> None:
    """A blink in which the tracker reports gaze: 60 ms down, 80 ms there, 80 ms up."""
    path = still(100) + jump(15, 0.0, 6.0) + still(20, 6.0) + jump(20, 6.0, 0.3) + still(100, 0.3)
    down, up = upright(path), [(x, -y) for x, y in upright(path)]
    assert [kinds(lid, 1) for lid in (down, up)] == ["FSFSF"] * 2
    assert [kinds(lid, 2) for lid in (down, up)] == ["FBFF"] * 2  # what lies in the blink is a fixation as before
    (blink,) = [event for event in found(down, algorithm=2) if isinstance(event, Blink)]
    closing, opening = [event for event in found(down) if isinstance(event, Saccade)]
    assert (blink.start, blink.end) == (closing.start, opening.end)
    assert blink.confirmed == closing.end + profile(RATE_HZ, algorithm=2).judged_ticks + D
    x, y = np.array(down).T
    _, letters = detect(MADE, Samples.of(np.arange(len(path)) / RATE_HZ, x, y), 2)
    begin, end = blink.start // STEP, blink.end // STEP
    assert "".join(letters) == "F" * begin + "B" * (end - begin) + "F" * (len(path) - end)


def test_what_is_no_lid_stays_two_saccades() -> None:
    there, back = still(100) + jump(9, 0.0, 6.0), jump(9, 6.0, 0.0) + still(100)
    aside, longer = there + still(20, 6.0) + back, there + still(100, 6.0) + back
    further = there + still(20, 6.0) + jump(9, 6.0, 3.0) + still(100, 3.0)
    assert [kinds(path, 2) for path in (aside, upright(longer), upright(further))] == ["FSFSF"] * 3


def test_down_and_up_in_one_run_is_a_lid() -> None:
    path = upright(still(100) + jump(20, 0.0, 6.0) + jump(20, 6.0, 0.0) + still(100))
    assert kinds(path, 2).count("S") == 0
    assert kinds(path, 2).count("B") == 1


def test_a_loss_between_down_and_up_is_the_blink() -> None:
    """The lid needs longer than the guard beside the loss."""
    path = still(100) + jump(9, 0.0, 6.0) + still(15, 6.0) + lost(20) + still(15, 6.0) + jump(9, 6.0, 0.0) + still(100)
    assert kinds(upright(path), 1) == "FSBSF"
    assert kinds(upright(path), 2) == "FBF"


def test_a_pupil_that_shrinks_and_grows_is_covered_by_the_lid() -> None:
    """Also where gaze goes aside. Where it grows and shrinks, gaze that goes down and up is two saccades."""
    aside = still(100) + jump(9, 0.0, 6.0) + still(20, 6.0) + jump(9, 6.0, 3.0) + still(100, 3.0)
    down = upright(still(100) + jump(9, 0.0, 6.0) + still(20, 6.0) + jump(9, 6.0, 0.0) + still(100))
    for path, middle, saccades in ((aside, 3.6, 2), (aside, 3.0, 0), (down, 3.9, 0), (down, 4.1, 2)):
        t, (x, y) = np.arange(len(path)) / RATE_HZ, np.array(path).T
        pupil = np.interp(np.arange(len(path)), [98, 112, 126, 140], [4.0, middle, middle, 4.0])
        samples = Samples.of(t, x, y, pupil)
        for algorithm, wanted in ((1, 2), (2, saccades)):
            events = detect(MADE, samples, algorithm)[0]
            assert [isinstance(event, Saccade) for event in events].count(True) == wanted, (middle, algorithm)


def test_a_saccade_in_two_parts_is_one() -> None:
    parts = still(100) + jump(5, 0.0, 4.0) + still(9, 4.0) + jump(5, 4.0, 8.0) + still(100, 8.0)
    assert kinds(parts, 1) == "FSSF"
    (saccade,) = [event for event in found(parts, algorithm=2) if isinstance(event, Saccade)]
    before = [event for event in found(parts) if isinstance(event, Saccade)]
    assert (saccade.start, saccade.end) == (before[0].start, before[1].end)
    assert (saccade.dx, saccade.dy) == (pytest.approx(8.0), 0.0)


def test_what_rings_after_a_saccade_is_none() -> None:
    parts = still(100) + jump(9, 0.0, 8.0) + still(9, 8.0) + jump(3, 8.0, 6.5) + still(100, 6.5)
    assert kinds(parts, 1) == "FSSF"
    assert kinds(parts, 2) == "FSF"
