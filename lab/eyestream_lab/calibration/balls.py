"""Balls around the signals of a corpus."""

import numpy as np
from numpy.typing import NDArray

__all__ = ["covering_ball", "diameter", "enclosing_ball", "enclosing_l1_ball"]

Array = NDArray[np.float64]


def covering_ball(points: Array, coverage: float, order: int) -> tuple[Array, float]:
    """Mean of `points` (N, m) and the `coverage`-quantile of their distances to it in the L1 (1) or L2 (2) norm."""
    centre = points.mean(axis=0)
    distances = np.linalg.norm(points - centre, ord=order, axis=1)
    return centre, float(np.quantile(distances, coverage, method="higher"))


def enclosing_ball(points: Array, tolerance: float = 1e-6) -> tuple[Array, float]:
    """Smallest Euclidean ball that encloses `points` (N, m): centre (m,), radius.

    The dual is a concave quadratic over the simplex; away-step Frank-Wolfe (Wolfe 1970; Yildirim, SIAM J. Optim. 19(3),
    2008, for this problem) converges linearly. The radius returned is the largest distance to the centre, so the ball
    encloses whatever the accuracy; it exceeds the smallest one by at most the relative `tolerance`.
    """
    given, middle = points, points.mean(axis=0)
    points = points - middle  # distances come from differences of squares, which must not be large beside them
    squares = np.einsum("ij,ij->i", points, points)
    far = int(np.argmax(_distances(points, squares, points[0])))
    weights = np.zeros(len(points))
    weights[[far, int(np.argmax(_distances(points, squares, points[far])))]] = 0.5
    weights /= weights.sum()
    centre = weights @ points
    for _ in range(20_000):
        distances = _distances(points, squares, centre)
        dual = float(weights @ distances)  # squared radius from below
        outer = int(np.argmax(distances))
        inner = int(np.argmin(np.where(weights > 0, distances, np.inf)))
        if dual <= 0 or distances[outer] <= dual * (1 + tolerance) ** 2:
            break
        if distances[outer] - dual >= dual - distances[inner]:
            step = 0.5 * (distances[outer] - dual) / distances[outer]  # exact line search toward the farthest point
            vertex = outer
        else:
            most = weights[inner] / (1 - weights[inner]) if weights[inner] < 1 else np.inf
            gap = dual - distances[inner]
            step = -min(0.5 * gap / distances[inner], most) if distances[inner] > 0 else -most
            vertex = inner
        weights *= 1 - step
        weights[vertex] = max(weights[vertex] + step, 0.0)
        centre = weights @ points
    centre += middle
    return centre, float(np.linalg.norm(given - centre, axis=1).max())


def enclosing_l1_ball(points: Array, rounds: int = 400) -> tuple[Array, float]:
    """A small L1 ball that encloses `points` (N, m), by the subgradient method: centre (m,), radius.

    Encloses always; how near it is to the smallest one is seen by 2 radius / diameter, which cannot be below 1.
    """
    centre = (points.max(axis=0) + points.min(axis=0)) / 2
    best, radius = centre, np.inf
    for turn in range(rounds):
        distances = np.abs(points - centre).sum(axis=1)
        far = int(np.argmax(distances))
        if distances[far] < radius:
            best, radius = centre, float(distances[far])
        centre = centre + (points[far] - centre) * (0.5 / (turn + 2))
    return best, radius


def diameter(points: Array, order: int) -> float:
    """Largest distance between two of `points` (N, m) in the L1 (1) or L2 (2) norm."""
    if order == 2:
        points = points - points.mean(axis=0)
        squares = np.einsum("ij,ij->i", points, points)
        return float(np.sqrt(max(_distances(points, squares, p).max() for p in points)))
    return float(max(np.abs(points - p).sum(axis=1).max() for p in points))


def _distances(points: Array, squares: Array, centre: Array) -> Array:
    """Squared distances of `points` to `centre`, not negative."""
    return np.maximum(squares - 2 * (points @ centre) + centre @ centre, 0.0)
