"""What is done to gaze today: as published, and the mistakes that the texts invite."""

import numpy as np
import pytest
from numpy.typing import NDArray

from eyestream_lab.samples import baselines


def walk(n: int = 300, seed: int = 1) -> NDArray[np.float64]:
    steps: NDArray[np.float64] = np.random.default_rng(seed).normal(0, 0.5, (n, 2))
    return steps.cumsum(axis=0)


def test_nothing_is_claimed() -> None:
    assert baselines.CLAIM == "none"


def test_noise_has_its_standard_deviation_on_both_axes_independently() -> None:
    """40,000 draws: standard errors are 0.5 %, limits 2.5 %."""
    moved = baselines.noisy(np.zeros((40_000, 2)), 10.0, np.random.default_rng(2))
    np.testing.assert_allclose(moved.std(axis=0), 10.0, rtol=0.025)
    assert abs((moved[:, 0] * moved[:, 1]).mean()) < 2.5


def test_temporal_downsampling_keeps_every_kth_and_holding_keeps_the_rate() -> None:
    gaze = walk(10)
    np.testing.assert_array_equal(baselines.every(gaze, 3), gaze[[0, 3, 6, 9]])
    np.testing.assert_array_equal(baselines.held(gaze, 3), gaze[[0, 0, 0, 3, 3, 3, 6, 6, 6, 9]])


def test_cells_at_64_are_6_by_five_and_a_third_degrees() -> None:
    """2160 / 64 is no whole number of rows: rounded, cells would be 5.29 or 5.45 degrees high."""
    angles = np.random.default_rng(3).uniform(-89, 89, (20_000, 2))
    cells = baselines.coarse(angles, 64)
    across, upright = (np.unique(np.round(cells[:, axis], 9)) for axis in (0, 1))
    np.testing.assert_allclose(np.diff(across), 6.0)
    np.testing.assert_allclose(np.diff(upright), 16 / 3)
    assert (cells[:, 0] <= angles[:, 0]).all()
    assert (cells[:, 1] >= angles[:, 1]).all()
    np.testing.assert_array_equal(baselines.coarse(cells + np.array([1e-9, -1e-9]), 64), cells)


def test_weighted_means_weigh_the_newest_most_and_lag_by_a_third() -> None:
    gaze = walk(40)
    expected = (gaze[36:40] * np.array([[1], [2], [3], [4]])).sum(axis=0) / 10
    np.testing.assert_allclose(baselines.weighted(gaze, 4)[-1], expected)
    ramp = np.arange(400.0)[:, None] * [1.0, -1.0]
    np.testing.assert_allclose((ramp - baselines.weighted(ramp, 108))[-1], np.array([107, -107]) / 3)
    np.testing.assert_allclose(
        (ramp - baselines.weighted_twice(ramp, 10, 50))[-1], np.array([9 + 49, -9 - 49]) / 3, rtol=1e-9
    )


def test_a_session_does_not_begin_at_straight_ahead() -> None:
    """Buffers that begin with zeros would draw the first outputs there."""
    np.testing.assert_allclose(baselines.weighted(np.full((20, 2), 15.0), 108), 15.0)


def test_a_kalman_filter_is_nearer_than_what_it_measured_and_waits_out_a_loss() -> None:
    rng = np.random.default_rng(4)
    true = np.stack((np.linspace(-10, 10, 600), 5 * np.sin(np.linspace(0, 3, 600))), axis=1)
    measured = true + rng.normal(0, 1.0, true.shape)
    measured[200:220] = np.nan
    out = baselines.kalman(measured, 0.01, 1.0, 20.0)
    assert np.isnan(out[200:220]).all()
    seen = np.isfinite(out[:, 0])
    assert seen.sum() == 580
    error = np.hypot(*(out - true)[seen][100:].T).mean()
    assert error < 0.5 * np.hypot(*(measured - true)[seen][100:].T).mean()
    for sd, push in ((1e-3, 1e6), (1e6, 1e-9)):
        stiff = baselines.kalman(measured, 0.01, sd, push)
        follows = np.nanmax(np.abs(stiff - measured)) < 0.01
        assert follows == (sd < 1)


@pytest.mark.parametrize("make", [
    lambda g: baselines.every(g, 2), lambda g: baselines.held(g, 2), lambda g: baselines.coarse(g, 8),
    lambda g: baselines.weighted(g, 5), lambda g: baselines.kalman(g, 0.01, 1.0, 100.0),
    lambda g: baselines.noisy(g, 1.0, np.random.default_rng(0)),
])  # fmt: skip
def test_lost_stays_lost_and_nobody_is_no_error(make) -> None:
    gaze = walk(20)
    gaze[4:7] = np.nan
    out = make(gaze)
    assert np.isnan(out).any()
    assert np.isfinite(out[0]).all()
    assert make(gaze[:0]).shape == (0, 2)


def test_settings_that_make_no_sense_are_refused() -> None:
    for make in (
        lambda: baselines.every(walk(3), 0),
        lambda: baselines.noisy(walk(3), np.nan, np.random.default_rng(0)),
        lambda: baselines.kalman(walk(3), 0.0, 1.0, 1.0),
    ):
        with pytest.raises(ValueError, match="above 0"):
            make()
