"""How much somebody moves: the attacker for releases without a mean to go by.

A session baseline takes off where somebody's features lie, and not how far they go. Three vectors tell that of a
session with T chunks of A features: log of the standard deviation of the chunks' means, of the mean absolute difference
of successive means, and of the standard deviation within chunks. Of each kind, the vectors of all sessions that are
there, labelled or not, are standardised and rotated to their six largest principal axes, each divided by the square
root of its singular value, halfway to white. The score of a pair is the sum of the three cosines. Nothing is learned
from names, so nothing can be fitted to few people.
"""

import numpy as np
from numpy.typing import NDArray

from eyestream.offline.study.people.galleries import Chunks, Gallery

__all__ = ["spread_scores"]

Array = NDArray[np.float64]

_AXES = 6
_LEAST = 1e-9
"""Beside what is measured, so that a feature that stands still has a logarithm."""


def spread_scores(gallery: Gallery, seed: int) -> Array:
    """Scores (P, P), larger is likelier; unknown sessions first."""
    known, unknown = ([_told(chunks, gallery.active) for chunks in group] for group in (gallery.known, gallery.unknown))
    people = len(known)
    total = np.zeros((people, people))
    for kind in range(3):
        points = _unit(np.array([session[kind] for session in (*known, *unknown)]))
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


def _unit(vectors: Array) -> Array:
    """(S, c) directions of the (S, A) vectors in their principal axes; 0 where there is nothing to tell apart."""
    sd = vectors.std(axis=0)
    scaled = (vectors - vectors.mean(axis=0)) / np.where(sd > 0, sd, 1.0)
    _, size, axes = np.linalg.svd(scaled, full_matrices=False)
    kept = slice(0, min(_AXES, int(np.count_nonzero(size > _LEAST))))
    points = scaled @ axes[kept].T / np.sqrt(size[kept])
    length = np.linalg.norm(points, axis=1, keepdims=True)
    return np.asarray(points / np.where(length > 0, length, 1.0))
