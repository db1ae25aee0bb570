"""Features that say the same: groups that follow from each other, so that what they say is counted once."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

ALIKE = 0.95
"""Correlation, of either sign, from which on two features count as one."""


def groups_of(rows: Array, alike: float = ALIKE) -> NDArray[np.intp]:
    """(F,) number of each feature's group, 0 .., from rows (m, F) of a public corpus; NaN is missing.

    Features are in one group when a chain of correlations of at least `alike` joins them. A feature without spread is
    a group of its own.
    """
    features = rows.shape[1]
    there = np.isfinite(rows)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(there, rows, 0.0).sum(axis=0) / np.maximum(there.sum(axis=0), 1)
        centred = np.where(there, rows - mean, 0.0)
        both = centred.T @ centred
        squares = (centred**2).T @ there.astype(np.float64)  # of the rows that both have
        close = np.abs(both) >= alike * np.sqrt(squares * squares.T)
    close &= both != 0
    group = np.arange(features, dtype=np.intp)
    for i, j in zip(*np.nonzero(close), strict=True):
        if group[i] != group[j]:
            group[group == max(group[i], group[j])] = min(group[i], group[j])
    numbered: NDArray[np.intp] = np.unique(group, return_inverse=True)[1].astype(np.intp)
    return numbered


def group_sizes(rows: Array, alike: float = ALIKE) -> NDArray[np.intp]:
    """(F,) how many features each one's group has."""
    group = groups_of(rows, alike)
    return np.bincount(group)[group]
