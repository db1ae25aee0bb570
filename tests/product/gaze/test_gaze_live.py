"""Rows at the host's pace, whatever the tracker does."""

import numpy as np
import pytest
from numpy.typing import NDArray

from eyestream.gaze.clock_map import PERIOD_S
from eyestream.gaze.front_end import FrontEnd
from eyestream.gaze.live import DELAY_S, SILENCE_S, LiveFrontEnd, LiveRows
from eyestream.gaze.samples import Samples, TimedRows
from tests.rigs.gaze_people import gaze, profile

RATE_HZ = 250.0
AHEAD_S = 5e5
"""Tracker's clock minus host's."""

Array = NDArray[np.float64]


def run(
    samples: Samples, arrived: Array, until_s: float, pulse_s: float = 0.1
) -> tuple[LiveFrontEnd, list[tuple[float, LiveRows]]]:
    """Samples as they arrive, on a host whose clock begins at 0; each row with the moment at which it was made."""
    live, made, begin, now = LiveFrontEnd(profile(RATE_HZ)), [], 0, 0.0
    while now < until_s:
        due = live.next_due
        now = min(now + pulse_s, now + pulse_s if due is None else max(due, now))
        end = int(np.searchsorted(arrived, now, side="right"))
        if end > begin:
            live.take(samples[begin:end], arrived[begin:end])
        begin = max(begin, end)
        made += [(now, rows) for rows in live.due(now)]
    return live, made


def person(seconds: float, seed: int = 3) -> tuple[Samples, Array]:
    samples, _ = gaze(RATE_HZ, seconds, seed)
    rng = np.random.default_rng(seed)
    arrived = np.maximum.accumulate(samples.t + 1.0 + rng.exponential(0.003, len(samples)))
    return Samples(samples.t + AHEAD_S, samples.x, samples.y, samples.pupil_mm, samples.valid), arrived


def cadence(made: list[tuple[float, LiveRows]]) -> None:
    """Every row has its number and its moment."""
    moments = np.array([now for now, _ in made])
    rows = moments[[not rows.end for _, rows in made]]
    assert [rows.number for _, rows in made] == list(range(len(made)))
    np.testing.assert_allclose(np.diff(rows), 0.5, atol=1e-6)


def batch(samples: Samples, live: LiveFrontEnd) -> TimedRows:
    """The rows of the same samples as a recording, from the session's first one on."""
    return FrontEnd(live.profile).feed(samples[int(np.searchsorted(samples.t, live._origin)) :])


@pytest.mark.parametrize("pulse_s", [0.01, 0.1, 0.37])
@pytest.mark.parametrize("ppm", [0.0, 100.0])
def test_rows_are_the_batchs_to_the_last_bit_and_come_at_their_moments(pulse_s: float, ppm: float) -> None:
    samples, arrived = person(45.0)
    samples = Samples(samples.t * (1 + 1e-6 * ppm), samples.x, samples.y, samples.pupil_mm, samples.valid)
    live, made = run(samples, arrived, 46.0, pulse_s)
    cadence(made)
    assert len(made) >= 26
    whole = batch(samples, live)
    for (now, rows), t, values in zip(made, whole.t, whole.values, strict=False):
        assert rows.t[0] == t
        np.testing.assert_array_equal(rows.values[0], values)
        assert now == pytest.approx(t + live.clock.offset_s + DELAY_S, abs=1e-5)
    assert np.isfinite(whole.values).all(axis=1).all()


@pytest.mark.parametrize(
    "kind", ["lost", "silent", "flood", "nonsense", "drift", "late", "double", "half", "stop", "back"]
)
def test_nothing_changes_the_cadence(kind: str) -> None:
    samples, arrived = person(50.0)
    x, t, valid = samples.x.copy(), samples.t.copy(), samples.valid.copy()
    middle = (arrived > 36.0) & (arrived < 38.5)  # for longer, a clock that runs unevenly ends the session
    if kind == "lost":
        valid[middle] = False
    elif kind == "nonsense":
        t[middle] = np.random.default_rng(5).choice([np.nan, np.inf, -1e308, 1e308, 0.0, -1.0, 1e18], middle.sum())
        x[middle] = 1e308
    elif kind == "drift":
        t = AHEAD_S + (t - AHEAD_S) * (1 + 1e-4)
    elif kind in {"double", "half", "stop", "back"}:
        t += (np.clip(arrived, 36.0, 38.5) - 36.0) * {"double": 1.0, "half": -0.5, "stop": -1.0, "back": -2.0}[kind]
        t[arrived > 38.5] = samples.t[arrived > 38.5]
    elif kind == "late":
        arrived = np.maximum.accumulate(np.where(middle, 38.4, arrived))
    changed = Samples(t, x, samples.y, samples.pupil_mm, valid)
    if kind == "silent":
        changed, arrived = Samples.of(*(a[~middle] for a in (t, x, samples.y))), arrived[~middle]
    if kind == "flood":
        order = np.sort(np.concatenate([np.arange(len(t)), np.repeat(np.flatnonzero(middle), 50)]))
        changed, arrived = Samples.of(*(a[order] for a in (t, x, samples.y))), arrived[order]
    live, made = run(changed, arrived, 56.0)
    cadence(made)
    assert len(made) > 45
    assert not any(rows.end for _, rows in made)
    assert live.next_due is not None
    assert live.next_due - made[-1][0] <= 0.5 + 1e-6


def test_silence_ends_a_session_and_gaze_begins_the_next() -> None:
    samples, arrived = person(140.0)
    heard = (arrived < 33.0) | (arrived > 33.0 + SILENCE_S + 5.0)
    kept = Samples.of(*(a[heard] for a in (samples.t, samples.x, samples.y)))
    _, made = run(kept, arrived[heard], 140.0)
    ends = [index for index, (_, rows) in enumerate(made) if rows.end]
    assert len(ends) == 1
    cadence(made[: ends[0]])
    cadence(made[ends[0] + 1 :])
    assert {rows.session for _, rows in made[: ends[0] + 1]} == {0}
    assert {rows.session for _, rows in made[ends[0] + 1 :]} == {1}
    assert made[ends[0]][1].number == ends[0]
    assert SILENCE_S < made[ends[0]][0] - 33.0 < SILENCE_S + PERIOD_S + 0.1
    assert np.isnan(np.concatenate([rows.values for _, rows in made[ends[0] - 20 : ends[0]]])).all()


def test_what_waits_is_bounded() -> None:
    live = LiveFrontEnd(profile(RATE_HZ))
    first, n = np.arange(0.0, 2.0, 0.004), 100_000
    live.take(Samples.of(first, 0.0 * first, 0.0 * first), first)
    assert live.next_due is not None
    for now in np.arange(2.0, 5.0, 0.1).tolist():
        t = np.linspace(now - 3.0, now + 3.0, n)
        live.take(Samples.of(t, 0.0 * t, 0.0 * t), np.full(n, now))
        live.due(now)
        assert len(live.waiting) <= 8 * RATE_HZ * (2 * DELAY_S) + 8
    assert live.waiting.crowded > n


def test_the_end_of_a_source_ends_its_session() -> None:
    samples, arrived = person(32.2)
    live, rows = LiveFrontEnd(profile(RATE_HZ)), []
    for begin in range(0, len(samples), 50):
        live.take(samples[begin : begin + 50], arrived[begin : begin + 50])
        rows += live.due(float(arrived[min(begin + 49, len(arrived) - 1)]))
    *more, end = live.finish(float(arrived[-1]))
    rows += more
    assert end.end
    assert end.number == len(rows) == 5
    assert len(more) == 2
    assert live.next_due is None
    assert live.finish(40.0) == []
    assert not any(row.end for row in rows)


def test_before_any_gaze_nothing_is_due() -> None:
    live = LiveFrontEnd(profile(RATE_HZ))
    assert live.next_due is None
    assert live.due(1e9) == []
    live.take(Samples.of([np.nan], [0.0], [0.0]), np.array([1.0]))
    assert live.next_due is None


FACTORS = [(0.6, False), (1.0, False), (1.2, False), (1.3, True), (2.0, True), (20.0, True)]


@pytest.mark.parametrize(("factor", "refused"), FACTORS)
def test_rows_of_gaze_faster_than_its_profile_says_are_lost(factor: float, refused: bool) -> None:
    live, rows = LiveFrontEnd(profile(RATE_HZ)), []
    samples, _ = gaze(RATE_HZ * factor, 38.0, 3)
    for begin in range(0, len(samples), 25):
        part = samples[begin : begin + 25]
        live.take(part, part.t + 0.001)
        rows += live.due(float(part.t[-1]))
    assert len(rows) >= 10
    assert np.isnan(np.concatenate([row.values for row in rows])).all() == refused
    assert live.too_fast == (len(rows) if refused else 0)


def test_a_burst_of_what_waited_is_not_too_fast() -> None:
    samples, _ = gaze(RATE_HZ, 40.0, 3)
    live, rows = LiveFrontEnd(profile(RATE_HZ)), []
    for begin in range(0, len(samples), 100):
        part = samples[begin : begin + 100]
        live.take(part, np.full(len(part), part.t[-1]))
        rows += live.due(float(part.t[-1]))
    whole = batch(samples, live)
    assert len(rows) >= 12
    np.testing.assert_array_equal(np.concatenate([row.values for row in rows]), whole.values[: len(rows)])
    assert np.isfinite(whole.values[: len(rows)]).all()


def test_a_sample_at_the_end_of_a_window_belongs_to_it() -> None:
    """A regular tracker has one at every end: each would be dropped as late, and leave a gap, if the row came first."""
    live, rows = LiveFrontEnd(profile(RATE_HZ)), []
    samples, _ = gaze(RATE_HZ, 36.0, 3)
    regular = Samples(np.arange(len(samples)) / RATE_HZ, samples.x, samples.y, samples.pupil_mm, samples.valid)
    for begin in range(0, len(samples), 25):
        part = regular[begin : begin + 25]
        live.take(part, part.t)
        rows += live.due(float(part.t[-1]))
    whole = batch(regular, live)
    assert len(rows) >= 7
    np.testing.assert_array_equal(np.concatenate([row.values for row in rows]), whole.values[: len(rows)])


def test_after_a_cut_no_row_has_gaze_of_before() -> None:
    """Two people before the cut, of whom one has gone: the rows after it are the same, and of another session."""
    later, told = person(140.0, seed=4), []
    for seed in (5, 6):
        before = person(70.0, seed=seed)
        live = LiveFrontEnd(profile(RATE_HZ))
        live.take(before[0], before[1])
        rows = live.due(71.0)
        assert rows
        live.cut()
        assert [made.end for made in live.due(71.0)] == [True]
        first = int(np.searchsorted(later[1], 72.5))
        live.take(later[0][first:], later[1][first:])
        after = live.due(140.0)
        assert {made.session for made in after} == {rows[-1].session + 1}
        assert after[0].number == 0
        told.append(np.concatenate([made.values for made in after]))
    assert np.isfinite(told[0]).any()
    np.testing.assert_array_equal(told[0], told[1])
