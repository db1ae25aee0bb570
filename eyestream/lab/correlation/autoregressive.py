"""Gaussian autoregressive scores and Laplace noise: a bound from coupling two sessions.

Class. x_{t+1} = m + a x_t + w_t with independent Gaussian w_t, stationary, |a| <= a_max; what is released of chunk t is
the value clipped to a declared range [lowest, highest] plus Laplace noise, epsilon_t = (highest - lowest) / lambda_t.
The secret is the value of one x_t, and both values that are compared lie in the range.

Bound. Run two sessions from x_t = x and x_t = x' with the same w. Their values s chunks later differ by |a|^s |x - x'|,
clipped ones by no more, and so P(outputs | session 1) <= exp(sum of their losses) P(outputs | session 2) for each w;
averaging over w keeps the factor. A stationary Gaussian chain run backward is the same chain. Hence

    epsilon'_t <= sum over s of epsilon_s a_max^|s - t| <= epsilon (1 + a_max) / (1 - a_max).

Nothing of the variance of w enters. Two things are needed: a range for the secret (a value may be a thousand ranges
out, and stays out for long: without it only the plain sum holds), and noise of bounded loss (Gaussian noise has no pure
one).

Chunks of n rows. If rows follow the class, the last row of the secret chunk moves row i of the j-th later chunk by at
most a^((j - 1) n + i) times the range, and all signs and sizes below that can occur because of the clipping. The loss
is the largest L1 norm of the noised coordinates over that box, divided by lambda. Backward the same from its first row.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from eyestream.errors import ConfigError
from eyestream.lab.correlation.chains import MarkovClass

__all__ = ["Autoregressive", "box_loss"]

Array = NDArray[np.float64]

_MOST_SIGNS = 16
_OUTWARD = 1 + 2.0**-40


@dataclass(frozen=True)
class Autoregressive:
    """Stationary Gaussian autoregressive values of order one.

    Attributes
    ----------
    most : a_max, bound of |a| from one release (or row) to the next; margins of a fit are part of it.
    lowest, highest : declared range of the secret, and what values are clipped to.

    Raises
    ------
    ConfigError
        unless 0 <= a_max <= 1 and lowest < highest, both finite.
    """

    most: float
    lowest: float
    highest: float

    def __post_init__(self) -> None:
        if not 0 <= self.most <= 1:
            raise ConfigError(f"a_max: must lie between 0 and 1, not {self.most}")
        if not (np.isfinite([self.lowest, self.highest]).all() and self.lowest < self.highest):
            raise ConfigError(f"range: needs finite lowest < highest, not [{self.lowest}, {self.highest}]")

    def profile(self, epsilons: Sequence[float]) -> Array:
        """(T,) bounds of epsilon' of every chunk, epsilons (T,) the loss of each release over the whole range."""
        spent = np.asarray(epsilons, dtype=np.float64)
        if spent.ndim != 1 or not len(spent) or not (np.isfinite(spent).all() and (spent >= 0).all()):
            raise ConfigError("epsilons: a finite loss, not negative, for every chunk is needed")
        apart = np.abs(np.subtract.outer(np.arange(len(spent)), np.arange(len(spent))))
        bounds: Array = np.minimum(self.most**apart @ spent, spent.sum()) * _OUTWARD
        return bounds

    def limit(self, epsilon: float) -> float:
        """Bound of epsilon' of a session without end; infinite when a_max is 1."""
        return epsilon * (1 + self.most) / (1 - self.most) * _OUTWARD if self.most < 1 else float("inf")

    def chunks(self, analysis: Array, scale: float, own: float, count: int) -> Array:
        """(count,) bounds of epsilon' when rows follow the class and chunks of n rows are released.

        Parameters
        ----------
        analysis
            (M, n) from the rows of a chunk to the coordinates that are noised.
        scale
            lambda of each coordinate.
        own
            Loss of one release about its own chunk.
        count
            Chunks of the session.
        """
        n = analysis.shape[1]
        span = self.highest - self.lowest
        ahead = np.arange(1, n + 1)
        decay = self.most ** (n * np.arange(count - 1))[:, None]
        later = box_loss(analysis, span * decay * self.most**ahead) / scale
        earlier = box_loss(analysis, span * decay * self.most ** ahead[::-1]) / scale
        after = np.concatenate([[0.0], np.cumsum(np.minimum(later, own))])
        before = np.concatenate([[0.0], np.cumsum(np.minimum(earlier, own))])
        total: Array = (own + before + after[::-1]) * _OUTWARD
        return total

    def grid(self, points: int, sd: float, *, a: float | None = None, mean: float | None = None) -> MarkovClass:
        """One chain on `points` values of the range with weights of the Gaussian transition law: a TP2 chain if a >= 0.

        Parameters
        ----------
        points
            Number of states, evenly spaced over the range.
        sd
            Standard deviation of w, in the unit of the range.
        a, mean
            The coefficient, `most` if None; the mean of the values, the middle of the range if None.
        """
        if points < 2 or not sd > 0:
            raise ConfigError(f"grid: needs 2 points or more and a positive sd, not {points} and {sd}")
        a = self.most if a is None else a
        if abs(a) > self.most:
            raise ConfigError(f"a: |{a}| is above a_max = {self.most}")
        mean = (self.lowest + self.highest) / 2 if mean is None else mean
        values = np.linspace(self.lowest, self.highest, points)
        exponent = -((values[None, :] - mean - a * (values[:, None] - mean)) ** 2) / (2 * sd**2)
        weights = np.exp(exponent - exponent.max(axis=1, keepdims=True))
        return MarkovClass.exact(weights / weights.sum(axis=1, keepdims=True))


def box_loss(analysis: Array, sides: Array) -> Array:
    """Largest ||analysis d||_1 over d with 0 <= d_i <= sides_i, for each row of sides (..., n).

    Exact for up to 16 coordinates: for given signs of the coordinates the best d_i is 0 or sides_i. Beyond, the sum of
    the norms of the columns, which is no smaller.
    """
    if len(analysis) > _MOST_SIGNS:
        bound: Array = sides @ np.abs(analysis).sum(axis=0)
        return bound
    signs = np.array(list(product((1.0, -1.0), repeat=len(analysis))))
    exact: Array = (sides @ np.maximum(signs @ analysis, 0.0).T).max(axis=-1)
    return exact
