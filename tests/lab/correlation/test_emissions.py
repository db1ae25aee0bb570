"""Output laws: largest log-ratios, and that no other output tells more than the listed ones."""

import math

import numpy as np
import pytest

from eyestream.errors import ConfigError
from eyestream_lab.correlation.emissions import laplace, response
from tests.lab.correlation.small_worlds import chunk_emission, withheld


def test_laplace_log_ratio_is_the_supremum_over_outputs():
    rng = np.random.default_rng(0)
    points, scales = rng.normal(size=(4, 2)), np.array([0.5, 2.0])
    emission = laplace(points, scales)
    grid = np.stack(np.meshgrid(*[np.linspace(-5, 5, 201)] * 2), axis=-1).reshape(-1, 2)
    logs = -(np.abs(grid[:, None, :] - points) / scales).sum(axis=2)
    largest = (logs[:, :, None] - logs[:, None, :]).max(axis=0)
    np.testing.assert_allclose(emission.log_ratio, largest, atol=1e-12)


def test_no_real_output_tells_more_than_the_listed_ones():
    rng = np.random.default_rng(1)
    for coordinates in (1, 2):
        points = rng.normal(size=(4, coordinates))
        emission = laplace(points, 0.7)
        assert emission.complete
        missed = 0
        for _ in range(60):
            g, p, q = rng.dirichlet(np.full(4, 0.5), 3)
            anywhere = rng.uniform(-3, 3, (3000, coordinates))
            logs = -(np.abs(anywhere[:, None, :] - points) / 0.7).sum(axis=2)
            best = max(np.log(np.exp(row) * g @ p / (np.exp(row) * g @ q)) for row in emission.outputs)
            ends = [emission.outputs[i] for i in np.argsort(np.ptp(emission.outputs, axis=1))[-2:]]
            only_ends = max(np.log(np.exp(row) * g @ p / (np.exp(row) * g @ q)) for row in ends)
            found = np.log((np.exp(logs) * g) @ p / ((np.exp(logs) * g) @ q)).max()
            assert found <= best + 1e-12
            missed += found > only_ends + 1e-6
        assert missed > 5  # the outermost outputs alone would not do


def test_many_coordinates_have_a_log_ratio_and_possible_outputs():
    points = np.random.default_rng(2).normal(size=(3, 40))
    emission = laplace(points, 2.0)
    assert not emission.complete
    np.testing.assert_allclose(emission.log_ratio, np.abs(points[:, None] - points).sum(axis=2) / 2.0)
    np.testing.assert_allclose(emission.outputs, -emission.log_ratio)  # an output at each state's own point


def test_randomised_response_is_the_law_of_its_words():
    """Three states, words 0, 0, 1 of four: p(j | y) = (1 - rho) [j = word] + rho / 4."""
    epsilon = 1.3
    rho = 4 / (math.exp(epsilon) + 3)
    words = np.array([0, 0, 1])
    law = (1 - rho) * (words[None, :] == np.arange(4)[:, None]) + rho / 4
    np.testing.assert_allclose(law.sum(axis=0), 1.0)
    emission = response(epsilon, np.array([[True, True, False], [False, False, True]]))
    logs = np.log(law)
    np.testing.assert_allclose(emission.log_ratio, (logs[:, :, None] - logs[:, None, :]).max(axis=0), atol=1e-12)
    centred = {tuple(np.round(row - row.max(), 9)) for row in emission.outputs}
    assert {tuple(np.round(row - row.max(), 9)) for row in logs} == centred
    assert emission.loss == pytest.approx(epsilon)


def test_inputs_that_ramp_cost_dcfpa_the_whole_epsilon():
    """Loss of DCFPA, k = 1: a level costs little, a ramp as long as the ball of differences allows costs epsilon."""
    for n, of_a_level in ((2, 0.316), (4, 0.139), (32, 0.016)):
        ball = math.sqrt(4 * n - 3)
        level, ramp = np.ones(n), np.arange(1, n + 1) * ball / math.sqrt(n)
        assert np.linalg.norm(np.diff(ramp, prepend=0.0)) == pytest.approx(ball)
        emission = chunk_emission(np.stack([0 * level, level, ramp]), 1.0, differences=True)
        assert emission.log_ratio[0, 1] == pytest.approx(of_a_level, abs=5e-4)
        assert emission.log_ratio[0, 2] == pytest.approx(1.0)


def test_bad_laws_are_refused_by_name():
    with pytest.raises(ConfigError, match="scales: a Laplace scale must be positive"):
        laplace(np.zeros((2, 2)), np.array([1.0, 0.0]))
    with pytest.raises(ConfigError, match=r"points: finite \(S, M\) coordinates"):
        laplace(np.array([[0.0], [np.nan]]), 1.0)
    with pytest.raises(ConfigError, match="epsilon: must be positive, not 0"):
        response(0, np.eye(2, dtype=bool))
    with pytest.raises(ConfigError, match="cells: boolean rows"):
        response(1, np.eye(2))
    assert withheld(3).loss == 0
