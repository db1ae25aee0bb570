"""A judge of tasks, from sessions of public people who said what they did."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eyestream.core.calibration import Calibration
from eyestream.errors import CalibrationError
from eyestream_lab.calibration.corpus import WORDBOOK_MINIMA, Corpus, whole_chunks
from eyestream_lab.words.decision import Judge
from eyestream_lab.words.directions import LabelledSession, remembering_of, residual_rows
from eyestream_lab.words.mechanism import TaskWords
from eyestream_lab.words.tables import WordTables, check_tasks

Array = NDArray[np.float64]

SESSIONS = 10
"""Default sessions of a pseudonym: so many hid simulated people (`tasks/TASKS.md`, section 6)."""

_ORDERS = 8
"""In so many random orders the sessions of each public person are taken, because order decides the residual rows."""


def labelled(
    people: Sequence[Sequence[LabelledSession]], n: int, **options: Any
) -> tuple[Calibration, tuple[str, ...]]:
    """The result of `calibrate_words`, and how often the judge is right on people who did not make it, in words."""
    made = calibrate_words(people, n, **options)
    right, chunks = held_out(people, n, made)
    if not chunks:
        return made, ("too few people to say how often the judge is right on others",)
    words = len({session.task for own in people for session in own})
    return made, (
        f"without noise, on each person while the others calibrate: {right:.2f} of {chunks} chunks have the right "
        f"word, {1 / words:.2f} by chance",
    )


def calibrate_words(
    people: Sequence[Sequence[LabelledSession]],
    n: int,
    *,
    sessions: int = SESSIONS,
    declared: Sequence[str] = WORDBOOK_MINIMA,
    description: str = "labelled recordings given by the user",
) -> Calibration:
    """Calibration of task words.

    Parameters
    ----------
    people
        The sessions of each public person, labelled, at least two of each.
    n
        Rows of a chunk.
    sessions
        Of a pseudonym, the withheld first one included.
    declared
        Names of features that are declared constants: the judge does not read them.
    description
        What the recordings are.

    Raises
    ------
    CalibrationError
        There are too few sessions or tasks, or nothing varies.
    """
    lonely = next((own[0].rows.path for own in people if len(own) < 2), None)
    if lonely is not None:
        raise CalibrationError(f"{lonely}: is the only session of its person; the first of each person is left out")
    remembering = remembering_of([session.rows for own in people for session in own], sessions)
    orders = [_shuffled(own, person, seed) for person, own in enumerate(people) for seed in range(_ORDERS)]
    residuals = [residual for order in orders for residual in residual_rows(order, n, remembering)]
    tasks = np.array([residual.task for residual in residuals])
    check_tasks(np.unique(tasks).tolist())
    corpus = Corpus.of(residuals, n)
    constant = np.isin(corpus.names, list(declared)) | ~corpus.present.any(axis=0) | (corpus.lo == corpus.hi)
    if constant.all():
        raise CalibrationError("no feature varies in the residual rows of the recordings")
    judge = Judge.learned(corpus.chunks.mean(axis=2)[:, ~constant], tasks[corpus.person])
    made = corpus.calibration(
        TaskWords.name,
        WordTables.of(judge, ~constant),
        description=f"{description}: words of {', '.join(judge.tasks)}",
        declared=constant,
        takes_off=remembering,
    )
    hashes = Corpus.of([session.rows for own in people for session in own], n)
    return replace(
        made,
        fingerprints=hashes.fingerprints,
        provenance=replace(made.provenance, people=len(people), recordings=hashes.hashes),
    )


def held_out(people: Sequence[Sequence[LabelledSession]], n: int, calibration: Calibration) -> tuple[float, int]:
    """Share of chunks whose word is right without noise, on each person while the others calibrate, and their number.

    Each person's sessions in the order in which they are given, features and pseudonyms as in `calibration`. Where the
    others have fewer than two people, or a task less, there is nothing to say: (NaN, 0).
    """
    declared = [name for name, constant in zip(calibration.names, calibration.declared, strict=True) if constant]
    right: list[bool] = []
    for i, own in enumerate(people):
        others = [other for j, other in enumerate(people) if j != i]
        if len(others) < 2 or {s.task for other in others for s in other} != {s.task for p in people for s in p}:
            return float("nan"), 0
        made = calibrate_words(others, n, sessions=calibration.sessions, declared=declared)
        mechanism = TaskWords(made, 1.0)
        for residual in residual_rows(own, n, mechanism.remembering):
            words = [mechanism.judged(chunk) for chunk in whole_chunks(residual.features, n)]
            right += [word == residual.task for word in words]
    return (float(np.mean(right)), len(right)) if right else (float("nan"), 0)


def _shuffled(own: Sequence[LabelledSession], person: int, seed: int) -> list[LabelledSession]:
    """The sessions of a person in another order; those of a pseudonym more than it has are left for other orders."""
    return [own[i] for i in np.random.default_rng((seed, person)).permutation(len(own))]
