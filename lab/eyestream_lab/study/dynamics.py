"""Estimates of a person's statistic from noisy releases of successive chunks, best in the mean square."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Dynamics", "Gains", "filtered", "smoothed"]

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


@dataclass(frozen=True, eq=False)
class Gains:
    """What filter and smoother do at each of T chunks: a function of the model, so that one serves all sessions.

    The state is (person constant, process), 2 A numbers.

    Attributes
    ----------
    decay : (2 A,) of the state from chunk to chunk.
    forward : (T, 2 A, A) from what was not expected of a chunk to the state.
    backward : (T - 1, 2 A, 2 A) of the Rauch-Tung-Striebel smoother.
    """

    decay: Array
    forward: Array
    backward: Array

    @classmethod
    def of(cls, dynamics: Dynamics, noise: Array, length: int) -> "Gains":
        """For sessions of up to `length` chunks whose statistic has noise of variance `noise` (A,)."""
        size = len(noise)
        decay = np.concatenate([np.ones(size), np.full(size, dynamics.persistence)])
        zero, look = np.zeros((size, size)), np.hstack([np.eye(size), np.eye(size)])
        drive = np.block([[zero, zero], [zero, (1 - dynamics.persistence**2) * dynamics.within]])
        covariance = np.block([[dynamics.between, zero], [zero, dynamics.within]])
        forward, backward, after = [], [], covariance
        for t in range(length):
            if t:
                covariance = decay[:, None] * after * decay + drive
                backward.append((after * decay) @ np.linalg.pinv(covariance, rcond=1e-10, hermitian=True))
            crossed = covariance @ look.T
            forward.append(np.linalg.solve(look @ crossed + np.diag(noise), crossed.T).T)
            after = covariance - forward[-1] @ crossed.T
            after = (after + after.T) / 2
        return cls(decay, np.array(forward), np.array(backward).reshape(-1, 2 * size, 2 * size))

    def states(self, seen: Array) -> tuple[Array, Array]:
        """Kalman filter: the state (T, 2 A) before and after each of the noisy `seen` (T, A)."""
        size = seen.shape[1]
        before, after = np.zeros((2, len(seen), 2 * size))
        for t, value in enumerate(seen):
            before[t] = self.decay * after[t - 1] if t else 0.0
            after[t] = before[t] + self.forward[t] @ (value - before[t, :size] - before[t, size:])
        return before, after


def filtered(gains: Gains, seen: Array) -> Array:
    """Estimates (T, A) of the statistic from noisy `seen` (T, A), each from the chunks so far."""
    after = gains.states(seen)[1]
    return after[:, : seen.shape[1]] + after[:, seen.shape[1] :]


def smoothed(gains: Gains, seen: Array) -> Array:
    """Rauch-Tung-Striebel smoother: estimates (T, A), each from all chunks."""
    size = seen.shape[1]
    before, after = gains.states(seen)
    for t in range(len(seen) - 2, -1, -1):
        after[t] += gains.backward[t] @ (after[t + 1] - before[t + 1])
    return after[:, :size] + after[:, size:]
