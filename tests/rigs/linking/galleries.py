"""Attackers who know some pseudonyms by name: which of these people is another pseudonym?

They learn from the released chunks of the known pseudonyms, each a person, and score the chunks of the unknown ones,
by the mean rows of a chunk, in standard deviations of the known ones and at most 3. An unknown one's scores are
compared with each other: they are brought to mean 0 and a standard deviation of 1.

lda
    Linear discriminants between the known people, covariance shrunk.
nearest
    The nearest known chunk of each person.
forest
    100 trees.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import RandomForestClassifier

from tests.rigs.linking.pairs import area
from tests.rigs.linking.sessions import SeenSession

__all__ = ["GALLERY_ATTACKERS", "name_pseudonyms"]

Array = NDArray[np.float64]
Places = NDArray[np.intp]
Scores = Callable[[Array], Array]


def name_pseudonyms(galleries: Sequence[tuple[Sequence[SeenSession], Sequence[SeenSession]]]) -> dict[str, float]:
    """Area of each attacker over galleries of known and unknown pseudonyms, one of each person, in the same order."""
    found = {}
    for name, learn in GALLERY_ATTACKERS.items():
        scores, truth = [], []
        for known, unknown in galleries:
            own = _scored(known, unknown, learn)
            scores.append(own.ravel())
            truth.append(np.eye(len(own), dtype=np.bool_).ravel())
        found[name] = area(np.concatenate(scores), np.concatenate(truth))
    return found


def _scored(
    known: Sequence[SeenSession], unknown: Sequence[SeenSession], learn: Callable[[Array, Places], Scores]
) -> Array:
    """(P, P) of unknown pseudonyms against known ones."""
    chunks = [seen.chunks.mean(axis=2) for seen in known]
    rows = np.concatenate(chunks)
    middle, sd = np.median(rows, axis=0), rows.std(axis=0)
    kept = sd > 0

    def standard(own: Array) -> Array:
        return np.asarray(np.clip((own - middle)[:, kept] / sd[kept], -3.0, 3.0))

    score = learn(standard(rows), np.repeat(np.arange(len(known)), [len(own) for own in chunks]))
    each = np.array([score(standard(seen.chunks.mean(axis=2))).mean(axis=0) for seen in unknown])
    each -= each.mean(axis=1, keepdims=True)
    return np.asarray(each / np.maximum(each.std(axis=1, keepdims=True), 1e-12))


def _lda(rows: Array, who: Places) -> Scores:
    learned = LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.3).fit(rows, who)
    return lambda own: np.asarray(np.maximum(learned.predict_log_proba(own), -20.0))


def _nearest(rows: Array, who: Places) -> Scores:
    def score(own: Array) -> Array:
        distance = np.linalg.norm(own[:, None] - rows, axis=2)
        return -np.stack([distance[:, who == one].min(axis=1) for one in range(int(who.max()) + 1)], axis=1)

    return score


def _forest(rows: Array, who: Places) -> Scores:
    learned = RandomForestClassifier(100, random_state=0).fit(rows, who)
    return lambda own: np.asarray(learned.predict_proba(own))


GALLERY_ATTACKERS: dict[str, Callable[[Array, Places], Scores]] = {"lda": _lda, "nearest": _nearest, "forest": _forest}
