"""The map of a tracker's clock: found once, whatever comes then, never moved, and each sample judged by itself."""

import numpy as np
import pytest
from numpy.typing import NDArray

from eyestream.gaze.clock_map import BAND_S, ClockMap

AHEAD_S = -7.5e8
"""Host's clock minus tracker's."""

Array = NDArray[np.float64]


def arrivals(seconds: float, rate_hz: float = 200.0, *, ppm: float = 0.0, seed: int = 1) -> tuple[Array, Array, Array]:
    """(true host's times, tracker's times, arrivals): delays of 0.3 ms and an exponential rest of 4 ms."""
    rng = np.random.default_rng(seed)
    true = 1000.0 + np.arange(round(seconds * rate_hz)) / rate_hz
    t = (true - 1000.0) * (1.0 + ppm * 1e-6) + 1000.0 - AHEAD_S
    return true, t, np.maximum.accumulate(true + 0.0003 + rng.exponential(0.004, len(true)))


def taken(clock: ClockMap, t: Array, arrived: Array, most: int = 40) -> tuple[NDArray[np.bool_], list[int]]:
    """What is believed, and the samples with which another clock began, handed over in portions of any size."""
    rng, believed, began, begin = np.random.default_rng(2), [np.zeros(0, dtype=bool)], [], 0
    while begin < len(t):
        end = begin + int(rng.integers(1, most))
        while begin < min(end, len(t)):
            part = clock.take(t[begin:end], arrived[begin:end])
            believed.append(part)
            begin += len(part)
            if begin < min(end, len(t)):
                began.append(begin)
    return np.concatenate(believed), began


@pytest.mark.parametrize("most", [2, 40, 1000])
@pytest.mark.parametrize("ppm", [0.0, 100.0, -100.0])
def test_a_clock_is_known_after_a_second_and_then_never_moves(ppm: float, most: int) -> None:
    true, t, arrived = arrivals(120.0, ppm=ppm)
    clock = ClockMap()
    believed, began = taken(clock, t, arrived, most)
    assert len(began) == 1
    assert 0.9 < true[began[0]] - true[0] < 1.2
    assert believed[began[0] :].all()
    assert not believed[: began[0]].any()
    assert clock.unbelieved == began[0]
    assert clock.offset_s == pytest.approx(AHEAD_S, abs=0.01)
    alone = ClockMap()
    taken(alone, t[: began[0] + 1], arrived[: began[0] + 1])
    assert alone.offset_s == clock.offset_s


def test_how_samples_are_handed_over_does_not_matter() -> None:
    true, t, arrived = arrivals(30.0)
    rng = np.random.default_rng(3)
    t = np.where(rng.random(len(t)) < 0.2, rng.choice([0.0, 1e9, np.nan, np.inf, 3.0], len(t)), t)
    t[true > 1015.0] += 20.0
    wanted = taken(ClockMap(), t, arrived, most=2)
    assert len(wanted[1]) == 2
    for most in (5, 100, 10_000):
        believed, began = taken(ClockMap(), t, arrived, most)
        np.testing.assert_array_equal(believed, wanted[0])
        assert began == wanted[1]


def test_each_sample_is_judged_by_itself() -> None:
    """Any of them may be late, ahead or without a time: no other one is believed more or less."""
    _, t, arrived = arrivals(20.0)
    rng = np.random.default_rng(4)
    clock = ClockMap()
    began = taken(clock, t, arrived)[1][0]
    offset = clock.offset_s
    assert offset is not None
    for _ in range(20):
        wrong = rng.random(len(t)) < rng.choice([0.01, 0.4])
        wrong[: began + 1] = False
        t_wrong = t + np.where(wrong, rng.choice([np.nan, np.inf, -1e308, 1e308, -0.99, 0.99, 1.01, -1.1], len(t)), 0.0)
        believed, again = taken(ClockMap(), t_wrong, arrived)
        assert again == [began]
        np.testing.assert_array_equal(believed[began:], (np.abs(arrived - t_wrong - offset) < BAND_S - 2e-6)[began:])


@pytest.mark.parametrize("step_s", [-3600.0, -1.5, 1.5, 86400.0])
def test_a_clock_that_is_set_is_another_one_after_a_second(step_s: float) -> None:
    true, t, arrived = arrivals(30.0)
    clock = ClockMap()
    believed, began = taken(clock, np.where(true > 1015.0, t + step_s, t), arrived)
    assert [round(float(true[index]) - 1000.0) for index in began] == [1, 16]
    assert clock.offset_s == pytest.approx(AHEAD_S - step_s, abs=0.01)
    assert believed[began[1] :].all()
    assert not believed[(true > 1015.0) & (true < true[began[1]])].any()


@pytest.mark.parametrize("step_s", [-0.5, -0.05, 0.05, 0.5])
def test_a_small_step_is_no_other_clock(step_s: float) -> None:
    true, t, arrived = arrivals(30.0)
    believed, began = taken(ClockMap(), np.where(true > 1015.0, t + step_s, t), arrived)
    assert len(began) == 1
    assert believed[began[0] :].all()


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf, 1e308, -1e308, 0.0, 86400.0 * 365 * 60, 7.5e8 + 1008.0])
def test_a_single_wrong_time_is_lost_and_changes_nothing_else(wrong: float) -> None:
    """Also among the first samples, of which the map is made."""
    _, t, arrived = arrivals(20.0)
    ours, other = ClockMap(), ClockMap()
    t_wrong = t.copy()
    t_wrong[::50] = wrong
    right, right_began = taken(ours, t, arrived)
    found, began = taken(other, t_wrong, arrived)
    assert len(began) == len(right_began) == 1
    assert abs(began[0] - right_began[0]) <= 1
    assert other.offset_s == pytest.approx(ours.offset_s, abs=0.002)
    singles = np.zeros(len(t), dtype=bool)
    singles[::50] = True
    later = np.arange(len(t)) >= max(began[0], right_began[0])
    np.testing.assert_array_equal(found[later & ~singles], right[later & ~singles])
    assert not found[later & singles & (np.abs(t_wrong - t) > 1.1)].any()


def test_no_session_begins_with_a_wrong_time() -> None:
    _, t, arrived = arrivals(5.0)
    for shift in range(20):
        t_wrong = t.copy()
        t_wrong[shift::20] += 1e6
        believed, (began, *others) = taken(ClockMap(), t_wrong, arrived)
        assert believed[began]
        assert others == []


@pytest.mark.parametrize("unit", [1e3, 1e-3, 1e9, 2.0, 0.5, 0.0, -1.0])
def test_a_clock_that_does_not_run_at_a_second_a_second_is_none(unit: float) -> None:
    true, _, arrived = arrivals(20.0)
    clock = ClockMap()
    believed, began = taken(clock, (true - 1000.0) * unit, arrived)
    assert began == []
    assert not believed.any()
    assert clock.offset_s is None


@pytest.mark.parametrize("shown", [0.0, -1e10, 1.7e18, 1e300, np.inf])
def test_a_clock_that_stands_still_is_none(shown: float) -> None:
    """Also where a float is too coarse to tell: rows would be made for all of the past."""
    _, _, arrived = arrivals(20.0)
    clock = ClockMap()
    assert taken(clock, np.full(len(arrived), shown), arrived)[1] == []
    assert clock.offset_s is None


@pytest.mark.parametrize("unit", [2.0, 0.5, 0.0, -1.0])
def test_a_clock_that_ceases_to_run_evenly_is_lost_until_it_runs_again(unit: float) -> None:
    true, t, arrived = arrivals(60.0)
    wrong = (true > 1010.0) & (true < 1030.0)
    gone = np.clip(true - 1010.0, 0.0, 20.0)
    believed, began = taken(ClockMap(), t + gone * (unit - 1.0), arrived)
    assert not believed[wrong & (true > 1012.1)].any()
    assert [round(float(true[index]) - 1000.0) for index in began] == [1, 31]
    assert believed[began[1] :].all()


@pytest.mark.parametrize("times", [(0.0, -1.0), (0.0, -0.5, -1.0), (3.0, 1e6), (0.0, 1e308, np.nan)])
def test_times_that_are_any_are_no_clock(times: tuple[float, ...]) -> None:
    _, _, arrived = arrivals(60.0)
    for seed in range(5):
        t = np.random.default_rng(seed).choice(times, len(arrived))
        assert taken(ClockMap(), t, arrived)[1] == []


@pytest.mark.parametrize("portion_s", [0.1, 0.25, 0.5])
def test_portions_are_no_clock_that_runs_unevenly(portion_s: float) -> None:
    true, t, _ = arrivals(20.0)
    arrived = 1000.0 + np.ceil((true - 999.999) / portion_s) * portion_s
    believed, began = taken(ClockMap(), t, arrived)
    assert len(began) == 1
    assert true[began[0]] < 1000.0 + 1.0 + 2 * portion_s
    assert believed[began[0] :].all()


def test_a_burst_that_waited_is_late_as_far_as_it_waited_and_no_step() -> None:
    true, t, arrived = arrivals(20.0)
    waited = (true > 1010.0) & (true < 1011.5)
    arrived = np.maximum.accumulate(np.where(waited, 1011.5 + 1e-4 * (true - 1010.0), arrived))
    believed, began = taken(ClockMap(), t, arrived)
    assert len(began) == 1
    assert not believed[waited & (true < 1010.48)].any()
    assert believed[(true > 1010.51) | ((true > 1002.0) & ~waited)].all()


def test_the_first_samples_may_have_waited() -> None:
    _, t, arrived = arrivals(10.0)
    arrived[:400] = arrived[400]
    clock = ClockMap()
    believed, began = taken(clock, t, arrived)
    assert clock.offset_s == pytest.approx(AHEAD_S, abs=0.01)
    assert believed[began[0] :].all()
    assert len(began) == 1


def test_before_the_first_samples_nothing_is_known() -> None:
    clock = ClockMap()
    assert clock.offset_s is None
    assert clock.take(np.array([np.nan]), np.array([1.0])).tolist() == [False]
    assert len(clock.take(np.zeros(0), np.zeros(0))) == 0
    assert clock.offset_s is None
