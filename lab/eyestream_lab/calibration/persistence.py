"""Stable and transient parts: what of a figure is the person's own, and what changes from chunk to chunk."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from eyestream.core.additive.core import TRANSIENT_POLE

Array = NDArray[np.float64]

_MOST_LAGS = 20


def lagged_moments(people: Sequence[Array]) -> Array:
    """(L, d, d) moments E s_t s_(t+lag)' of scores (T, d) of each person, symmetrised, for lags 0 .. 20 at most.

    A row with NaN is missing: pairs with it are left out.
    """
    here: list[NDArray[np.bool_]] = [np.asarray(np.isfinite(scores).all(axis=1)) for scores in people]
    people = [np.where(there[:, None], scores, 0.0) for scores, there in zip(people, here, strict=True)]
    shortest = min(len(scores) for scores in people)
    moments = []
    for lag in range(min(_MOST_LAGS, shortest - 1) + 1):
        total = sum((s[: len(s) - lag].T @ s[lag:] for s in people), np.zeros((people[0].shape[1],) * 2))
        pairs = sum(int(np.count_nonzero(there[: len(there) - lag] & there[lag:])) for there in here)
        moment = total / max(pairs, 1)
        moments.append((moment + moment.T) / 2)
    return np.array(moments)


def stable_part(moments: Array, pole: float = TRANSIENT_POLE) -> Array:
    """The part of `moments` (L, ...) that does not decay: stable + pole^lag transient, entry by entry.

    Least squares, lag 0 counting three times. With a single lag the parts cannot be separated: the stable one is 0.
    """
    if len(moments) == 1:
        return np.zeros_like(moments[0])
    lag = np.arange(len(moments))
    weight = np.sqrt(np.where(lag == 0, 3.0, 1.0))[:, None]
    design = np.stack([np.ones(len(lag)), pole**lag], axis=1)
    fitted = np.linalg.lstsq(design * weight, moments.reshape(len(lag), -1) * weight, rcond=None)[0][0]
    stable: Array = fitted.reshape(moments.shape[1:])
    return stable
