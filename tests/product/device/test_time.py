"""Due times, and clocks as they should not be."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from eyestream.core.chunking.device import Clock, Device
from eyestream.wire.envelope import MAX_U64
from eyestream.wire.raw import RawRows
from tests.product.device.device_streams import SESSION, balanced, columns, message, seen, settings

Array = NDArray[np.float64]


def test_due_time_is_anchored_at_the_first_row() -> None:
    device = Device(settings(grace_s=0.5))
    device.feed(message(1), 10.0)  # two rows are to come, at 2 rows/s with 1 % of slack
    assert device.next_due() == pytest.approx(10.0 + 2 / 2 * 1.01 + 0.5, abs=1e-9)
    assert device.tick(11.5) == []
    (due,) = device.tick(11.52)
    assert columns(due) == [None, 1.0, None, None]
    assert not due.ends_session


def test_without_any_row_a_chunk_is_due_a_chunk_later() -> None:
    device = Device(settings(grace_s=0.5))
    device.feed(message(0), 0.0)
    first = 3 / 2 * 1.01 + 0.5
    for late in range(5):
        assert device.next_due() == pytest.approx(first + 2.0 * late)
        assert device.tick(first + 2.0 * late - 0.01) == []
        assert [due.span.index for due in device.tick(first + 2.0 * late)] == [late]


@pytest.mark.parametrize(("late", "steps"), [(-0.6, -2), (-0.2, 0), (0.2, 0), (0.3, 1), (0.9, 3)])
def test_the_schedule_follows_the_tracker_by_whole_steps(late: float, steps: int) -> None:
    device = Device(settings(grace_s=0.5))
    device.feed(message(0, 4), 0.0)
    first = 1.515 + 0.5
    assert device.next_due() == pytest.approx(first + 2.0)  # of the awaited one, after that of the closed one
    device.feed(message(4), 2.0 + late)
    assert device.next_due() == pytest.approx(first + 2.0 + 0.25 * steps)
    device.feed(message(5, 3), 3.5)
    assert device.next_due() == pytest.approx(first + 4.0 + 0.25 * steps)


def test_without_grace_every_chunk_anchors_again() -> None:
    device = Device(settings(grace_s=0.0))
    device.feed(message(0, 4), 0.0)
    device.feed(message(4), 3.0)
    assert device.next_due() == pytest.approx(3.0 + 1.515)


def test_a_row_after_the_due_time_is_late_also_when_nobody_asked() -> None:
    device = Device(settings())
    device.feed(message(0), 0.0)
    (due,) = device.feed(message(1), 2.1)
    assert columns(due) == [0.0, None, None, None]
    assert device.counters.late == 1


def test_idle_stops_the_session() -> None:
    device = Device(settings(idle_s=3.0))
    device.feed(message(0), 0.0)
    assert [due.span.index for due in device.tick(2.1)] == [0]
    assert device.next_due() == pytest.approx(3.0)
    assert device.tick(3.0) == []
    assert device.session is None
    assert device.next_due() is None


def test_after_an_idle_time_the_tracker_is_heard_again_from_the_next_chunk_on() -> None:
    """It may not know that it was not heard. What fell due meanwhile is refused, what was only awaited is not."""
    device = Device(settings(idle_s=4.5))
    device.feed(message(0, 2), 0.0)
    assert [due.span.first_row for due in device.tick(4.5)] == [0, 4]
    assert device.session is None
    assert device.feed(message(2, 6), 5.0) == []
    assert device.session is None, "rows at the mark begin nothing"
    (due,) = device.feed(message(8, 5), 6.0)
    assert (columns(due), due.span.index, due.t0) == ([8.0, 9.0, 10.0, 11.0], 0, 0.0)
    assert device.open_chunk is not None
    assert device.open_chunk.index == 1
    assert (device.counters.refused, device.counters.accepted) == (6, 7)


def test_idle_before_the_due_time_closes_the_open_chunk() -> None:
    device = Device(settings(idle_s=1.0))
    device.feed(message(0), 0.0)
    (due,) = device.tick(1.0)
    assert due.ends_session
    assert device.session is None


@pytest.mark.parametrize("kind", ["late", "duplicate"])
def test_any_row_of_the_session_says_that_the_tracker_lives(kind: str) -> None:
    device = Device(settings(idle_s=3.0))
    device.feed(message(0, 5), 0.0)
    device.feed(message(0 if kind == "late" else 4), 2.5)
    device.tick(4.0)
    assert device.session == SESSION


def test_on_clock_gives_out_at_the_due_time_only() -> None:
    device = Device(settings(release="on_clock", grace_s=0.5))
    assert device.feed(message(0, 4), 0.0) == []
    assert device.next_due() == pytest.approx(2.015)
    assert device.tick(2.0) == []
    (due,) = device.tick(2.015)
    assert columns(due) == [0.0, 1.0, 2.0, 3.0]


def cadence(late: Callable[[int], float], **changes: Any) -> list[tuple[float | None, int, list[float | None]]]:
    """When each chunk of 40 rows comes out, which one, and what is in it; row i arrives `late(i)` after its moment."""
    device = Device(settings(release="on_clock", **changes))
    out: list[tuple[float | None, int, list[float | None]]] = []
    for row in range(40):
        arrival = row / 2 + late(row)
        while (due_at := device.next_due()) is not None and due_at <= arrival:
            out += [(due_at, due.span.index, columns(due)) for due in device.tick(due_at)]
        device.feed(message(row), arrival)
    return out


@pytest.mark.parametrize("latest", [0.02, 0.1, 0.24])
def test_on_clock_cadence_does_not_follow_the_rows(latest: float) -> None:
    """After the session's first row, nothing of when the others arrive is in a chunk's time, not a bit of it."""
    ragged = np.random.default_rng(1).uniform(0, latest, 40)
    even = cadence(lambda row: 0.0)
    assert len(even) == 9
    assert cadence(lambda row: latest if row else 0.0) == even
    assert cadence(lambda row: float(ragged[row]) if row else 0.0) == even


@pytest.mark.parametrize("release", ["on_row", "on_clock"])
def test_a_fast_tracker_is_bounded_and_nothing_is_lost_unsaid(release: str) -> None:
    device = Device(settings(release=release))
    out = [due for seq in range(4000) for due in device.feed(message(seq), 0.0)]
    out += device.close(0.0)
    if release == "on_row":
        assert len(out) == 1000
    else:
        assert 3 < len(out) <= 3 + 3
        assert device.counters.jump == 4000 - device.counters.accepted - device.counters.refused > 3900
    assert balanced(device)
    assert [due.span.index for due in out] == list(range(len(out)))


def test_on_clock_with_a_frozen_clock_holds_no_more_for_any_number_of_sessions() -> None:
    device = Device(settings(release="on_clock"))
    for session in range(200):
        device.feed(message(0, 40, session=session), 0.0)
    assert len(device.close(0.0)) <= 6
    assert balanced(device)
    device.feed(message(0, 4, session=300), 0.0)
    assert columns(device.tick(100.0)[0]) == [0.0, 1.0, 2.0, 3.0]


def test_a_backlog_beyond_the_room_costs_itself_and_not_the_tracker() -> None:
    device = Device(settings(release="on_clock", idle_s=30.0))
    device.feed(message(0, 400), 0.0)
    out = device.tick(25.0)
    assert 3 < len(out) <= 6
    device.feed(message(400, 4), 26.0)
    (due,) = device.tick(30.0)[:1]
    assert (columns(due), due.span.index) == ([400.0, 401.0, 402.0, 403.0], 0)


def test_on_row_does_not_need_a_clock() -> None:
    device = Device(settings())
    out = [due for seq in range(400) for due in device.feed(message(seq), 7.0)]
    assert [due.span.index for due in out] == list(range(100))


@pytest.mark.parametrize("drift", [-5e-4, 5e-4, 9e-3])
@pytest.mark.parametrize("release", ["on_row", "on_clock"])
def test_a_drifting_tracker_loses_nothing(drift: float, release: str) -> None:
    device = Device(settings(release=release, grace_s=0.1, idle_s=10.0))
    out, rows, time = [], 12_000, 0.0
    for seq in range(rows):
        time = seq / 2 * (1 + drift)
        while (due_at := device.next_due()) is not None and due_at < time:
            out += device.tick(due_at)
        out += device.feed(message(seq), time)
    out += device.close(time)
    assert device.counters.accepted == rows
    assert [due.span.index for due in out] == list(range(rows // 4))


@pytest.mark.parametrize("drift", [-9e-3, 9e-3])
def test_of_a_drift_a_release_shows_whole_steps_alone(drift: float) -> None:
    """The moments of a drifting tracker lie on the grid of its first row, moved by so many halves of the grace."""
    device, moments = Device(settings(release="on_clock", grace_s=0.1)), []
    for seq in range(4000):
        time = seq / 2 * (1 + drift)
        while (due_at := device.next_due()) is not None and due_at < time:
            moments += [(due_at, chunk.span.index) for chunk in device.tick(due_at)]
        device.feed(message(seq), time)
    assert device.counters.accepted == 4000
    steps = np.array([(at - moments[0][0] - 2.0 * index) / 0.05 for at, index in moments])
    np.testing.assert_allclose(steps, np.rint(steps), atol=1e-6)
    assert steps[-1] == pytest.approx(drift * 2000 / 0.05, abs=2)


@pytest.mark.parametrize("step", [5.0, 27.0])
def test_a_step_of_the_clock_costs_the_rows_of_that_time_only(step: float) -> None:
    """Without following the tracker, every row after a step longer than a chunk would be late for ever."""
    device = Device(settings())
    out = []
    for seq in range(400):
        time = seq / 2 + (step if seq >= 50 else 0.0)
        while (due_at := device.next_due()) is not None and due_at < time:
            out += device.tick(due_at)
        out += device.feed(message(seq), time)
    out += device.close(time)
    assert 0 < device.counters.late <= step * 2 + 8
    assert [due.span.index for due in out] == list(range(len(out)))
    assert columns(out[-1]) == [396.0, 397.0, 398.0, 399.0]


def test_old_rows_do_not_hold_up_the_awaited_chunk() -> None:
    device = Device(settings())
    device.feed(message(0, 8), 0.0)
    due_at = device.next_due()
    device.feed(message(0, 3), 0.5)  # redelivered: not news of the tracker
    assert device.next_due() == due_at


@pytest.mark.parametrize("odd", [math.nan, math.inf, -math.inf, -3600.0, 0.0, -1e308])
def test_readings_that_make_no_sense_are_no_progress(odd: float) -> None:
    device = Device(settings())
    device.feed(message(0, 2), 100.0)
    assert device.tick(odd) == []
    assert device.feed(message(2), odd) == []
    (due,) = device.feed(message(3), odd)
    assert columns(due) == [0.0, 1.0, 2.0, 3.0]


@pytest.mark.parametrize("odd", [1e308, -1e308, 2.0**63, -3600.0, 1e6])
def test_after_a_wrong_reading_time_goes_on(odd: float) -> None:
    device = Device(settings())
    device.feed(message(0, 2), 100.0)
    device.tick(odd)
    device.feed(message(0, 2, session=6), 100.0)
    assert device.next_due() is not None
    device.tick(100.0 + 60.0)
    assert device.session is None


def test_a_clock_that_begins_anywhere_gives_the_same() -> None:
    def run(start: float) -> list[tuple[object, ...]]:
        device = Device(settings())
        out = device.feed(message(0, 6), start) + device.tick(start + 4.0) + device.feed(message(9, 2), start + 4.25)
        return seen(out + device.close(start + 5.0))

    assert run(0.0) == run(-1e6) == run(2.0**40)
    assert len(run(0.0)) == 3


def test_a_step_longer_than_a_day_is_a_day() -> None:
    clock = Clock()
    assert clock.read(10.0) == 0.0
    assert clock.read(1e300) == 86_400.0
    assert clock.read(5.0) == 86_400.0
    assert clock.read(6.0) == 86_401.0


@given(st.lists(st.floats(allow_nan=True, allow_infinity=True), max_size=30))
def test_time_never_goes_back_nor_leaves_the_finite(readings: list[float]) -> None:
    clock = Clock()
    times = [clock.read(reading) for reading in readings]
    assert times == sorted(times)
    assert np.isfinite(times).all()


@given(st.floats(-1e9, 1e9), st.lists(st.floats(0, 20), min_size=1, max_size=8), st.floats(1e-3, 1e4))
def test_what_next_due_says_is_enough(start: float, waits: list[float], rate: float) -> None:
    """A loop that sleeps until `next_due` makes progress at every wake-up: it never spins on a rounding."""
    device = Device(settings(rate_hz=rate, idle_s=20 * 4 / rate))
    now, seq = start, 0
    for wait in waits:
        device.feed(message(seq), now)
        seq, until = seq + 1, now + wait / rate
        for _ in range(100):
            due_at = device.next_due()
            if due_at is None or due_at > until:
                break
            now = max(now, due_at)
            before = device.session
            assert device.tick(now) or device.session != before
        else:
            pytest.fail("spins")
        now = max(now, until)


def told(t: Array, late: Array, **changes: Any) -> list[tuple[float | None, float]]:
    """`at` and `t0` of the chunks of rows that the tracker took at `t`, and that arrived `late` after their moment."""
    device, out = Device(settings(**changes)), []
    for row, (own, after) in enumerate(zip(t, late, strict=True)):
        rows = RawRows(SESSION, row, message(row).rows, t=np.array([own]))
        out += device.feed(rows, row / 2 + after)
    return [(chunk.at, chunk.t0) for chunk in [*out, *device.close(len(t) / 2)]]


@pytest.mark.parametrize("release", ["on_row", "on_clock"])
def test_the_trackers_time_of_a_chunk_is_on_the_grid_of_the_sessions_first_row(release: str) -> None:
    """Latency that depends on the eye, up to 20 ms in a tracker's times, and in the arrivals, is in no bit of `at`."""
    rng, even = np.random.default_rng(2), 100.0 + np.arange(64) / 2
    latency = rng.uniform(0, 0.02, 64)
    latency[0] = 0.0
    whole = told(even, np.zeros(64), release=release)
    assert len(whole) == 16
    assert [at for at, _ in whole] == [100.0 + t0 for _, t0 in whole]
    assert told(even + latency, latency, release=release) == whole


def test_the_time_of_a_session_is_counted_back_from_the_first_row_that_came() -> None:
    device = Device(settings())
    rows = np.zeros((3, 3), dtype=np.float32)
    t = np.array([100.0, 100.5, 101.0])
    assert device.feed(RawRows(SESSION, 2, rows, t=t), 0.0)[0].at == 99.0
    later = device.feed(RawRows(SESSION, 13, rows[:1], t=np.array([107.5])), 0.1)
    assert [chunk.at for chunk in later] == [101.0, 103.0], "a chunk without rows is none that tells so"
    (last,) = device.close(0.2)
    assert last.at == 105.0
    device = Device(settings())
    assert device.feed(message(0, 4), 0.0)[0].at is None


def test_the_first_row_that_came_decides_the_time() -> None:
    device = Device(settings())
    device.feed(RawRows(SESSION, 1, np.zeros((1, 3), np.float32), t=np.array([50.5])), 0.0)
    (chunk,) = device.feed(RawRows(SESSION, 0, np.zeros((4, 3), np.float32), t=np.arange(4.0)), 0.0)
    assert chunk.at == 50.0


def test_behind_the_last_number_a_late_row_moves_nothing() -> None:
    device = Device(settings())
    device.feed(message(MAX_U64 - 3, 2), 0.0)
    device.tick(3.0)
    device.feed(message(MAX_U64 - 1), 3.1)
    assert device.counters.late == 1
    assert device.next_due() == pytest.approx(3.1 + 30.0)  # it is idle then; nothing more is awaited
