"""Balls around points: they enclose, and the smallest one is the smallest."""

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from eyestream_lab.calibration.per_feature import covering_ball, diameter, enclosing_ball, enclosing_l1_ball

Array = NDArray[np.float64]


def brute_force(points: Array) -> float:
    """Smallest enclosing circle in the plane: through two points or three."""
    best = math.inf
    candidates = [(points[i] + points[j]) / 2 for i, j in combinations(range(len(points)), 2)]
    for i, j, k in combinations(range(len(points)), 3):
        a, b = points[j] - points[i], points[k] - points[i]
        matrix = 2 * np.stack([a, b])
        if abs(np.linalg.det(matrix)) > 1e-9:
            candidates.append(points[i] + np.linalg.solve(matrix, [a @ a, b @ b]))
    for centre in candidates:
        best = min(best, float(np.linalg.norm(points - centre, axis=1).max()))
    return best


@pytest.mark.parametrize("seed", range(8))
def test_the_smallest_circle(seed: int) -> None:
    points = np.random.default_rng(seed).normal(size=(12, 2))
    centre, radius = enclosing_ball(points)
    assert radius == pytest.approx(brute_force(points), rel=2e-6)
    assert np.linalg.norm(points - centre, axis=1).max() <= radius


@pytest.mark.parametrize("m", [2, 3, 8, 32])
def test_the_regular_simplex_needs_jungs_bound(m: int) -> None:
    points = np.eye(m + 1)  # a regular simplex of edge sqrt(2) in m dimensions
    centre, radius = enclosing_ball(points)
    assert radius == pytest.approx(math.sqrt(m / (m + 1)), rel=1e-6)
    np.testing.assert_allclose(centre, 1 / (m + 1), atol=1e-3)
    assert radius == pytest.approx(diameter(points, 2) * math.sqrt(m / (2 * (m + 1))), rel=1e-6)


@pytest.mark.parametrize("offset", [0.0, 1e6, 1e9])
def test_known_balls_wherever_they_lie(offset: float) -> None:
    """Also where the squares of the coordinates are far larger than those of the distances."""
    two = np.array([[0.0, 0.0, 0.0], [0.0, 6.0, 0.0]]) + offset
    assert enclosing_ball(two)[1] == pytest.approx(3.0, rel=1e-6)
    assert diameter(two, 2) == pytest.approx(6.0, rel=1e-6)
    points = np.random.default_rng(0).normal(size=(100, 16))
    assert enclosing_ball(points + offset)[1] == pytest.approx(enclosing_ball(points)[1], rel=1e-5)
    assert diameter(points + offset, 2) == pytest.approx(diameter(points, 2), rel=1e-5)


def test_degenerate_sets() -> None:
    point = np.array([[1.0, 2.0]])
    assert enclosing_ball(point)[1] == 0.0
    assert enclosing_ball(np.repeat(point, 5, axis=0))[1] == 0.0
    assert enclosing_l1_ball(np.repeat(point, 5, axis=0))[1] == 0.0
    assert diameter(point, 2) == diameter(point, 1) == 0.0
    twice = np.repeat(np.array([[0.0, 0.0], [2.0, 0.0]]), 20, axis=0)
    assert enclosing_ball(twice)[1] == pytest.approx(1.0, rel=1e-6)


@settings(max_examples=60)
@given(st.integers(1, 40), st.integers(1, 12), st.integers(0, 10**6), st.floats(0.0, 3.0))
def test_balls_enclose_and_keep_jungs_bounds(count: int, m: int, seed: int, tails: float) -> None:
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(count, m)) * np.exp(tails * rng.normal(size=(count, 1)))
    centre, radius = enclosing_ball(points)
    assert np.linalg.norm(points - centre, axis=1).max() <= radius
    largest = diameter(points, 2)
    assert largest <= 2 * radius * (1 + 1e-9)
    assert 2 * radius <= math.sqrt(2) * largest * (1 + 2e-6)
    centre, radius = enclosing_l1_ball(points)
    assert np.abs(points - centre).sum(axis=1).max() <= radius * (1 + 1e-12)
    assert diameter(points, 1) <= 2 * radius * (1 + 1e-9)


@pytest.mark.parametrize("order", [1, 2])
def test_diameter_is_the_largest_of_all_pairs(order: int) -> None:
    points = np.random.default_rng(1).normal(size=(30, 5))
    pairs = [np.linalg.norm(a - b, ord=order) for a, b in combinations(points, 2)]
    assert diameter(points, order) == pytest.approx(max(pairs))


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("coverage", [0.5, 0.95])
def test_a_covering_ball_holds_its_share_and_no_more(order: int, coverage: float) -> None:
    points = np.random.default_rng(2).normal(size=(400, 6))
    centre, radius = covering_ball(points, coverage, order)
    np.testing.assert_allclose(centre, points.mean(axis=0))
    share = (np.linalg.norm(points - centre, ord=order, axis=1) <= radius).mean()
    assert coverage <= share < coverage + 0.01


def test_a_taxicab_ball_is_not_far_from_the_smallest() -> None:
    """The cross-polytope's own corners: radius 1, diameter 2."""
    corners = np.concatenate([np.eye(6), -np.eye(6)])
    assert enclosing_l1_ball(corners)[1] == pytest.approx(1.0)
    points = np.random.default_rng(3).normal(size=(50, 6))
    assert 2 * enclosing_l1_ball(points)[1] < 1.5 * diameter(points, 1)
