"""The map of a tracker's clock: made by one sample, kept or dropped by votes, and each sample judged by itself."""

import itertools

import numpy as np
import pytest
from numpy.typing import NDArray

from eyestream.gaze.clock_map import BAND_S, PERIOD_S, ClockMap

AHEAD_S = -7.5e8
"""Host's clock minus tracker's."""

Array = NDArray[np.float64]


def arrivals(seconds: float, rate_hz: float = 200.0, *, ppm: float = 0.0, seed: int = 1) -> tuple[Array, Array, Array]:
    """(true host's times from 1000 s on, tracker's times, arrivals): delays of 0.3 ms and an exponential 4 ms."""
    rng = np.random.default_rng(seed)
    true = 1000.0 + np.arange(round(seconds * rate_hz)) / rate_hz
    t = (true - 1000.0) * (1.0 + ppm * 1e-6) + 1000.0 - AHEAD_S
    return true, t, np.maximum.accumulate(true + 0.0003 + rng.exponential(0.004, len(true)))


def lived(clock: ClockMap, t: Array, arrived: Array, most: int = 10**6) -> tuple[NDArray[np.bool_], list[bool]]:
    """What is believed, and the votes, of samples handed over in portions of any size."""
    rng, believed, votes, begin = np.random.default_rng(2), [np.zeros(0, dtype=bool)], [], 0
    for end_s in np.arange(1000.0 + PERIOD_S, arrived[-1] + PERIOD_S, PERIOD_S).tolist():
        last = int(np.searchsorted(arrived, end_s))
        while begin < last:
            end = min(last, begin + int(rng.integers(1, most)))
            believed.append(clock.take(t[begin:end], arrived[begin:end]))
            begin = end
        votes.append(clock.vote())
    return np.concatenate(believed), votes


@pytest.mark.parametrize("most", [2, 40, 10**6])
@pytest.mark.parametrize("ppm", [0.0, 100.0, -100.0])
def test_the_first_sample_makes_the_map_and_nothing_moves_it(ppm: float, most: int) -> None:
    _, t, arrived = arrivals(120.0, ppm=ppm)
    clock = ClockMap()
    believed, votes = lived(clock, t, arrived, most)
    assert believed.all()
    assert len(votes) == 24
    assert all(votes)
    assert clock.unbelieved == 0
    assert clock.offset_s == arrived[0] - t[0]


def test_how_samples_are_handed_over_does_not_matter() -> None:
    true, t, arrived = arrivals(40.0)
    rng = np.random.default_rng(3)
    t = np.where(rng.random(len(t)) < 0.2, rng.choice([0.0, 1e9, np.nan, np.inf, 3.0], len(t)), t)
    t[0] = 1000.0 - AHEAD_S
    t[true > 1012.0] += 20.0
    wanted, votes = lived(ClockMap(), t, arrived, most=2)
    assert votes.count(False) == 1
    for most in (5, 100, 10_000):
        believed, again = lived(ClockMap(), t, arrived, most)
        np.testing.assert_array_equal(believed, wanted)
        assert again == votes


def test_each_sample_is_judged_by_itself() -> None:
    """Any of them may be late, ahead or without a time: no other one is believed more or less."""
    _, t, arrived = arrivals(20.0)
    rng = np.random.default_rng(4)
    for _ in range(20):
        wrong = rng.random(len(t)) < rng.choice([0.01, 0.4])
        wrong[0] = False
        t_wrong = t + np.where(wrong, rng.choice([np.nan, np.inf, -1e308, 1e308, -0.99, 0.99, 1.01, -1.1], len(t)), 0.0)
        believed, votes = lived(ClockMap(), t_wrong, arrived)
        assert all(votes)
        late = arrived - t_wrong - (arrived[0] - t[0])
        np.testing.assert_array_equal(believed, np.abs(late) < BAND_S - 2e-6)


@pytest.mark.parametrize("step_s", [-3600.0, -1.5, 1.5, 86400.0])
@pytest.mark.parametrize("when", [1015.0, 1015.5, 1017.5, 1019.9])
def test_a_clock_that_is_set_has_another_map_within_two_votes(step_s: float, when: float) -> None:
    true, t, arrived = arrivals(40.0)
    clock = ClockMap()
    believed, votes = lived(clock, np.where(true > when, t + step_s, t), arrived)
    fallen = votes.index(False)
    assert fallen == (3 if when < 1016.0 else 4)
    assert votes.count(False) == 1
    assert clock.offset_s == pytest.approx(AHEAD_S - step_s, abs=0.05)
    assert not believed[(true > when) & (true < 1000.0 + 5.0 * (fallen + 1) - 0.05)].any()
    assert believed[(true < when) | (true > 1000.0 + 5.0 * (fallen + 1))].all()


@pytest.mark.parametrize("step_s", [-0.5, -0.05, 0.05, 0.5])
def test_a_small_step_is_no_other_clock(step_s: float) -> None:
    true, t, arrived = arrivals(30.0)
    believed, votes = lived(ClockMap(), np.where(true > 1015.0, t + step_s, t), arrived)
    assert all(votes)
    assert believed.all()


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf, 1e308, -1e308, 0.0, 86400.0 * 365 * 60, 7.5e8 + 1008.0])
def test_a_single_wrong_time_is_lost_and_changes_nothing_else(wrong: float) -> None:
    _, t, arrived = arrivals(20.0)
    t_wrong, singles = t.copy(), np.zeros(len(t), dtype=bool)
    singles[7::50] = True
    t_wrong[singles] = wrong
    believed, votes = lived(ClockMap(), t_wrong, arrived)
    assert all(votes)
    assert believed[~singles].all()
    assert not believed[singles & ~(np.abs(t_wrong - t) < 1.1)].any()


@pytest.mark.parametrize("wrong", [0.0, 1e6, 3600.0])
def test_a_first_sample_with_a_wrong_time_makes_no_map_that_stands(wrong: float) -> None:
    _, t, arrived = arrivals(19.9)
    t[0] += wrong + 1.5
    believed, votes = lived(ClockMap(), t, arrived)
    assert votes == [False, True, True, True]
    assert believed[arrived > 1005.0].all()


def test_a_first_sample_without_a_time_makes_no_map() -> None:
    _, t, arrived = arrivals(20.0)
    t[:30] = np.nan
    believed, votes = lived(ClockMap(), t, arrived)
    assert all(votes)
    assert believed[30:].all()
    assert not believed[:30].any()


@pytest.mark.parametrize("unit", [1e3, 1e-3, 1e9, 2.0, 0.5, 0.0, -1.0])
def test_a_clock_that_does_not_run_at_a_second_a_second_has_no_map_for_ten_seconds(unit: float) -> None:
    true, _, arrived = arrivals(60.0)
    _, votes = lived(ClockMap(), (true - 1000.0) * unit, arrived)
    assert not any(one and other for one, other in itertools.pairwise(votes))


@pytest.mark.parametrize("shown", [0.0, -1e10, 1.7e18, 1e300, np.inf])
def test_a_clock_that_stands_still_is_none(shown: float) -> None:
    """Also where a float is too coarse to tell: rows would be made for all of the past."""
    _, _, arrived = arrivals(20.0)
    assert not any(lived(ClockMap(), np.full(len(arrived), shown), arrived)[1])


@pytest.mark.parametrize("times", [(0.0, -1.0), (0.0, -0.5, -1.0), (3.0, 1e6), (0.0, 1e308, np.nan)])
def test_times_that_are_any_are_no_clock(times: tuple[float, ...]) -> None:
    _, _, arrived = arrivals(60.0)
    for seed in range(5):
        t = np.random.default_rng(seed).choice(times, len(arrived))
        assert not any(lived(ClockMap(), t, arrived)[1])


@pytest.mark.parametrize("portion_s", [0.1, 0.25, 0.5, 0.9])
def test_portions_are_no_clock_that_runs_unevenly(portion_s: float) -> None:
    true, t, _ = arrivals(30.0)
    arrived = 1000.0 + np.ceil((true - 999.999) / portion_s) * portion_s
    believed, votes = lived(ClockMap(), t, arrived)
    assert believed.all()
    assert all(votes)


@pytest.mark.parametrize("seconds", [1.5, 4.0, 12.0])
def test_what_waited_is_late_as_far_as_it_waited_and_ends_nothing(seconds: float) -> None:
    true, t, arrived = arrivals(40.0)
    end = 1010.0 + seconds
    waited = (true > 1010.0) & (true < end)
    arrived = np.maximum.accumulate(np.where(waited, end + 1e-4 * (true - 1010.0), arrived))
    believed, votes = lived(ClockMap(), t, arrived)
    assert all(votes)
    assert not believed[waited & (true < end - 1.02)].any()
    assert believed[(true > end - 0.98) | (true < 1010.0)].all()


def test_the_first_samples_may_have_waited() -> None:
    _, t, arrived = arrivals(19.9)
    arrived[:400] = arrived[400]
    clock = ClockMap()
    believed, votes = lived(clock, t, arrived)
    assert votes == [False, True, True, True]
    assert clock.offset_s == pytest.approx(AHEAD_S, abs=0.05)
    assert believed[arrived > 1005.0].all()


SECONDS = np.arange(40) / 40.0
"""Of one second of gaze, its samples' times."""


@pytest.mark.parametrize("how", ["late", "later and later", "over a minute", "two hundred of each", "ahead"])
@pytest.mark.parametrize("begin", [1006.0, 1007.3, 1009.5, 1009.99])
def test_a_second_of_gaze_in_silence_ends_no_map_and_makes_none_that_stands(how: str, begin: float) -> None:
    """Whatever its latencies, and whether or not anything else comes."""
    true, t, arrived = arrivals(120.0)
    late = {"later and later": 1.01 + 0.5 * SECONDS, "over a minute": 60.0 * SECONDS}.get(how, 2.0 + 0.0 * SECONDS)
    second = (begin + SECONDS - AHEAD_S, begin + SECONDS + late)
    if how == "two hundred of each":
        second = (np.repeat(second[0], 200), np.repeat(second[1], 200))
    if how == "ahead":
        second = (second[0] + 3.5, second[1])
    for kept in (true < 1005.0, (true < 1006.0) | (true > 1100.0), (true < begin) | (true >= begin + 1.0)):
        order = np.argsort(np.concatenate((arrived[kept], second[1])), kind="stable")
        times, came = (np.concatenate(pair)[order] for pair in ((t[kept], second[0]), (arrived[kept], second[1])))
        assert all(lived(ClockMap(), times, came)[1])
    clock = ClockMap()
    assert not any(lived(clock, *second)[1])
    assert clock.offset_s is None


def test_two_seconds_and_a_bit_decide() -> None:
    """The control: what a second must not do, three seconds of the clock do."""
    for first, last, falls in ((1006.0, 1007.99, False), (1006.0, 1008.1, True)):
        true, t, arrived = arrivals(15.0)
        kept = (true < 1005.0) | ((true >= first) & (true < last))
        votes = lived(ClockMap(), np.where(true > 1005.0, t - 30.0, t)[kept], arrived[kept])[1]
        assert (False in votes) == falls


def test_before_the_first_samples_nothing_is_known() -> None:
    clock = ClockMap()
    assert clock.offset_s is None
    assert clock.take(np.array([np.nan]), np.array([1.0])).tolist() == [False]
    assert len(clock.take(np.zeros(0), np.zeros(0))) == 0
    assert clock.offset_s is None
    assert clock.unbelieved == 1
