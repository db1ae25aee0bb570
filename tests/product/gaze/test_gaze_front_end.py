"""The cadence follows the clock; bad input never stops it."""

import gc
import itertools
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from eyestream.gaze.events import Blink, Event
from eyestream.gaze.features import NAMES
from eyestream.gaze.front_end import FrontEnd
from eyestream.gaze.samples import Samples, TimedRows
from tests.rigs.gaze_people import gaze, profile

MADE = profile(60.0)


def together(parts: list[TimedRows]) -> TimedRows:
    return TimedRows(np.concatenate([r.t for r in parts]), np.concatenate([r.values for r in parts]))


def still(seconds: float, rate_hz: float = 60.0, start_s: float = 0.0) -> Samples:
    t = start_s + np.arange(int(seconds * rate_hz)) / rate_hz
    return Samples.of(t, np.sin(t), np.cos(t), np.full(len(t), 3.0))


def test_rows_stand_on_a_grid_from_the_first_sample_on() -> None:
    front_end = FrontEnd(MADE)
    rows = front_end.feed(still(32.02, start_s=7.25))
    np.testing.assert_array_equal(rows.t, 7.25 + np.array([30.0, 30.5, 31.0, 31.5, 32.0]))
    assert rows.values.shape == (5, 52)
    assert len(FrontEnd(MADE).feed(still(29.9))) == 0
    lost = Samples.of(still(31).t, np.full(1860, np.nan), np.zeros(1860))
    np.testing.assert_array_equal(FrontEnd(MADE).feed(lost).t, [30.0, 30.5])  # also when the eye is lost from the start


def test_the_clock_alone_makes_rows() -> None:
    front_end = FrontEnd(MADE)
    assert len(front_end.advance(5.0)) == 0  # no session yet
    front_end.feed(still(40.0))
    alone = together([front_end.advance(now) for now in (40.2, 40.5, 40.4, float("nan"), 43.0, 90.0)])
    np.testing.assert_array_equal(alone.t, np.arange(40.0, 90.5, 0.5))
    valid = np.asarray(np.isfinite(alone.values).all(axis=1))
    half_lost = (40.0 - (alone.t - 30.0)) * 60 > 900
    np.testing.assert_array_equal(valid, half_lost)
    assert not valid[-1]


def test_an_event_that_silence_ends_is_counted_by_the_clock() -> None:
    fed, silent = FrontEnd(MADE), FrontEnd(MADE)
    samples = still(30.45)
    lost = Samples.of(30.45 + np.arange(60) / 60, np.full(60, np.nan), np.full(60, np.nan))
    by_clock = together([silent.feed(samples), silent.advance(31.4)])
    by_samples = fed.feed(Samples.joined([samples, lost]))
    np.testing.assert_array_equal(by_clock.t, by_samples.t)
    np.testing.assert_array_equal(by_clock.values, by_samples.values)


@pytest.mark.parametrize("kind", ["lost", "silent", "one eye", "not worn", "frozen"])
def test_a_lost_eye_gives_rows_of_nan_and_never_missing_rows(kind: str) -> None:
    made = profile(60.0, frozen_s=1.0)
    samples = gaze(60.0, 150.0, seed=2)[0]
    x, valid = samples.x.copy(), samples.valid.copy()
    away = (samples.t >= 50.0) & (samples.t < 90.0)
    if kind == "lost":
        x[away] = np.nan
    elif kind in ("one eye", "not worn"):
        valid[away] = False
    elif kind == "frozen":
        x[away] = 1.0
    y = np.where(away, 2.0, samples.y) if kind == "frozen" else samples.y
    spoiled = Samples.of(samples.t, x, y, samples.pupil_mm, valid | (away if kind == "frozen" else False))
    front_end = FrontEnd(made)
    if kind == "silent":
        keep = ~away
        s = spoiled
        spoiled = Samples(s.t[keep], s.x[keep], s.y[keep], s.pupil_mm[keep], s.valid[keep])
    rows = together([front_end.feed(spoiled), front_end.advance(150.0)])
    np.testing.assert_array_equal(rows.t, np.arange(30.0, 150.5, 0.5))
    missing = np.isnan(rows.values).all(axis=1)
    assert missing.any()
    np.testing.assert_array_equal(missing, np.isnan(rows.values).any(axis=1))
    assert rows.t[missing].min() == pytest.approx(65.5, abs=1.5)
    assert rows.t[missing].max() == pytest.approx(105.0, abs=1.5)
    assert np.diff(rows.t[missing]).max() == 0.5


def test_half_of_the_samples_is_not_enough() -> None:
    t = np.arange(0, 31.0, 1 / 64)
    made = profile(64.0)
    for lost, is_nan in ((0.45, False), (0.5, True)):
        x = np.where((t % 1.0) < lost, np.nan, 0.0)
        row = FrontEnd(made).feed(Samples.of(t, x, np.zeros(len(t)))).values[0]
        assert np.isnan(row[0]) == is_nan
        there = np.isfinite(x) | (t == 30.0)
        missing = FrontEnd(made).feed(Samples.of(t[there], x[there], np.zeros(int(there.sum()))))
        assert np.isnan(missing.values[0][0]) == is_nan


def test_a_tracker_without_pupils_has_nan_for_them_alone() -> None:
    samples = gaze(60.0, 40.0, seed=3)[0]
    without = Samples.of(samples.t, samples.x, samples.y)
    values, other = FrontEnd(MADE).feed(without).values, FrontEnd(MADE).feed(samples).values
    columns = [i for i, name in enumerate(NAMES) if name.endswith("diameter")]
    assert np.isnan(values[:, columns]).all()
    assert np.isfinite(other).all()
    rest = np.setdiff1d(np.arange(52), columns)
    np.testing.assert_array_equal(values[:, rest], other[:, rest])


def test_times_that_do_not_go_forward_are_dropped_and_counted() -> None:
    base = still(35.0)
    bad = np.array([np.nan, np.inf, -np.inf, 5.0, 5.0, -3.0, 1e308, -1e308, 5.0 + 61.0, 1.6e18])
    noise = Samples.of(bad, np.full(10, 50.0), np.full(10, 50.0))
    mixed = Samples.joined([base[:301], noise, base[301:]])  # sample 300 is at 5.0
    front_end = FrontEnd(MADE)
    rows, wanted = front_end.feed(mixed), FrontEnd(MADE).feed(base)
    np.testing.assert_array_equal(rows.values, wanted.values)
    counters = front_end.counters
    assert (counters.accepted, counters.no_time, counters.late, counters.jumped) == (2100, 3, 4, 3)
    single = FrontEnd(MADE)
    one_by_one = together([single.feed(mixed[i : i + 1]) for i in range(len(mixed))])
    np.testing.assert_array_equal(one_by_one.values, wanted.values)
    assert single.advance(34.99).t.size == 0
    assert single.counters == counters


def test_samples_behind_the_clock_change_no_row_that_was_made() -> None:
    front_end = FrontEnd(MADE)
    front_end.feed(still(31.0))
    front_end.advance(33.0)
    front_end.feed(still(2.0, start_s=31.0))
    assert front_end.advance(33.4).t.size == 0
    assert front_end.counters.late == 120


def test_wrong_units_of_time_never_flood() -> None:
    for scale in (1e3, 1e9):
        front_end = FrontEnd(MADE)
        rows = front_end.feed(Samples.of(still(5.0).t * scale, np.zeros(300), np.zeros(300)))
        assert np.isnan(rows.values).all()
        assert len(rows) <= 5 * 1000 * 2
    assert len(rows) == 0


def test_a_long_silence_is_made_in_portions() -> None:
    front_end = FrontEnd(MADE)
    front_end.feed(still(1.0))
    assert front_end.advance(1e9).t[-1] == pytest.approx(60.98, abs=0.5)
    assert front_end.advance(1e9).t[-1] == pytest.approx(120.98, abs=0.5)


def test_the_callers_arrays_may_be_filled_anew() -> None:
    samples, wanted = gaze(60.0, 40.0, seed=9)[0], FrontEnd(MADE).feed(gaze(60.0, 40.0, seed=9)[0])
    front_end, buffer, rows = FrontEnd(MADE), samples[:7].copy(), []
    for i in range(0, len(samples) - 7, 7):
        for name in ("t", "x", "y", "pupil_mm", "valid"):
            getattr(buffer, name)[:] = getattr(samples, name)[i : i + 7]
        rows.append(front_end.feed(buffer))
    np.testing.assert_array_equal(together(rows).values, wanted.values[: sum(map(len, rows))])
    assert sum(map(len, rows)) >= 19


def test_a_recording_may_have_long_gaps() -> None:
    two = Samples.joined([still(40.0), still(40.0, start_s=4000.0)])
    rows = FrontEnd(MADE, longest_step_s=86_400.0).feed(two)
    np.testing.assert_array_equal(rows.t, np.arange(30.0, 4040.0, 0.5))
    live = FrontEnd(MADE)
    assert live.feed(two).t[-1] == 39.5
    assert live.counters.jumped == 2400


wild = st.sampled_from([0.0, 0.0, 1.0, -1.0, 30.0, np.nan, np.inf, -np.inf, 1e308, -1e308, 179.0, 1e-320])


wild_steps = st.sampled_from([0.001, 0.016, 0.04, 0.4, 3.0, 0.0, -5.0, np.nan, 1e12])


@hypothesis_settings(max_examples=60)
@given(
    st.lists(st.tuples(wild_steps, wild, wild, wild), max_size=80),
    st.lists(st.integers(0, 80), max_size=5),
)
def test_anything_goes_in_and_the_split_does_not_matter(records: list[tuple[float, ...]], cuts: list[int]) -> None:
    steps, x, y, pupil = np.array(records, dtype=float).reshape(-1, 4).T
    with np.errstate(invalid="ignore"):
        t = np.where(np.isfinite(steps), np.cumsum(np.nan_to_num(steps) % 1e9), steps)
    valid = np.ones(len(t), dtype=bool)  # the front end looks for itself
    samples = Samples(t, x, y, pupil, valid)
    whole = FrontEnd(MADE)
    once = whole.feed(samples)
    edges = [0, *sorted(min(cut, len(t)) for cut in cuts), len(t)]
    ragged = FrontEnd(MADE)
    parts = [ragged.feed(samples[a:b]) for a, b in itertools.pairwise(edges)]
    end = whole._timeline.seconds(whole._timeline.clock)
    once, several = together([once, whole.advance(end + 40.0)]), together([*parts, ragged.advance(end + 40.0)])
    np.testing.assert_array_equal(once.values, several.values)
    np.testing.assert_array_equal(once.t, several.t)
    if len(once):
        np.testing.assert_allclose(np.diff(once.t), 0.5, atol=1e-6 * max(1.0, abs(once.t[0])))
    assert not np.isinf(once.values).any()
    assert whole.counters == ragged.counters


class _AtTheirBeginning(FrontEnd):
    """Counts events in the window in which they begin: not causal."""

    def __init__(self) -> None:
        super().__init__(MADE)
        put = self._window.put

        def early(events: list[Event]) -> None:
            put([event._replace(confirmed=event.start) for event in events])

        self._window.put = early  # type: ignore[method-assign]


def test_counting_events_where_they_begin_is_found_out() -> None:
    """The rows of such a front end depend on how samples come: stream equals batch can fail."""
    samples = gaze(60.0, 60.0, seed=6)[0]
    whole, ragged = _AtTheirBeginning(), _AtTheirBeginning()
    parts = together([ragged.feed(samples[i : i + 7]) for i in range(0, len(samples), 7)])
    assert not np.array_equal(whole.feed(samples).values, parts.values)


@pytest.mark.parametrize("portions", [8, pytest.param(360, marks=[pytest.mark.slow, pytest.mark.timeout(1200)])])
def test_memory_at_1_khz_is_small_and_flat(portions: int) -> None:
    """360 portions of 10 s are an hour."""
    made = profile(1000.0, frozen_s=1.0)
    part_of_it = gaze(1000.0, 10.0, seed=7)[0]
    tracemalloc.start()
    try:
        front_end, sizes = FrontEnd(made), []
        for number in range(portions):
            for i in range(0, len(part_of_it), 240):
                part = part_of_it[i : i + 240]
                front_end.feed(Samples(part.t + 10.0 * number, part.x, part.y, part.pupil_mm, part.valid))
            gc.collect()  # empties the interpreter's lists of freed tuples, which fill up to a bound of their own
            sizes.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    assert max(sizes) < 2**20
    assert max(sizes[5:]) < max(sizes[3:5]) + 2**16


def test_memory_stays_bounded_when_gaze_is_nonsense() -> None:
    made = profile(1000.0)
    rng = np.random.default_rng(8)
    t = np.arange(35_000) / 1000.0
    tracemalloc.start()
    try:
        for x in (rng.uniform(-90, 90, len(t)), np.where(np.arange(len(t)) // 14 % 2, 40.0, -40.0)):
            front_end = FrontEnd(made)
            for i in range(0, len(t), 500):
                front_end.feed(Samples.of(t[i : i + 500], x[i : i + 500], 0 * x[i : i + 500]))
            assert tracemalloc.get_traced_memory()[0] < 2**21
    finally:
        tracemalloc.stop()


def test_a_blink_is_in_the_window_in_which_it_is_known() -> None:
    t = np.arange(0, 64, 1 / 64)
    x = np.where((t >= 2.0) & (t < 2.25), np.nan, 0.0)
    made = profile(64.0)
    rows = FrontEnd(made).feed(Samples.of(t, x, np.zeros(len(t))))
    rate = rows.values[:, NAMES.index("blink_rate")]
    known = 2.25 + made.delay_ticks / 1e6
    np.testing.assert_array_equal(rate > 0, rows.t - 30.0 < known)
    assert rows.values[0, NAMES.index("mean_blink_duration")] == 0.25
    assert Blink(0, 250_000, 0).duration_s == 0.25
