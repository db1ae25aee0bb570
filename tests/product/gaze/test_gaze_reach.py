"""One changed second moves only the rows within the stated reach, whatever the rest of the gaze looks like."""

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from eyestream.gaze.detector import Detector
from eyestream.gaze.events import Event
from eyestream.gaze.features import WINDOW_S
from eyestream.gaze.front_end import FrontEnd
from eyestream.gaze.profile import Profile, ticks
from eyestream.gaze.runs import Lids, Run
from eyestream.gaze.samples import Samples
from eyestream.gaze.segments import Segments
from tests.rigs.gaze_people import gaze, profile

RATE_HZ = 60.0
MADE, NEWER = (profile(RATE_HZ, frozen_s=1.0, algorithm=algorithm) for algorithm in (1, 2))
BOTH = pytest.mark.parametrize("right", [MADE, NEWER], ids=["1", "2"])
Factory = Callable[[Profile], Detector]
Array = NDArray[np.float64]


def stretch(rng: np.random.Generator, seconds: float) -> Array:
    """(n, 2) of gaze that a detector may stumble over; NaN is lost."""
    n = int(seconds * RATE_HZ)
    t = np.arange(n) / RATE_HZ
    kind = rng.integers(0, 10)
    path = rng.normal(0.0, 5.0, 2) + rng.normal(0.0, 0.02, (n, 2))  # a long fixation
    if kind == 1:  # a pursuit between the thresholds: hysteresis decides
        path[:, 0] += 22.0 * t
    elif kind == 2:  # a pursuit above the onset
        path[:, 1] += 40.0 * t
    elif kind == 3:  # a wave whose speed passes both thresholds
        path[:, 0] += 8.0 * np.sin(2 * np.pi * t * rng.uniform(0.3, 3.0))
    elif kind == 4:  # noise
        path += rng.normal(0.0, rng.uniform(0.2, 3.0), (n, 2))
    elif kind == 5:
        path[:] = np.nan
    elif kind == 6:  # single samples here and there
        path[rng.random(n) < 0.7] = np.nan
    elif kind == 7:  # a frozen value
        path[:] = path[:1]
    elif kind == 8:  # every other sample elsewhere
        path[::2] += rng.uniform(-3.0, 3.0, 2)
    elif kind == 9:  # lids that come down and go up, again and again
        path[:, 1] -= 5.0 * (t % rng.uniform(0.15, 0.8) < rng.uniform(0.1, 0.4))
    return path


def stream(rng: np.random.Generator, seconds: float) -> Samples:
    """Ordinary gaze and odd stretches of up to 20 s, one after the other."""
    parts: list[Array] = []
    while sum(map(len, parts)) < seconds * RATE_HZ:
        if rng.random() < 0.3:
            real, _ = gaze(RATE_HZ, 4.0, int(rng.integers(1 << 30)))
            parts.append(np.column_stack((real.x, real.y)))
        parts.append(stretch(rng, float(rng.choice([0.3, 1.0, 2.0, 5.0, 20.0]))))
    path = np.concatenate(parts)[: int(seconds * RATE_HZ)]
    t = 100.0 + np.arange(len(path)) / RATE_HZ
    return Samples.of(t, path[:, 0], path[:, 1], 3.0 + 0.1 * np.sin(t))


def changed(samples: Samples, begin: float, rng: np.random.Generator) -> Samples:
    """Other gaze in the second from `begin` on; sometimes some of its samples did not come at all."""
    a, b = np.searchsorted(samples.t, [begin, begin + 1.0]).tolist()
    path = stretch(rng, 2.0)[: b - a]
    x, y, pupil = samples.x.copy(), samples.y.copy(), samples.pupil_mm.copy()
    x[a:b], y[a:b] = path.T
    pupil[a:b] = rng.choice([np.nan, 2.0, 5.0])
    there = np.ones(len(samples), dtype=bool)
    if rng.random() < 0.3:
        there[a:b] = rng.random(b - a) < 0.5
    return Samples.of(samples.t[there], x[there], y[there], pupil[there])


def events(samples: Samples, made: Factory, right: Profile) -> list[Event]:
    t = np.rint((samples.t - 100.0) * 1e6).astype(np.int64)
    values = np.stack((samples.x, samples.y, samples.pupil_mm))[:, samples.valid]
    return made(right).take(t[samples.valid], values, int(t[-1]))


def outside(found: list[Event], begin: float, right: Profile) -> set[tuple[str, ...]]:
    """What is confirmed before the changed second, or so long after it that the memory has let go of it."""
    first, last = ticks(begin - 100.0), ticks(begin + 1.0 - 100.0) + right.memory_ticks
    kept = [event for event in found if event.confirmed < first or event.confirmed >= last]
    return {(type(event).__name__, *map(repr, event)) for event in kept}


def escapes(made: Factory, times: int, seed: int, right: Profile = MADE) -> bool:
    """Whether one of so many changes is seen outside of the reach."""
    rng = np.random.default_rng(seed)
    for _ in range(times):
        samples = stream(rng, 40.0)
        begin = 100.0 + rng.uniform(0.5, 25.0)
        before, after = (outside(events(s, made, right), begin, right) for s in (samples, changed(samples, begin, rng)))
        if before != after:
            return True
    return False


def instead(**detection: float) -> Factory:
    """A detector with other numbers than those that the memory was computed from."""

    def made(right: Profile) -> Detector:
        return Detector(dataclasses.replace(right, detection=dataclasses.replace(right.detection, **detection)))

    return made


class _CutFromOwnStart(Segments):
    """Counts the cuts of a fixation from its own start instead of the clock's grid."""

    def first_cut(self, start: int) -> int:
        return start + self._cut_after


def cut_from_own_start(right: Profile) -> Detector:
    detector = Detector(right)
    detector.segments = _CutFromOwnStart(right)
    return detector


class _Greedy(Lids):
    """A lid that another one has used is none, so that each hangs on the one before."""

    def __init__(self, right: Profile) -> None:
        super().__init__(right)
        self.used: dict[int, int] = {}

    def _lid_in(self, a: Run, b: Run) -> bool:
        if not super()._lid_in(a, b) or self.used.get(b.start, a.start) != a.start or a.start in self.used:
            return False
        self.used[b.start] = a.start
        return True


def greedy(right: Profile) -> Detector:
    detector = Detector(right)
    detector.segments.judge = _Greedy(right)
    return detector


@BOTH
@pytest.mark.long
def test_no_event_outside_of_the_reach_changes(right: Profile) -> None:
    assert not escapes(Detector, times=300, seed=1, right=right)


def test_of_lids_in_a_row_none_hangs_on_the_one_before() -> None:
    """It goes down and up each 0.4 s. Where it stays down once, what comes later is as before."""
    t = 100.0 + np.arange(1200) / RATE_HZ
    lids = -5.0 * (t % 0.4 < 0.2)
    rows = [Samples.of(t, np.zeros(1200), np.where(abs(t - 105.5) < down_s, -5.0, lids)) for down_s in (0.0, 0.2)]
    for made, hangs in ((Detector, False), (greedy, True)):
        before, after = (outside(events(samples, made, NEWER), 105.0, NEWER) for samples in rows)
        assert (before != after) == hangs


@pytest.mark.parametrize(
    "wrong",
    [
        cut_from_own_start,
        instead(hysteresis_s=30.0),
        instead(cut_after_s=10.0),
        instead(blink_max_s=5.0),
        instead(saccade_max_s=3.0),
    ],
    ids=["cut from own start", "hysteresis carried on", "never cut", "blinks of any length", "saccades of any length"],
)
def test_a_detector_that_remembers_more_is_found_out(wrong: Factory) -> None:
    assert escapes(wrong, times=200, seed=2)


@BOTH
def test_the_reach_is_not_much_larger_than_it_need_be(right: Profile) -> None:
    """A bound that nothing comes near would say nothing: some change is seen in the last third of it."""
    rng, furthest = np.random.default_rng(3), 0.0
    for _ in range(150):
        samples = stream(rng, 30.0)
        begin = 100.0 + rng.uniform(5.0, 25.0)
        before, after = (set(map(repr, events(s, Detector, right))) for s in (samples, changed(samples, begin, rng)))
        ends = [float(text.split("confirmed=")[1].split(",")[0].rstrip(")")) for text in before ^ after]
        furthest = max([furthest, *(end / 1e6 - (begin + 1.0 - 100.0) for end in ends)])
    assert 2 / 3 * right.memory_s < furthest < right.memory_s


def check_rows(times: int, seed: int, right: Profile) -> None:
    rng = np.random.default_rng(seed)
    moved = 0
    for _ in range(times):
        samples = stream(rng, 75.0)
        begin = 100.0 + rng.uniform(0.5, 40.0)
        before, after = (FrontEnd(right).feed(s) for s in (samples, changed(samples, begin, rng)))
        np.testing.assert_array_equal(before.t, after.t)
        far = (before.t < begin) | (before.t - WINDOW_S - right.memory_s >= begin + 1.0)
        assert far.any()
        np.testing.assert_array_equal(before.values[far], after.values[far])
        moved += not np.array_equal(before.values, after.values, equal_nan=True)
    assert moved > times / 4  # rows that never move would pass


@BOTH
def test_rows_outside_of_the_reach_are_the_same_bits(right: Profile) -> None:
    check_rows(times=40, seed=4, right=right)


@BOTH
def test_rows_of_the_past_do_not_change(right: Profile) -> None:
    rng = np.random.default_rng(5)
    for _ in range(20):
        samples = stream(rng, 60.0)
        moment = 100.0 + rng.uniform(31.0, 59.0)
        cut = int(np.searchsorted(samples.t, moment, side="right"))
        whole = FrontEnd(right).feed(samples)
        other = stream(rng, 60.0)
        replaced = FrontEnd(right).feed(Samples.joined([samples[:cut], other[cut:]]))
        short = FrontEnd(right).feed(samples[:cut])
        past = whole.t <= samples.t[cut - 1]
        np.testing.assert_array_equal(short.values, whole.values[past])
        np.testing.assert_array_equal(replaced.values[past], whole.values[past])


@pytest.mark.slow
@pytest.mark.timeout(3600)
@BOTH
def test_ten_thousand_changes(right: Profile) -> None:
    assert not escapes(Detector, times=8000, seed=6, right=right)
    check_rows(times=2000, seed=7, right=right)
