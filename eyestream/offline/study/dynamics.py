"""Estimates of a person's statistic from noisy releases of successive chunks, best in the mean square."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Dynamics", "filtered", "smoothed"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Dynamics:
    """A person's statistic over chunks: person constant ~ N(0, between) plus a process of stationary covariance
    `within`, each step correlated with the last by `persistence`; A features, standardised."""

    between: Array
    within: Array
    persistence: float

    @classmethod
    def of(cls, sequences: list[Array]) -> "Dynamics":
        """From the standardised sequences (T, A) of the people of the corpus."""
        means = np.array([sequence.mean(axis=0) for sequence in sequences])
        inner = [sequence - mean for sequence, mean in zip(sequences, means, strict=True)]
        rows = np.concatenate(inner)
        lagged = sum(float((s[1:] * s[:-1]).sum()) for s in inner)
        squares = sum(float((s[:-1] ** 2).sum()) for s in inner)
        within = rows.T @ rows / max(len(rows) - len(inner), 1)
        return cls(means.T @ means / len(means), within, min(max(lagged / squares, 0.0), 0.99))


def filtered(dynamics: Dynamics, noise: Array, seen: Array) -> tuple[Array, list[tuple[Array, Array, Array, Array]]]:
    """Kalman filter: estimates (T, A) of the statistic from noisy `seen` (T, A), each from the chunks so far.

    The state is (person constant, process). Also returned is what `smoothed` needs: for each chunk the predicted and
    the corrected mean and covariance.
    """
    size = len(noise)
    step = np.diag(np.concatenate([np.ones(size), np.full(size, dynamics.persistence)]))
    zero = np.zeros((size, size))
    drive = np.block([[zero, zero], [zero, (1 - dynamics.persistence**2) * dynamics.within]])
    mean, covariance = np.zeros(2 * size), np.block([[dynamics.between, zero], [zero, dynamics.within]])
    look = np.hstack([np.eye(size), np.eye(size)])
    estimates, history = [], []
    for t, value in enumerate(seen):
        if t:
            mean, covariance = step @ mean, step @ covariance @ step.T + drive
        crossed = covariance @ look.T
        gain = np.linalg.solve(look @ crossed + np.diag(noise), crossed.T).T
        after = mean + gain @ (value - look @ mean)
        corrected = covariance - gain @ crossed.T
        history.append((mean, covariance, after, (corrected + corrected.T) / 2))
        mean, covariance = history[-1][2], history[-1][3]
        estimates.append(look @ mean)
    return np.array(estimates), history


def smoothed(dynamics: Dynamics, noise: Array, seen: Array) -> Array:
    """Rauch-Tung-Striebel smoother: estimates (T, A), each from all chunks."""
    size = len(noise)
    history = filtered(dynamics, noise, seen)[1]
    step = np.diag(np.concatenate([np.ones(size), np.full(size, dynamics.persistence)]))
    mean = history[-1][2]
    estimates = [mean[:size] + mean[size:]]
    for t in range(len(seen) - 2, -1, -1):
        predicted_mean, predicted = history[t + 1][0], history[t + 1][1]
        gain = history[t][3] @ step.T @ np.linalg.pinv(predicted, rcond=1e-10, hermitian=True)
        mean = history[t][2] + gain @ (mean - predicted_mean)
        estimates.append(mean[:size] + mean[size:])
    return np.array(estimates[::-1])
