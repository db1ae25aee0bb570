"""The tracker's clock on the host's: jitter, drift, clocks that are set, times that are wrong."""

import numpy as np
import pytest
from numpy.typing import NDArray

from eyestream.gaze.clock_map import ClockMap

AHEAD_S = -7.5e8
"""Host's clock minus tracker's."""


def arrivals(
    seconds: float, rate_hz: float = 200.0, *, ppm: float = 0.0, seed: int = 1, delay_s: float = 0.0003
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """(true host's times, tracker's times, arrivals): delays of 0.3 ms and an exponential rest of 4 ms."""
    rng = np.random.default_rng(seed)
    true = 1000.0 + np.arange(round(seconds * rate_hz)) / rate_hz
    t = (true - 1000.0) * (1.0 + ppm * 1e-6) + 1000.0 - AHEAD_S
    arrived = np.maximum.accumulate(true + delay_s + rng.exponential(0.004, len(true)))
    return true, t, arrived


def mapped(
    clock: ClockMap, t: NDArray[np.float64], arrived: NDArray[np.float64], most: int = 40
) -> NDArray[np.float64]:
    rng, parts, begin = np.random.default_rng(2), [], 0
    while begin < len(t):
        end = begin + int(rng.integers(1, most))
        parts.append(clock.take(t[begin:end], arrived[begin:end]))
        begin = end
    return np.concatenate(parts)


@pytest.mark.parametrize("ppm", [0.0, 100.0, -100.0])
@pytest.mark.parametrize("most", [4, 200])
def test_jitter_and_drift_stay_within_5_ms(ppm: float, most: int) -> None:
    true, t, arrived = arrivals(60.0, ppm=ppm)
    clock = ClockMap()
    host = mapped(clock, t, arrived, most)
    settled = true > true[0] + 2.0
    assert np.abs(host - true)[settled].max() < 0.005
    assert (np.diff(host[settled]) > 0.0).all()
    spacing = np.diff(host[settled]) / np.diff(true[settled])
    assert np.abs(spacing - 1.0).max() < 0.35  # a slope over 5 ms, of which the slew of one portion may be a part
    assert clock.steps == clock.unbelieved == 0
    assert clock.drift_ppm == pytest.approx(-ppm, abs=15.0)


@pytest.mark.parametrize("step_s", [-3600.0, -0.5, -0.05, 0.05, 0.5, 86400.0])
def test_a_clock_that_is_set_is_followed_after_a_second(step_s: float) -> None:
    true, t, arrived = arrivals(30.0)
    t = np.where(true > 1015.0, t + step_s, t)
    clock = ClockMap()
    host = mapped(clock, t, arrived)
    late = true > 1015.0 + 2.5
    assert np.abs(host - true)[late].max() < 0.005
    assert np.abs(host - true)[(true > 1002.0) & (true < 1015.0)].max() < 0.005
    assert clock.steps == 1


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf, 1e308, -1e308, 0.0, 86400.0 * 365 * 60, 7.5e8 + 1008.0])
def test_a_single_wrong_time_changes_nothing(wrong: float) -> None:
    true, t, arrived = arrivals(20.0)
    ours, other = ClockMap(), ClockMap()
    t_wrong = t.copy()
    t_wrong[1000::100] = wrong
    right, host = mapped(ours, t, arrived), mapped(other, t_wrong, arrived)
    whole = np.ones(len(t), dtype=bool)
    whole[1000::100] = False
    assert np.abs(host - right)[whole].max() < 0.002
    assert other.steps == 0
    ahead = ~whole & (true > 1000.0) & ~(np.abs(t_wrong - t) < 6.0)
    assert np.isnan(host[ahead]).all()


@pytest.mark.parametrize("unit", [1e3, 1e-3, 1e9, 0.0, -1.0])
def test_a_clock_that_does_not_run_at_a_second_a_second_is_not_believed(unit: float) -> None:
    true, _, arrived = arrivals(20.0)
    clock = ClockMap()
    host = mapped(clock, (true - 1000.0) * unit, arrived)
    late = true > 1001.0
    err = np.abs(host - true)[late]
    assert np.isnan(host[late]).mean() > 0.5 or np.nanmin(err) > 0.02
    assert clock.steps == 0


def test_a_burst_that_waited_is_no_step_and_keeps_its_times() -> None:
    true, t, arrived = arrivals(20.0)
    arrived = np.where((true > 1010.0) & (true < 1011.5), 1011.5 + 1e-4 * (true - 1010.0), arrived)
    arrived = np.maximum.accumulate(arrived)
    clock = ClockMap()
    host = mapped(clock, t, arrived)
    assert np.abs(host - true)[true > 1002.0].max() < 0.005
    assert clock.steps == 0


def test_the_first_samples_may_have_waited() -> None:
    true, t, arrived = arrivals(10.0)
    arrived[:20] = arrived[20]
    host = mapped(ClockMap(), t, arrived)
    assert np.abs(host - true)[true > 1001.5].max() < 0.005


def test_before_the_first_sample_nothing_is_known() -> None:
    clock = ClockMap()
    assert clock.offset_s is None
    assert clock.drift_ppm is None
    assert clock.tracker_s(5.0) == 5.0
    assert np.isnan(clock.take(np.array([np.nan]), np.array([1.0]))).all()
    assert len(clock.take(np.zeros(0), np.zeros(0))) == 0
