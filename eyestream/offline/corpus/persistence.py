"""How much of a figure stays with a person, and how much is forgotten from chunk to chunk."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["FORGETTING", "lagged_moments", "staying_part"]

Array = NDArray[np.float64]

FORGETTING = 0.5
"""Pole of what a person forgets, a chunk."""

_MOST_LAGS = 20


def lagged_moments(people: Sequence[Array]) -> Array:
    """(L, d, d) moments E s_t s_(t+lag)' of scores (T, d) of each person, symmetrised, for lags 0 .. 20 at most."""
    shortest = min(len(scores) for scores in people)
    moments = []
    for lag in range(min(_MOST_LAGS, shortest - 1) + 1):
        total = sum((s[: len(s) - lag].T @ s[lag:] for s in people), np.zeros((people[0].shape[1],) * 2))
        moment = total / sum(len(s) - lag for s in people)
        moments.append((moment + moment.T) / 2)
    return np.array(moments)


def staying_part(moments: Array) -> Array:
    """The part of `moments` (L, ...) that does not decay: stays + FORGETTING^lag forgets, entry by entry.

    Least squares, lag 0 counting three times. With a single lag nothing can be told apart and nothing stays.
    """
    if len(moments) == 1:
        return np.zeros_like(moments[0])
    lag = np.arange(len(moments))
    weight = np.sqrt(np.where(lag == 0, 3.0, 1.0))[:, None]
    design = np.stack([np.ones(len(lag)), FORGETTING**lag], axis=1)
    fitted = np.linalg.lstsq(design * weight, moments.reshape(len(lag), -1) * weight, rcond=None)[0][0]
    stays: Array = fitted.reshape(moments.shape[1:])
    return stays
