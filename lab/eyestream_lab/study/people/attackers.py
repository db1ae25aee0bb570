"""Attackers by name: each takes a gallery and scores every unknown session against every known person.

likelihood
    Knows the mechanism: decodes code words or reads noisy values, and scores their likelihood for each candidate under
    the public law. `words` and `noise_likelihood` have the formulas.
exemplar
    The same, of whose candidates one minute of the released stream is labelled.
exemplar, raw
    The same, who has seen one minute of each candidate's *unreleased* rows.
matcher, lda, nearest, forest
    Know nothing of the mechanism and learn from the labelled released chunks: distance of means, linear discriminants
    with shrunk covariance, the nearest chunk, 100 trees.
spread
    Knows nothing of it either, and compares how much each session moves; see below.
deep
    A dense network on sequences of released chunks; `deep` has it. Needs the extra `deep`.

**Spread** is the attacker for releases without a mean to go by. A session baseline takes off where somebody's
features lie, and not how far they go. Three vectors tell that of a session with T chunks of A features: log of the
standard deviation of the chunks' means, of the mean absolute difference of successive means, and of the standard
deviation within chunks. A fourth tells what moves with what: the logarithm of the covariance matrix of a session's
rows, in the six largest principal axes of the rows of all sessions. Of each kind, the vectors of all sessions that
are there, labelled or not, are standardised and rotated to their six largest principal axes, each divided by the
square root of its singular value, halfway to white. The score of a pair is the sum of the four cosines. Nothing is
learned from names, so nothing can be fitted to few people.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import RandomForestClassifier

from eyestream.core.mechanism import Mechanism
from eyestream.rim.elsewhere import imported
from eyestream_lab.study.classifiers import match_means
from eyestream_lab.study.people.galleries import Chunks, Gallery
from eyestream_lab.study.people.white_box import WhiteBox
from eyestream_lab.study.ways import study_part

Array = NDArray[np.float64]

_AXES = 6
_STRIDE = 8
"""Rows from one that is looked at to the next: neighbours say nearly the same."""
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


WHITE_BOX = ("likelihood", "exemplar", "exemplar, raw")
"""Attackers who know the mechanism."""


def attack(name: str, gallery: Gallery, seed: int) -> Array:
    """Scores (P, P), larger is likelier; unknown sessions first."""
    return ATTACKERS[name](gallery, seed)


def applies(name: str, mechanism: Mechanism | None) -> bool:
    """Whether the attacker can attack releases of `mechanism` (None: raw rows): white boxes must know its law."""
    if name not in WHITE_BOX:
        return True
    return mechanism is not None and study_part(mechanism.name).white_box is not None


def _likelihood(gallery: Gallery, seed: int) -> Array:
    return _white_box(gallery).labelled(gallery, gallery.known)


def _exemplar(gallery: Gallery, seed: int) -> Array:
    return _white_box(gallery).labelled(gallery, [chunks[: gallery.minute] for chunks in gallery.known])


def _raw_exemplar(gallery: Gallery, seed: int) -> Array:
    return _white_box(gallery).seen_raw(gallery)


def _white_box(gallery: Gallery) -> WhiteBox:
    assert gallery.mechanism is not None
    place = study_part(gallery.mechanism.name).white_box
    assert place is not None
    return imported(place, WhiteBox, f"white box of mechanism {gallery.mechanism.name}")


def describe(gallery: Gallery, chunks: NDArray[np.float32]) -> Array:
    """(T, 2 A) of each chunk (F, n): mean of each released feature, and its change from first to second half."""
    own = np.asarray(chunks, np.float64)[:, gallery.active]
    half = own.shape[2] // 2
    change = own[:, :, half:].mean(axis=2) - own[:, :, :half].mean(axis=2)
    return np.concatenate([own.mean(axis=2), change], axis=1)


def _matcher(gallery: Gallery, seed: int) -> Array:
    n = gallery.known[0].shape[2]
    known, unknown = (
        [
            np.asarray(c, np.float64)[:, gallery.active].transpose(0, 2, 1).reshape(-1, len(gallery.active))
            for c in group
        ]
        for group in (gallery.known, gallery.unknown)
    )
    return match_means(known, unknown, n)


def _learned(make: Callable[[Array, NDArray[np.intp]], Callable[[Array], Array]]) -> Callable[[Gallery, int], Array]:
    """An attacker from what learns z-scored chunks (m, 2 A) of people (m,), and scores others."""

    def run(gallery: Gallery, seed: int) -> Array:
        known = [describe(gallery, chunks) for chunks in gallery.known]
        rows = np.concatenate(known)
        mean, sd = rows.mean(axis=0), rows.std(axis=0)
        kept = sd > 0
        who = np.repeat(np.arange(len(known)), [len(own) for own in known])
        score = make((rows - mean)[:, kept] / sd[kept], who)
        scaled = [((describe(gallery, c) - mean)[:, kept] / sd[kept]) for c in gallery.unknown]
        return np.array([score(own).mean(axis=0) for own in scaled])

    return run


def _lda(rows: Array, who: NDArray[np.intp]) -> Callable[[Array], Array]:
    if len(rows) <= who.max() + 1:  # one chunk a person: there is no covariance within people to learn
        return _nearest(rows, who)
    learned = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto").fit(rows, who)

    def score(own: Array) -> Array:
        logs: Array = learned.predict_log_proba(own)
        return np.maximum(logs, -50.0)

    return score


def _nearest(rows: Array, who: NDArray[np.intp]) -> Callable[[Array], Array]:
    def score(own: Array) -> Array:
        squares = (own**2).sum(axis=1)[:, None] + (rows**2).sum(axis=1) - 2 * own @ rows.T
        distance = np.sqrt(np.maximum(squares, 0.0))
        return -np.array([distance[:, who == one].min(axis=1) for one in range(who.max() + 1)]).T

    return score


def _forest(gallery: Gallery, seed: int) -> Array:
    def make(rows: Array, who: NDArray[np.intp]) -> Callable[[Array], Array]:
        probabilities: Callable[[Array], Array] = (
            RandomForestClassifier(100, random_state=seed).fit(rows, who).predict_proba
        )
        return probabilities

    return _learned(make)(gallery, seed)


def _deep(gallery: Gallery, seed: int) -> Array:
    from eyestream_lab.study.people.deep import deep_scores  # noqa: PLC0415  needs an extra

    return deep_scores(gallery, seed)


ATTACKERS: dict[str, Callable[[Gallery, int], Array]] = {
    "likelihood": _likelihood,
    "exemplar": _exemplar,
    "exemplar, raw": _raw_exemplar,
    "matcher": _matcher,
    "lda": _learned(_lda),
    "nearest": _learned(_nearest),
    "forest": _forest,
    "spread": spread_scores,
    "deep": _deep,
}
USUAL = tuple(name for name in ATTACKERS if name != "deep")
"""Those that take seconds, and no extra of their own."""
