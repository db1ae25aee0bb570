"""Moments of a chunk on the application's clock, beside a simulated truth."""

import numpy as np
import pytest

from eyestream.sdk.chunk_clock import MOST_DRIFT, MOST_POINTS, ChunkClock

LEAST_S = 0.002
STARTED = 12_345.0


def life(drift: float, chunk_s: float, outage: range, seed: int, count: int = 120) -> list[tuple[float, float]]:
    """Error of the last column beyond the shortest delay, and the error that was stated, of each chunk.

    Delays are 2 ms and an exponential time of 0.5 ms on average. Chunks of the `outage` come all at its end, 2 s late.
    """
    rng, clock, found = np.random.default_rng(seed), ChunkClock(), []
    n = 64
    dt = chunk_s / n
    for index in range(count):
        t = (index * n + np.arange(n)) * dt
        truth = STARTED + (1 + drift) * t
        late = 2.0 if index in outage else 0.0
        when, error_s = clock.take(t, truth[-1] + LEAST_S + rng.exponential(0.0005) + late)
        np.testing.assert_allclose(np.diff(when), dt, rtol=2 * MOST_DRIFT)
        found.append((float(when[-1] - truth[-1] - LEAST_S), error_s))
    return found


@pytest.mark.parametrize("drift", [-100e-6, 0.0, 100e-6])
@pytest.mark.parametrize("chunk_s", [1.0, 16.0, 32.0])
@pytest.mark.parametrize("outage", [range(2, 3), range(40, 42)])
def test_moments_are_right_to_five_milliseconds(drift: float, chunk_s: float, outage: range) -> None:
    """With 100 ppm, jitter and an outage of 2 s, early or late in the session. The seeds are fixed."""
    for seed in range(3):
        found = life(drift, chunk_s, outage, seed, count=60)
        assert max(abs(error) for error, _ in found) < 0.005


def test_an_outage_before_the_drift_is_known_costs_the_drift_over_it() -> None:
    """The second chunk is late: 3.2 ms in 32 s, and the jitter of the first chunk."""
    errors = [abs(error) for seed in range(5) for error, _ in life(-100e-6, 32.0, range(1, 2), seed, count=3)]
    assert 0.0032 < max(errors) < 0.006


def test_the_stated_error_holds_for_nearly_all_chunks() -> None:
    found = [pair for seed in range(8) for pair in life(100e-6, 32.0, range(40, 42), seed)]
    assert np.mean([abs(error) <= stated for error, stated in found]) > 0.95
    assert np.median([stated for _, stated in found]) < 0.005


def test_control_following_each_arrival_is_off_by_the_outage() -> None:
    """What `received` less the chunk's length would give."""
    clock = ChunkClock()
    for index in range(3):
        t = 32.0 * index + np.arange(64) / 2
        when, _ = clock.take(t, STARTED + t[-1] + (2.0 if index == 2 else 0.0))
    assert abs(when[-1] - STARTED - t[-1]) < 1e-6


def test_a_late_first_chunk_is_forgotten_with_the_next() -> None:
    clock = ChunkClock()
    first, _ = clock.take(np.array([0.0, 1.0]), 101.0 + 2.0)
    then, _ = clock.take(np.array([2.0, 3.0]), 103.0)
    assert (first[-1], then[-1]) == (103.0, 103.0)


def test_what_is_kept_is_bounded() -> None:
    clock = ChunkClock()
    for index in range(3 * MOST_POINTS):
        clock.take(np.array([float(index)]), float(index))
    assert len(clock._points) == MOST_POINTS
