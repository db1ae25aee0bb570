"""Parts of what features say, row by row: one that stays with a person, and others that each forget at their own pace.

Rows z of a person (standardised) are modelled as z(t) = sum_p y_p(t), independent parts with E y_p(t) y_p(t + h)' = C_p
e^(-h / memory_p); the first memory is endless. The C_p are the positive matrices that come nearest to the lagged
moments of the corpus,

    sum over lags h of w_h |E z(t) z(t + h)' - sum_p C_p e^(-h / memory_p)|^2,

found by going round: each part in turn gets what the others leave, made positive. (The target is convex in all parts
together.) A few matrices of features by features then say how all rows of a chunk hang together, and how chunks follow
each other. That is far less to learn from a few people than the covariance of whole chunks, and it knows that the last
rows of a chunk tell more of the next one than the first rows do.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

MEMORIES_S = (np.inf, 60.0, 15.0)
"""Memories of the parts."""

LAGS_S = tuple(3.0 * i for i in range(10)) + tuple(30.0 + 5.0 * i for i in range(8)) + tuple(range(70, 200, 10))
"""At which moments are compared: closer where more happens."""

ROUNDS = 60
_STRIDE_S = 1.5
"""Seconds between rows that pairs begin at: neighbours say nearly the same."""


def row_moments(people: Sequence[tuple[Array, NDArray[np.bool_]]], rate_hz: float) -> tuple[Array, Array, Array]:
    """Lags (L,) in s, E z(t) z(t + lag)' (L, A, A) made symmetric, and how many pairs each is of (L,).

    Parameters
    ----------
    people
        Standardised rows (m, A) of each person, and where they are there, (m, A).
    """
    stride = max(1, round(_STRIDE_S * rate_hz))
    longest = max(len(rows) for rows, _ in people)
    steps = np.unique(np.rint(np.array(LAGS_S) * rate_hz).astype(np.intp))
    steps = steps[steps < max(2, longest - stride)]
    moments, counts = [], []
    for step in steps:
        total = count = np.zeros((people[0][0].shape[1],) * 2)
        for rows, there in people:
            if len(rows) <= step:
                continue
            held, known = np.where(there, rows, 0.0), there.astype(np.float64)
            total = total + held[: len(rows) - step : stride].T @ held[step::stride]
            count = count + known[: len(rows) - step : stride].T @ known[step::stride]
        moment = total / np.maximum(count, 1)
        moments.append((moment + moment.T) / 2)
        counts.append(count.mean())
    return steps / rate_hz, np.array(moments), np.array(counts)


def fitted_parts(lags_s: Array, moments: Array, counts: Array) -> Array:
    """(P, A, A) C_p of the lagged moments (L, A, A), each weighed by its pairs and by the lags that it stands for."""
    shapes = np.array([_shape(memory, lags_s) for memory in MEMORIES_S])
    weight = counts / counts.max() * (np.gradient(lags_s) if len(lags_s) > 1 else 1.0)
    weight[0] *= 3
    parts = np.zeros((len(shapes), *moments.shape[1:]))
    for _ in range(ROUNDS):
        for p, shape in enumerate(shapes):
            others = np.tensordot(shapes.T, parts, 1) - shape[:, None, None] * parts[p]
            left = np.tensordot(weight * shape, moments - others, 1) / float(weight @ shape**2)
            parts[p] = positive(left, 0.0)
    return parts


def chunk_moments(memory_s: float, modes: Array, rate_hz: float) -> tuple[Array, Array]:
    """(M, M) covariance of the modes (M, n) of one feature's chunk, and E next this', for a part of variance 1."""
    n = modes.shape[1]
    row = np.arange(n)
    same = _shape(memory_s, np.abs(row[:, None] - row) / rate_hz)
    later = _shape(memory_s, (n + row[:, None] - row) / rate_hz)
    return modes @ same @ modes.T, modes @ later @ modes.T


def positive(matrix: Array, floor: float) -> Array:
    """Symmetric `matrix` with every eigenvalue at least `floor` times its largest, and at least 0."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    held: Array = (vectors * np.maximum(values, floor * max(values.max(), 0.0))) @ vectors.T
    return held


def directed(vectors: Array) -> Array:
    """Columns (M, d), each with the sign that makes its component of largest size positive.

    An eigenvector's sign is free, and kernels of linear algebra choose it differently.

    >>> directed(np.array([[0.6, -0.6], [0.8, -0.8]])).tolist()
    [[0.6, 0.6], [0.8, 0.8]]
    """
    largest = np.take_along_axis(vectors, np.abs(vectors).argmax(axis=0)[None], axis=0)
    return vectors * np.where(largest < 0, -1.0, 1.0)


def inverse_root(covariance: Array) -> Array:
    """Symmetric inverse square root, directions of no variance held finite."""
    values, vectors = np.linalg.eigh((covariance + covariance.T) / 2)
    root: Array = (vectors * np.maximum(values, 1e-9 * values.max()) ** -0.5) @ vectors.T
    return root


def _shape(memory_s: float, lag_s: Array) -> Array:
    return np.asarray(np.exp(-np.asarray(lag_s) / memory_s), np.float64)
