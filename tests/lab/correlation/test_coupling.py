"""What is claimed of the chunks on one side, against quadrature of the true likelihoods of a scalar."""

import itertools
import math
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

from eyestream.claims.correlation.published import side
from tests.lab.correlation.test_published import CLASS, declared

Array = NDArray[np.float64]

EPSILON = 4.8
STEP_S = -math.log(0.9) * CLASS.time_constant_s  # a_max = 0.9
NODES = np.linspace(-10, 10, 1601)  # a quarter of the smallest sd apart


@cache
def kernel(a: float, sd: float, starts: tuple[float, ...] | None = None) -> Array:
    """Weights of the nodes for the next value, from each start or node."""
    points = NODES if starts is None else np.array(starts)
    density = np.exp(-((NODES[None, :] - a * points[:, None]) ** 2) / (2 * sd**2))
    return density / density.sum(axis=1, keepdims=True)


def likelihoods(starts: Array, a: float, sd: float, outputs: tuple[float, ...]) -> Array:
    """P(outputs | x_t) of values clipped to [-1, 1] with Laplace noise of scale 2 / EPSILON, by a fine quadrature."""
    inner, first = kernel(a, sd), kernel(a, sd, tuple(starts))
    seen = [np.exp(-np.abs(output - np.clip(NODES, -1, 1)) * EPSILON / 2) for output in outputs]
    later = np.ones(len(NODES))
    for likelihood in seen[:0:-1]:
        later = inner @ (likelihood * later)
    return first @ (seen[0] * later)


@pytest.mark.parametrize("sd", [0.05, 0.5])
@pytest.mark.parametrize("a", [0.9, -0.7])
def test_true_likelihoods_stay_within_the_claim(a, sd):
    """Three later releases, and two secrets at the ends of the range: CFPA's claim is for any two of its ball."""
    starts = np.array([-1.0, 0.3, 1.0])
    claimed = side(declared("cfpa"), CLASS, STEP_S, 3)
    worst = np.zeros((3, 3))
    for outputs in itertools.product((-1.0, 0.0, 1.0), repeat=3):
        logs = np.log(likelihoods(starts, a, sd, outputs))
        worst = np.maximum(worst, logs[:, None] - logs[None, :])
    coupled = EPSILON * sum(abs(a) ** s for s in (1, 2, 3)) * np.abs(np.subtract.outer(starts, starts)) / 2
    assert (worst <= coupled + 1e-6).all()
    assert worst.max() <= claimed
    assert worst.max() > (0.95 if sd == 0.05 and a > 0 else 0.3) * coupled.max()
    assert claimed == pytest.approx(EPSILON * (0.9 + 0.9**2 + 0.9**3), rel=1e-3)


def test_a_secret_out_of_range_breaks_the_bound():
    """A value four ranges out keeps the clipped ones at the border: the range of the secret is needed."""
    logs = np.log(likelihoods(np.array([-9.0, 9.0]), 0.9, 0.2, (1.0, 1.0, 1.0)))
    assert logs[1] - logs[0] > side(declared("cfpa"), CLASS, STEP_S, 3) + 1.0
