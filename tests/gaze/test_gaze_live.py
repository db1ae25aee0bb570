"""Rows at the host's pace, whatever the tracker does."""

import numpy as np
import pytest
from numpy.typing import NDArray

from eyestream.gaze.front_end import FrontEnd
from eyestream.gaze.live import DELAY_S, SILENCE_S, LiveFrontEnd, LiveRows
from eyestream.gaze.samples import Samples
from tests.gaze.gaze_people import gaze, profile

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
    assert [rows.number for _, rows in made] == list(range(len(made)))
    np.testing.assert_allclose(np.diff(moments), 0.5, atol=1e-6)


def test_rows_are_those_of_the_samples_and_come_at_their_moments() -> None:
    samples, arrived = person(45.0)
    _, made = run(samples, arrived, 46.0)
    cadence(made)
    assert len(made) >= 29
    whole = FrontEnd(profile(RATE_HZ)).feed(samples)
    for index, (_, rows) in enumerate(made[:28]):
        np.testing.assert_allclose(rows.t, whole.t[index], atol=0.006)
        same = np.isclose(rows.values[0], whole.values[index], rtol=0.05, atol=0.05)
        assert same.mean() > 0.9  # the offset settles in the first second, which moves an event's end by a microsecond


@pytest.mark.parametrize("kind", ["lost", "silent", "set", "flood", "nonsense", "drift", "late"])
def test_nothing_changes_the_cadence(kind: str) -> None:
    samples, arrived = person(50.0)
    x, t, valid = samples.x.copy(), samples.t.copy(), samples.valid.copy()
    middle = (arrived > 35.0) & (arrived < 40.0)
    if kind == "lost":
        valid[middle] = False
    elif kind == "set":
        t[arrived > 37.0] += 3600.0
    elif kind == "nonsense":
        t[middle] = np.random.default_rng(5).choice([np.nan, np.inf, -1e308, 1e308, 0.0, -1.0, 1e18], middle.sum())
        x[middle] = 1e308
    elif kind == "drift":
        t = AHEAD_S + (t - AHEAD_S) * (1 + 1e-4)
    elif kind == "late":
        arrived = np.maximum.accumulate(np.where(middle, 39.9, arrived))
    changed = Samples(t, x, samples.y, samples.pupil_mm, valid)
    if kind == "silent":
        changed, arrived = Samples.of(*(a[~middle] for a in (t, x, samples.y))), arrived[~middle]
    if kind == "flood":
        order = np.sort(np.concatenate([np.arange(len(t)), np.repeat(np.flatnonzero(middle), 50)]))
        changed, arrived = Samples.of(*(a[order] for a in (t, x, samples.y))), arrived[order]
    live, made = run(changed, arrived, 56.0)
    cadence(made)
    assert len(made) > 45
    assert live.clock.steps == (1 if kind == "set" else 0)


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
    assert made[ends[0]][0] - 33.0 == pytest.approx(SILENCE_S + DELAY_S, abs=1.0)
    assert np.isnan(np.concatenate([rows.values for _, rows in made[ends[0] - 20 : ends[0]]])).all()


def test_what_waits_is_bounded() -> None:
    live = LiveFrontEnd(profile(RATE_HZ))
    n = 100_000
    live.take(Samples.of(np.arange(n) / 1e6, np.zeros(n), np.zeros(n)), np.full(n, 1.0))
    assert len(live._waiting) <= 2 * RATE_HZ
    assert live.overflowed >= n - 2 * RATE_HZ
    live.take(Samples.of(np.arange(400) / 1e6 + 0.1, np.zeros(400), np.zeros(400)), np.full(400, 1.1))
    assert len(live._waiting) <= 2 * RATE_HZ


def test_the_end_of_a_source_ends_its_session() -> None:
    samples, arrived = person(31.2)
    live = LiveFrontEnd(profile(RATE_HZ))
    for begin in range(0, len(samples), 50):
        live.take(samples[begin : begin + 50], arrived[begin : begin + 50])
        live.due(float(arrived[min(begin + 49, len(arrived) - 1)]))
    *rows, end = live.finish()
    assert end.end
    assert end.number == 3
    assert live.next_due is None
    assert live.finish() == []
    assert not any(row.end for row in rows)


def test_before_any_gaze_nothing_is_due() -> None:
    live = LiveFrontEnd(profile(RATE_HZ))
    assert live.next_due is None
    assert live.due(1e9) == []
    live.take(Samples.of([np.nan], [0.0], [0.0]), np.array([1.0]))
    assert live.next_due is None


@pytest.mark.parametrize(("factor", "refused"), [(0.6, False), (1.0, False), (1.2, False), (1.5, True), (2.0, True)])
def test_gaze_faster_than_its_profile_says_counts_as_lost(factor: float, refused: bool) -> None:
    live, rows = LiveFrontEnd(profile(RATE_HZ)), []
    samples, _ = gaze(RATE_HZ * factor, 36.0, 3)
    for begin in range(0, len(samples), 25):
        part = samples[begin : begin + 25]
        live.take(part, part.t + 0.001)
        rows += live.due(float(part.t[-1]))
    assert len(rows) >= 10
    assert np.isnan(np.concatenate([row.values for row in rows])).all() == refused
    assert (live.too_fast > 0.9 * len(samples)) == refused
    assert live.too_fast == 0 or refused


def test_a_burst_of_what_waited_is_not_too_fast() -> None:
    live = LiveFrontEnd(profile(RATE_HZ))
    samples, _ = gaze(RATE_HZ, 10.0, 3)
    for begin in range(0, len(samples), 400):
        part = samples[begin : begin + 400]
        live.take(part, np.full(len(part), part.t[-1]))
        live.due(float(part.t[-1]))
    assert live.too_fast == 0


def test_a_sample_at_the_end_of_a_window_belongs_to_it() -> None:
    """A regular tracker has one at every end: each would be dropped as late, and leave a gap, if the row came first."""
    live, rows = LiveFrontEnd(profile(RATE_HZ)), []
    samples, _ = gaze(RATE_HZ, 36.0, 3)
    regular = Samples(np.arange(len(samples)) / RATE_HZ, samples.x, samples.y, samples.pupil_mm, samples.valid)
    for begin in range(0, len(samples), 25):
        part = regular[begin : begin + 25]
        live.take(part, part.t)
        rows += live.due(float(part.t[-1]))
    whole = FrontEnd(profile(RATE_HZ)).feed(regular)
    assert len(rows) >= 11
    for made, values in zip(rows[2:], whole.values[2:], strict=False):  # the first sample only says where the grid is
        np.testing.assert_array_equal(made.values[0], values)
