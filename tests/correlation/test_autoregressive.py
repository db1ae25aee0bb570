"""Coupling bound of Gaussian autoregressive scores, against quadrature of the true likelihoods."""

import itertools
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

from eyestream.errors import ConfigError
from eyestream.lab.correlation.autoregressive import Autoregressive, box_loss
from eyestream.lab.correlation.emissions import fourier_coordinates, fourier_scale

Array = NDArray[np.float64]

RANGE = Autoregressive(0.9, -1.0, 1.0)


NODES = np.linspace(-10, 10, 1601)  # a quarter of the smallest sd apart


@cache
def kernel(a: float, sd: float, starts: tuple[float, ...] | None = None) -> Array:
    """Weights of the nodes for the next value, from each start or node."""
    points = NODES if starts is None else np.array(starts)
    density = np.exp(-((NODES[None, :] - a * points[:, None]) ** 2) / (2 * sd**2))
    return density / density.sum(axis=1, keepdims=True)


def likelihoods(starts: Array, a: float, sd: float, epsilon: float, outputs: tuple[float, ...]) -> Array:
    """P(outputs | x_t) of values clipped to [-1, 1] with Laplace noise of scale 2 / epsilon, by a fine quadrature."""
    inner, first = kernel(a, sd), kernel(a, sd, tuple(starts))
    seen = [np.exp(-np.abs(output - np.clip(NODES, -1, 1)) * epsilon / 2) for output in outputs]
    later = np.ones(len(NODES))
    for likelihood in seen[:0:-1]:
        later = inner @ (likelihood * later)
    return first @ (seen[0] * later)


@pytest.mark.parametrize("sd", [0.05, 0.5])
@pytest.mark.parametrize("a", [0.9, -0.7])
def test_true_likelihoods_stay_within_the_coupled_losses(a, sd):
    epsilon, starts = 4.0, np.array([-1.0, 0.3, 1.0])
    worst = np.zeros((3, 3))
    for outputs in itertools.product((-1.0, 0.0, 1.0), repeat=3):
        logs = np.log(likelihoods(starts, a, sd, epsilon, outputs))
        worst = np.maximum(worst, logs[:, None] - logs[None, :])
    coupled = epsilon * sum(abs(a) ** s for s in (1, 2, 3)) * np.abs(np.subtract.outer(starts, starts)) / 2
    assert (worst <= coupled + 1e-6).all()
    assert worst.max() > (0.95 if sd == 0.05 and a > 0 else 0.3) * coupled.max()
    assert RANGE.profile([epsilon] * 4)[0] == pytest.approx(epsilon + epsilon * (0.9 + 0.9**2 + 0.9**3))


def test_a_secret_out_of_range_breaks_the_bound():
    """A value four ranges out keeps the clipped ones at the border: the range of the secret is needed."""
    logs = np.log(likelihoods(np.array([-9.0, 9.0]), 0.9, 0.2, 4.0, (1.0, 1.0, 1.0)))
    assert logs[1] - logs[0] > 4.0 * (0.9 + 0.9**2 + 0.9**3) + 1.0


def test_profile_and_limit():
    found = RANGE.profile([2.0] * 200)
    assert found[100] == pytest.approx(RANGE.limit(2.0), rel=1e-3)
    assert (found <= RANGE.limit(2.0)).all()
    assert RANGE.limit(2.0) == pytest.approx(2 * 1.9 / 0.1)
    np.testing.assert_allclose(Autoregressive(0.0, 0.0, 1.0).profile([1.0, 2.0, 0.5]), [1.0, 2.0, 0.5])
    np.testing.assert_allclose(Autoregressive(1.0, 0.0, 1.0).profile([1.0, 2.0, 0.5]), 3.5)
    assert Autoregressive(1.0, 0.0, 1.0).limit(1.0) == float("inf")


def test_box_loss_by_all_corners():
    rng = np.random.default_rng(0)
    for rows in (1, 3, 5):
        analysis, sides = rng.normal(size=(rows, 6)), rng.random(6)
        corners = np.array(list(itertools.product((0.0, 1.0), repeat=6))) * sides
        exact = np.abs(corners @ analysis.T).sum(axis=1).max()
        assert box_loss(analysis, sides) == pytest.approx(exact)
    wide = rng.normal(size=(20, 4))
    corners = np.array(list(itertools.product((0.0, 1.0), repeat=4)))
    assert box_loss(wide, np.ones(4)) >= np.abs(corners @ wide.T).sum(axis=1).max()


@pytest.mark.parametrize("differences", [False, True])
def test_chunks_of_rows_by_coupled_rows(differences):
    """Two rows a chunk: losses of the shifts themselves, summed by hand."""
    process, epsilon = Autoregressive(0.5, 0.0, 1.0), 1.0
    analysis = fourier_coordinates(np.eye(2), 1, differences=differences).T
    scale = fourier_scale(2, 1, np.sqrt(5 if differences else 2), epsilon)
    own = box_loss(analysis, np.ones(2)) / scale
    found = process.chunks(analysis, scale, own, 3)
    # ahead the rows move by 1/2, 1/4 | 1/8, 1/16; behind, from the end of a chunk to its beginning, the same
    if differences:  # the last row alone is heard
        expected = np.array([1 + 1 / 4 + 1 / 16, 1 + 1 / 4 + 1 / 2, 1 + 1 / 2 + 1 / 8]) / np.sqrt(10)
    else:
        expected = np.array([2 + 3 / 4 + 3 / 16, 2 + 3 / 4 + 3 / 4, 2 + 3 / 4 + 3 / 16]) / 2
    np.testing.assert_allclose(found, expected)


def test_bad_classes_are_refused_by_name():
    with pytest.raises(ConfigError, match=r"a_max: must lie between 0 and 1, not 1.2"):
        Autoregressive(1.2, 0.0, 1.0)
    with pytest.raises(ConfigError, match="range: needs finite lowest < highest"):
        Autoregressive(0.5, 1.0, 1.0)
    with pytest.raises(ConfigError, match="range"):
        Autoregressive(0.5, float("-inf"), 1.0)
    with pytest.raises(ConfigError, match="epsilons: a finite loss"):
        RANGE.profile([1.0, -1.0])
    with pytest.raises(ConfigError, match="grid: needs 2 points"):
        RANGE.grid(1, 0.1)
    with pytest.raises(ConfigError, match=r"a: \|0.95\| is above a_max = 0.9"):
        RANGE.grid(5, 0.1, a=0.95)
