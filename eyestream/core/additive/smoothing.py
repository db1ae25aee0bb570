"""Smoothing of released chunks over a session, for the mechanisms that code features apart: free post-processing.

Each feature by itself: the mean of a chunk, minus that of the corpus, is u + v_t + noise, u stable within the person
and v transient, its correlation halving from chunk to chunk (variances from the corpus). A Kalman filter estimates
u + v_t from the released chunks of the session; what a released chunk says beyond its mean is shrunk by the gain that
minimises its own expected error. Nothing but released values and public figures enters.
"""

import numpy as np
from numpy.typing import NDArray

__all__ = ["TRANSIENT_POLE", "Smoother"]

Array = NDArray[np.float64]

STEPS = 64
TRANSIENT_POLE = 0.5
"""Correlation of the transient part from a chunk to the next."""
_POLES = np.array([1.0, TRANSIENT_POLE])


class Smoother:
    """Gains of the filter, the same for every session; A features, n rows.

    Parameters
    ----------
    mean
        (A, n) of the corpus' chunks.
    components
        (A, 2) variances of u and v.
    detail
        (A,) variance of a value around the mean of its chunk.
    level_noise, detail_noise
        (A,) variance of the noise in a chunk's mean, and in a value around it.

    Attributes
    ----------
    start : (A, 2) state of the filter before the first chunk: estimates of u and v.
    sd : (A,) expected error of a value late in a session, root mean square.
    """

    def __init__(self, mean: Array, components: Array, detail: Array, level_noise: Array, detail_noise: Array) -> None:
        self.mean = mean
        self.start = np.zeros((len(mean), 2))
        self.detail_gain = (detail / np.maximum(detail + detail_noise, np.finfo(float).tiny))[:, None]
        state = np.zeros((len(mean), 2, 2))
        state[:, [0, 1], [0, 1]] = components
        drive = state * (1 - np.multiply.outer(_POLES, _POLES))
        gains = []
        for turn in range(STEPS):
            if turn:
                state = state * np.multiply.outer(_POLES, _POLES) + drive
            seen = state[:, :, 0] + state[:, :, 1]  # covariance of (u, v) with their sum
            gain = seen / np.maximum(seen[:, 0] + seen[:, 1] + level_noise, np.finfo(float).tiny)[:, None]
            state = state - gain[:, :, None] * seen[:, None, :]
            gains.append(gain)
        self.gains = tuple(gains)
        left = (1 - self.detail_gain[:, 0]) ** 2 * detail + self.detail_gain[:, 0] ** 2 * detail_noise
        unknown = state[:, 0, 0] + state[:, 1, 1] + (state[:, 0, 1] + state[:, 1, 0])
        self.sd = np.sqrt(np.maximum(unknown, 0.0) + left)

    def smooth(self, released: Array, turn: int, state: Array) -> tuple[Array, Array]:
        """Better estimate (A, n) of chunk `turn` of a session from its plain release (A, n), and the state after it."""
        beyond = released - self.mean
        level = beyond.mean(axis=1)
        predicted = state * _POLES if turn else state
        gain = self.gains[min(turn, STEPS - 1)]
        state = predicted + gain * (level - predicted.sum(axis=1))[:, None]
        detail = self.detail_gain * (beyond - level[:, None])
        better: Array = self.mean + state.sum(axis=1)[:, None] + detail
        return better, state
