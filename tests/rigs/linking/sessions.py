"""Attackers who compare two released sessions: are they of one person?

All but the first two learn from the released sessions of other people, the *background*, whose names they know.

distance
    Of the mean released rows, feature by feature in standard deviations of the background.
cosine
    Between them, about the background's mean.
scatter
    Likelihood ratio of a Gaussian law of persons and one of sessions within a person, in the axes in which the
    background's released sessions vary most.
scatter, tasks known
    The same of means less the mean of their task in the background.
spread
    Distance of the logarithms of how far the session's chunks lie from each other.
forest
    100 trees on what two sessions differ by and on their products, from the background's pairs.

A person's sessions are of different tasks in the recordings that we have, so that "another task" alone would tell.
Pairs of two people are of different tasks too, unless `every` is asked for.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestClassifier

from tests.rigs.linking.pairs import area

__all__ = ["SESSION_ATTACKERS", "SeenSession", "link_sessions"]

Array = NDArray[np.float64]

_AXES = 6


@dataclass(frozen=True, eq=False)
class SeenSession:
    """What was released of one session, (C, F, n) chunks, and whose it is; attackers look at chunks and tasks alone."""

    person: str
    task: str
    chunks: Array

    @property
    def mean(self) -> Array:
        """(F,) of the released rows."""
        return np.asarray(self.chunks.mean(axis=(0, 2)))

    @property
    def spread(self) -> Array:
        """(F,) logarithm of the standard deviation of the chunks' means."""
        return np.asarray(np.log(self.chunks.mean(axis=2).std(axis=0) + 1e-9))


Pairs = NDArray[np.intp]
Seen = Sequence[SeenSession]


def link_sessions(groups: Sequence[Seen], background: Seen, *, every: bool = False) -> dict[str, float]:
    """Area of each attacker over the pairs inside each group; `every`: pairs of two people may be of the same task."""
    found: dict[str, list[Array]] = {name: [] for name in SESSION_ATTACKERS}
    truth = []
    for group in groups:
        pairs = _pairs(group, every=every)
        truth.append(_same(group, pairs))
        for name, attacker in SESSION_ATTACKERS.items():
            found[name].append(attacker(group, pairs, background))
    return {name: area(np.concatenate(scores), np.concatenate(truth)) for name, scores in found.items()}


def _pairs(group: Seen, *, every: bool) -> Pairs:
    places = [
        (i, j)
        for j, other in enumerate(group)
        for i, one in enumerate(group[:j])
        if one.task != other.task or (every and one.person != other.person)
    ]
    return np.array(places, dtype=np.intp)


def _same(group: Seen, pairs: Pairs) -> NDArray[np.bool_]:
    return np.array([group[i].person == group[j].person for i, j in pairs.tolist()])


def _standard(group: Seen, background: Seen) -> Array:
    """(S, F) means of sessions in standard deviations of the background's, at most 3; what never varies is left out."""
    known = np.array([seen.mean for seen in background])
    sd = known.std(axis=0)
    kept = sd > 0
    apart = (np.array([seen.mean for seen in group]) - known.mean(axis=0))[:, kept] / sd[kept]
    return np.asarray(np.clip(apart, -3.0, 3.0))


def _distance(group: Seen, pairs: Pairs, background: Seen) -> Array:
    return _near(_standard(group, background), pairs)


def _near(points: Array, pairs: Pairs) -> Array:
    return np.asarray(-((points[pairs[:, 0]] - points[pairs[:, 1]]) ** 2).sum(axis=1))


def _cosine(group: Seen, pairs: Pairs, background: Seen) -> Array:
    points = _standard(group, background)
    points = points / np.maximum(np.linalg.norm(points, axis=1, keepdims=True), 1e-12)
    return np.asarray((points[pairs[:, 0]] * points[pairs[:, 1]]).sum(axis=1))


def _spread(group: Seen, pairs: Pairs, background: Seen) -> Array:
    return _near(np.array([seen.spread for seen in group]), pairs)


def _scatter(group: Seen, pairs: Pairs, background: Seen) -> Array:
    return _likelihood(_standard(group, background), pairs, _standard(background, background), background)


def _scatter_of_tasks(group: Seen, pairs: Pairs, background: Seen) -> Array:
    known, points = _standard(background, background), _standard(group, background)
    tasks, own = np.array([seen.task for seen in background]), np.array([seen.task for seen in group])
    known, points = known.copy(), points.copy()
    for task in np.unique(tasks):
        mean = known[tasks == task].mean(axis=0)
        known[tasks == task] -= mean
        points[own == task] -= mean
    return _likelihood(points, pairs, known, background)


def _likelihood(points: Array, pairs: Pairs, known: Array, background: Seen) -> Array:
    """Log ratio under persons N(0, B) and sessions N(0, W) about them, as the background has them."""
    axes = np.linalg.svd(known, full_matrices=False)[2][:_AXES]
    known, points = known @ axes.T, points @ axes.T
    person = np.array([seen.person for seen in background])
    names = np.unique(person)
    centres = np.array([known[person == name].mean(axis=0) for name in names])
    own = known - centres[np.searchsorted(names, person)]
    within = own.T @ own / max(len(known) - len(names), 1)
    within += 0.1 * np.trace(within) / len(within) * np.eye(len(within))
    each = len(known) / len(names)
    centred = centres - centres.mean(axis=0)
    between = centred.T @ centred / max(len(names) - 1, 1) - within / each
    values, vectors = np.linalg.eigh(between)
    between = (vectors * np.maximum(values, 0.01 * np.trace(within) / len(within))) @ vectors.T
    whole = np.block([[between + within, between], [between, between + within]])
    alone = np.linalg.inv(between + within)
    both = np.linalg.inv(whole)
    stacked = np.concatenate([points[pairs[:, 0]], points[pairs[:, 1]]], axis=1)
    together = np.einsum("pi,ij,pj->p", stacked, both, stacked)
    apart = sum(np.einsum("pi,ij,pj->p", points[side], alone, points[side]) for side in pairs.T)
    return np.asarray(apart - together)


def _forest(group: Seen, pairs: Pairs, background: Seen) -> Array:
    known = _pairs(background, every=False)
    truth = _same(background, known)
    learned = RandomForestClassifier(100, min_samples_leaf=5, class_weight="balanced", random_state=0)
    learned.fit(_described(_standard(background, background), known), truth)
    return np.asarray(learned.predict_proba(_described(_standard(group, background), pairs))[:, 1])


def _described(points: Array, pairs: Pairs) -> Array:
    one, other = points[pairs[:, 0]], points[pairs[:, 1]]
    return np.concatenate([np.abs(one - other), one * other], axis=1)


SESSION_ATTACKERS: dict[str, Callable[[Seen, Pairs, Seen], Array]] = {
    "distance": _distance,
    "cosine": _cosine,
    "scatter": _scatter,
    "scatter, tasks known": _scatter_of_tasks,
    "spread": _spread,
    "forest": _forest,
}
