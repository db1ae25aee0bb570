"""Classification of private features: who a person is, and whatever the labels say."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eyestream_lab.study.classifiers import scorer
from eyestream_lab.study.splits import halves

Array = NDArray[np.float64]

PERSON = "person"
"""The task that needs no labels: first half of each recording against its second half."""


LabelledRecording = tuple[int, int, Array]
"""Class, recording, and rows (m, F)."""

Fold = tuple[Sequence[LabelledRecording], Sequence[LabelledRecording]]
"""Rows to learn from, and rows to test."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one tested recording was classified.

    Attributes
    ----------
    recording : its number.
    windows : of it that were tested.
    right : of these that were put into the right class.
    vote : 1 when the majority of them was, see `vote`.
    """

    recording: int
    windows: int
    right: int
    vote: float


def person_folds(people: Sequence[str], rows: Mapping[int, Array], n: int, stride: int) -> tuple[list[str], list[Fold]]:
    """One fold: the first half of each recording is learned from, the second tested, every `stride`-th row of both.

    Parameters
    ----------
    people, rows
        Of all recordings; (m, F) released rows of those that take part, NaN where a row is withheld.

    Returns
    -------
    The classes and the fold.
    """
    parts = {r: (own[known], own[unknown]) for r, own in rows.items() for known, unknown in [halves(len(own), n)]}
    return session_folds(people, parts, stride)


def session_folds(
    people: Sequence[str], sessions: Mapping[int, tuple[Array, Array]], stride: int
) -> tuple[list[str], list[Fold]]:
    """One fold: the first of two sessions (m, F) of each recording is learned from, the second tested; as above."""
    present = sorted({people[r] for r in sessions})
    train, test = (
        [(present.index(people[r]), r, _seen(own[side][::stride])) for r, own in sessions.items()] for side in (0, 1)
    )
    return present, [(train, test)]


def label_folds(
    people: Sequence[str], labels: Sequence[str], rows: Mapping[int, Array], stride: int
) -> tuple[list[str], list[Fold]]:
    """Leave one person out: every person is classified by what was learned of all others; arguments as above.

    A person without whom fewer than two classes are left is not tested.
    """
    values = sorted({labels[r] for r in rows})
    parts = {r: (values.index(labels[r]), r, _seen(own[::stride])) for r, own in rows.items()}
    folds: list[Fold] = []
    for person in sorted({people[r] for r in rows}):
        train = [part for r, part in parts.items() if people[r] != person]
        if len({label for label, _, _ in train}) > 1:
            folds.append((train, [part for r, part in parts.items() if people[r] == person]))
    return values, folds


def _seen(rows: Array) -> Array:
    """Without rows that are withheld, as those of a baseline are."""
    return rows[np.isfinite(rows).all(axis=1)]


def outcomes(name: str, folds: Sequence[Fold], seed: int) -> list[Outcome]:
    """How the classifier `name` of `CLASSIFIERS` does on every tested recording of every fold."""
    found = []
    for train, test in folds:
        classes = np.concatenate([np.full(len(rows), label) for label, _, rows in train])
        present, renamed = np.unique(classes, return_inverse=True)
        learned = scorer(name, seed, len(classes))
        learned.fit(np.concatenate([rows for _, _, rows in train]), renamed)
        for label, recording, rows in test:
            if not len(rows):  # shorter than a baseline: all of it is withheld
                continue
            predicted = present[np.argmax(learned.scores(rows), axis=1)]
            right = int(np.count_nonzero(predicted == label))
            found.append(Outcome(recording, len(rows), right, vote(predicted, label)))
    return found


def vote(predicted: NDArray[np.intp], label: int) -> float:
    """1 when the majority of the windows says `label`, else 0; a tie of m is right with probability 1 / m.

    Examples
    --------
    >>> vote(np.array([2, 2, 1]), 2), vote(np.array([2, 1]), 2)
    (1.0, 0.5)
    """
    counts = np.bincount(predicted, minlength=label + 1)
    leading = np.flatnonzero(counts == counts.max())
    return float(label in leading) / len(leading)
