"""Maps of features before they are coded: half as they are, half rank-normal; and back.

Many features are skewed, and a quantiser for the normal law spends its points where their values are not. A rank-normal
map alone makes every feature normal, but lets its rare large values weigh as little as their ranks; half of each keeps
both. So a feature x of the corpus, clamped to [lo, hi], becomes

    y(x) = (x - mean) / (2 sd) + q(F(x)) / 2,

F the corpus' distribution function in the middle of its ties, q the quantile function of the standard normal law. y is
held at knots and is linear between them; it rises strictly, so that it can be undone.

Nothing of it bears on privacy: what the randomised response protects is the code word, whatever function made it.
"""

from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

__all__ = ["KNOTS", "RankMap", "rank_knots"]

Array = NDArray[np.float64]

KNOTS = 65
"""Of each feature: quantiles of the corpus, evenly spaced."""


def rank_knots(rows: Array, lo: Array, hi: Array) -> tuple[Array, Array]:
    """Knots (F, KNOTS) of features and their levels (F, KNOTS), from rows (m, F); NaN is missing.

    A feature without spread, or without any value, gets evenly spaced levels: nothing is coded of it.
    """
    knots, levels = np.empty((2, len(lo), KNOTS))
    for f, column in enumerate(rows.T):
        clamped = np.clip(column[np.isfinite(column)], lo[f], hi[f])
        if len(clamped) < 2 or not clamped.std() > 0:
            knots[f] = levels[f] = np.arange(KNOTS, dtype=np.float64)
            continue
        knots[f], levels[f] = _knots(np.sort(clamped))
    return knots, levels


def _knots(ordered: Array) -> tuple[Array, Array]:
    """(KNOTS,) knots and levels of sorted values: their different quantiles, filled up by halving the widest step."""
    points = np.unique(np.quantile(ordered, np.linspace(0, 1, KNOTS)))
    while len(points) < KNOTS:  # ties: a value that stands for many ranks
        widest = int(np.argmax(np.diff(points)))
        points = np.insert(points, widest + 1, (points[widest] + points[widest + 1]) / 2)
    below, upto = np.searchsorted(ordered, points, "left"), np.searchsorted(ordered, points, "right")
    share = (below + upto + 1) / (2 * (len(ordered) + 1))
    normal = np.array([NormalDist().inv_cdf(p) for p in share])
    return points, (points - ordered.mean()) / (2 * ordered.std()) + normal / 2


_NODES = 33


class RankMap:
    """The maps of A features there and back.

    Parameters
    ----------
    knots, levels
        (A, Q), each row rising strictly.
    """

    def __init__(self, knots: Array, levels: Array) -> None:
        self._there = _Lines(knots, levels)
        self._back = _Lines(levels, knots)

    def there(self, values: Array) -> Array:
        """Levels (A, n) of values (A, n)."""
        return self._there(values)

    def back(self, levels: Array) -> Array:
        """Values (A, n) of levels (A, n), inside the knots."""
        return self._back(levels)

    def error_back(self, mean: Array, spread: Array, error: Array) -> Array:
        """(A,) error of values, root mean square, for an error (A,) of their levels.

        Levels are taken for normal of `mean` and `spread` (A,), of which the estimate explains all but the error.
        """
        normal = np.array([NormalDist().inv_cdf((i + 0.5) / _NODES) for i in range(_NODES)])
        normal /= normal.std()
        known = np.sqrt(np.maximum(spread**2 - error**2, 0.0))
        estimate = (mean[:, None] + known[:, None] * normal)[:, :, None]
        truth = estimate + (error[:, None] * normal)[:, None, :]
        there = np.broadcast_to(estimate, truth.shape).reshape(len(mean), -1)
        squared = (self.back(truth.reshape(len(mean), -1)) - self.back(there)) ** 2
        return np.asarray(np.sqrt(squared.mean(axis=1)), np.float64)


class _Lines:
    """Piecewise linear functions of all features at once: feature i on [2 i, 2 i + 1] of one axis."""

    def __init__(self, at: Array, to: Array) -> None:
        shift = 2.0 * np.arange(len(at))[:, None]
        self._low, self._width = at[:, :1], at[:, -1:] - at[:, :1]
        self._shift = shift
        self._at = ((at - self._low) / self._width + shift).reshape(-1)
        self._to = to.reshape(-1)

    def __call__(self, values: Array) -> Array:
        inside = np.clip((values - self._low) / self._width, 0.0, 1.0)
        found: Array = np.interp(inside + self._shift, self._at, self._to)
        return found
