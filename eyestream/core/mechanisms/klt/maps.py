"""Maps of features before they are coded: half as they are, half rank-normal; and back.

Many features are skewed, and a quantiser for the normal law spends its points where their values are not. A rank-normal
map alone makes every feature normal, but lets its rare large values weigh as little as their ranks; half of each keeps
both. So a feature x of the corpus, clamped to [lo, hi], becomes

    y(x) = (x - mean) / (2 sd) + q(F(x)) / 2,

F the corpus' distribution function in the middle of its ties, q the quantile function of the standard normal law. y is
held at knots and is linear between them; it rises strictly, so that it can be undone.

Nothing of it bears on privacy: what the randomised response protects is the code word, whatever function made it.
"""

import numpy as np
from numpy.typing import NDArray

from eyestream.core.portable import total

__all__ = ["RankMap"]

Array = NDArray[np.float64]

_ABOVE = (
    0.077506467903, 0.155464251752, 0.234343359372, 0.314653237430, 0.396968071162, 0.481960180872, 0.570447122673,
    0.663462106052, 0.762365392085, 0.869031546346, 0.986187397881, 1.118079117510, 1.271957511515, 1.462020460450,
    1.723415937893, 2.208124417543,
)  # fmt: skip
_NORMAL = np.array([*(-node for node in reversed(_ABOVE)), 0.0, *_ABOVE])
"""Quantiles of the standard normal law in the middle of 33 equal shares, of variance 1; as they are written here, for
each machine would round them in its own way."""


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

        Levels are taken for normal of `mean` and `spread` (A,), of which the estimate explains all but the error. The
        same bits on every processor.
        """
        known = np.sqrt(np.maximum(spread * spread - error * error, 0.0))
        estimate = mean[:, None] + known[:, None] * _NORMAL
        truth = estimate[:, :, None] + (error[:, None] * _NORMAL)[:, None, :]
        off = self.back(truth.reshape(len(mean), -1)).reshape(truth.shape) - self.back(estimate)[:, :, None]
        squared = (off * off).reshape(len(mean), -1)
        return np.asarray(np.sqrt(total(squared.T) / squared.shape[1]), np.float64)


class _Lines:
    """Piecewise linear functions of all features at once: feature i on [2 i, 2 i + 1] of one axis.

    In place of `np.interp`, of whose product and sum some compilers make one operation.
    """

    def __init__(self, at: Array, to: Array) -> None:
        shift = 2.0 * np.arange(len(at))[:, None]
        self._low, self._width = at[:, :1], at[:, -1:] - at[:, :1]
        self._shift = shift
        self._at = ((at - self._low) / self._width + shift).reshape(-1)
        self._to = to.reshape(-1)
        width, self._slope = np.diff(self._at), np.zeros(self._at.shape)
        np.divide(np.diff(self._to), width, out=self._slope[:-1], where=width > 0)

    def __call__(self, values: Array) -> Array:
        inside = np.clip((values - self._low) / self._width, 0.0, 1.0)
        place = inside + self._shift
        line = np.searchsorted(self._at, place, "right") - 1
        found: Array = self._slope[line] * (place - self._at[line]) + self._to[line]
        return found
