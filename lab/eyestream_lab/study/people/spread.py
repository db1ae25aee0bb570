"""How much somebody moves: the attacker for releases without a mean to go by.

A session baseline takes off where somebody's features lie, and not how far they go. Three vectors tell that of a
session with T chunks of A features: log of the standard deviation of the chunks' means, of the mean absolute difference
of successive means, and of the standard deviation within chunks. A fourth tells what moves with what: the logarithm of
the covariance matrix of a session's rows, in the six largest principal axes of the rows of all sessions. Of each kind,
the vectors of all sessions that are there, labelled or not, are standardised and rotated to their six largest principal
axes, each divided by the square root of its singular value, halfway to white. The score of a pair is the sum of the
four cosines. Nothing is learned from names, so nothing can be fitted to few people.
"""

import numpy as np
from numpy.typing import NDArray

from eyestream_lab.study.people.galleries import Chunks, Gallery

__all__ = ["spread_scores"]

Array = NDArray[np.float64]

_AXES = 6
_STRIDE = 8
"""Of rows: neighbours say nearly the same."""
_FLOOR = 1e-3
"""Beside variances of about 1, so that an axis on which a session stands still has a logarithm."""
_LEAST = 1e-9
"""Beside what is measured, so that a feature that stands still has a logarithm."""


def spread_scores(gallery: Gallery, seed: int) -> Array:
    """Scores (P, P), larger is likelier; unknown sessions first."""
    known, unknown = ([_told(chunks, gallery.active) for chunks in group] for group in (gallery.known, gallery.unknown))
    people = len(known)
    total = np.zeros((people, people))
    kinds = [np.array(kind) for kind in zip(*known, *unknown, strict=True)]
    for vectors in (*kinds, _together([*gallery.known, *gallery.unknown], gallery.active)):
        points = _unit(vectors)
        total += points[people:] @ points[:people].T
    return total


def _told(chunks: Chunks, active: NDArray[np.intp]) -> tuple[Array, Array, Array]:
    """(A,) logs: how far the means spread, how far they go from chunk to chunk, and the spread within chunks."""
    own = np.asarray(chunks, np.float64)[:, active]
    means = own.mean(axis=2)
    steps = np.abs(np.diff(means, axis=0)).mean(axis=0) if len(means) > 1 else np.zeros(len(active))
    spread, step, within = (
        np.log(value + _LEAST) for value in (means.std(axis=0), steps, own.std(axis=2).mean(axis=0))
    )
    return spread, step, within


def _together(sessions: list[Chunks], active: NDArray[np.intp]) -> Array:
    """(S, 21) entries of the logarithm of each session's covariance, in the principal axes of all their rows."""
    own = [np.asarray(chunks, np.float64)[:, active, ::_STRIDE] for chunks in sessions]
    rows = [chunks.transpose(0, 2, 1).reshape(-1, len(active)) for chunks in own]
    centred = [one - one.mean(axis=0) for one in rows]
    every = np.concatenate(centred)
    sd = every.std(axis=0)
    scale = np.where(sd > 0, sd, 1.0)
    axes = np.linalg.svd(every / scale, full_matrices=False)[2][:_AXES]
    upper = np.triu_indices(len(axes))
    found = []
    for one in centred:
        placed = one / scale @ axes.T
        values, vectors = np.linalg.eigh(placed.T @ placed / len(placed) + _FLOOR * np.eye(len(axes)))
        found.append(((vectors * np.log(values)) @ vectors.T)[upper])
    return np.array(found)


def _unit(vectors: Array) -> Array:
    """(S, c) directions of the (S, A) vectors in their principal axes; 0 where there is nothing to tell apart."""
    sd = vectors.std(axis=0)
    scaled = (vectors - vectors.mean(axis=0)) / np.where(sd > 0, sd, 1.0)
    _, size, axes = np.linalg.svd(scaled, full_matrices=False)
    kept = slice(0, min(_AXES, int(np.count_nonzero(size > _LEAST))))
    points = scaled @ axes[kept].T / np.sqrt(size[kept])
    length = np.linalg.norm(points, axis=1, keepdims=True)
    return np.asarray(points / np.where(length > 0, length, 1.0))
