"""Figures of labelled points for linear discriminants: the mean of each task, and the covariance within tasks."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

SHRINKAGE = 0.5
"""Shrinkage of the covariance within tasks, toward a multiple of the identity."""


def means_and_within(points: Array, tasks: NDArray[np.str_], shrinkage: float) -> tuple[Array, Array]:
    """(K, A) means of the points (N, A) of each task (N,), by name, and (A, A) the covariance within tasks.

    Every task counts alike, however many points it has. `shrinkage` is 0 to 1.
    """
    names = np.unique(tasks)
    means = np.stack([points[tasks == name].mean(axis=0) for name in names])
    within = np.mean([np.atleast_2d(np.cov(points[tasks == name].T, bias=True)) for name in names], axis=0)
    size = len(within)
    return means, (1 - shrinkage) * within + shrinkage * np.trace(within) / size * np.eye(size)
