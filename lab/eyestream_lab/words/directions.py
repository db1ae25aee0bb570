"""Task directions: what of residual rows differs between tasks, learned from public, labelled people.

The scores of a chunk are linear discriminants (Fisher, Annals of Eugenics 7, 1936; Rao, J. R. Stat. Soc. B 10, 1948) of
the mean of its residual rows, standardised as `klt` standardises them: at most one fewer than there are tasks. The
covariance within tasks is shrunk toward a multiple of the identity. All the rest is `klt`: what is made here is a
calibration of `klt` for residual rows, with these directions as its basis. So `klt`'s proof holds for a chunk of
residual rows, whatever the history is: one code word, released by randomised response with the whole epsilon.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from eyestream.core.calibration import Calibration
from eyestream.core.mechanisms.klt import ENTRY
from eyestream.core.mechanisms.klt.books import ScoreBook
from eyestream.errors import CalibrationError
from eyestream.streams import FrontEndMark
from eyestream_lab.calibration.anchors import grid_of
from eyestream_lab.calibration.corpus import WORDBOOK_MINIMA, Corpus, Rows, in_sequence, whole_chunks
from eyestream_lab.calibration.joint import shelved, tables_of
from eyestream_lab.calibration.model import FLOOR, MEMORY_S, Model
from eyestream_lab.calibration.persistence import lagged_moments, stable_part
from eyestream_lab.calibration.row_parts import directed, inverse_root, positive
from eyestream_lab.calibration.standard import RANK_TAIL, Standard
from eyestream_lab.words.classes import SHRINKAGE, means_and_within
from eyestream_lab.words.history import History, Remembering, SessionLevel

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class LabelledSession:
    """One session of a public person, and its task in any words."""

    task: str
    rows: Rows


@dataclass(frozen=True, eq=False)
class ResidualRows:
    """One session less the earlier ones: rows as `eyestream_lab.calibration.corpus.Rows` has them, and its task."""

    task: str
    features: Array
    names: tuple[str, ...]
    units: tuple[str, ...]
    rate_hz: float
    path: str
    front_end: FrontEndMark | None


def remembering_of(recordings: Sequence[Rows], sessions: int, *, drift: float = 0.0, trust: float = 0.0) -> Remembering:
    """The public part of histories, from public recordings: grid and usual spread of every feature.

    Raises
    ------
    CalibrationError
        There is no recording, or a figure is out of range.
    """
    if not recordings:
        raise CalibrationError("histories need at least one public recording")
    rows = np.concatenate([r.features for r in recordings])
    seen = np.where(np.isfinite(rows).any(axis=0), rows, 0.0)
    lo, hi = np.nanquantile(np.where(np.isfinite(seen), seen, np.nan), [RANK_TAIL, 1 - RANK_TAIL], axis=0)
    each = [np.nanvar(np.where(np.isfinite(r.features).any(axis=0), r.features, 0.0), axis=0) for r in recordings]
    usual = np.sqrt(np.median(each, axis=0))
    return Remembering(sessions, grid_of(lo, hi), np.where(usual > 0, usual, 1.0), drift, trust)


def residual_rows(pseudonym: Sequence[LabelledSession], n: int, remembering: Remembering) -> Iterator[ResidualRows]:
    """Residuals of the sessions of a pseudonym, in their order, cut into chunks of `n` rows; none of the first."""
    history = History.begun(remembering)
    for session in pseudonym:
        level, parts, rows = SessionLevel(remembering), [], session.rows
        for chunk in whole_chunks(rows.features, n):
            level.take(chunk)
            if not history.withholds:
                parts.append(history.off(chunk).T)
        if parts:
            features = np.concatenate(parts)
            yield ResidualRows(session.task, features, rows.names, rows.units, rows.rate_hz, rows.path, rows.front_end)
        history = history.after(level)


def calibrate_tasks(
    pseudonyms: Sequence[Sequence[LabelledSession]],
    n: int,
    remembering: Remembering,
    *,
    shrinkage: float = SHRINKAGE,
    books: Sequence[ScoreBook] = (),
    declared: Sequence[str] = WORDBOOK_MINIMA,
    description: str = "labelled recordings given by the user",
) -> Calibration:
    """Calibration of `klt` for residual rows, coded along task directions.

    Parameters
    ----------
    pseudonyms
        Successive sessions of public people. The same sessions may come again in another order.
    n
        Rows of a chunk.
    remembering
        As it will be in use.
    shrinkage
        Of the covariance within tasks, 0 to 1.
    books
        That the leading scores may be coded by; those for more scores than there are, are left out.
    declared
        Names of features that are declared constants.

    Raises
    ------
    CalibrationError
        There are fewer than two tasks in the residual rows, or nothing varies.
    """
    sessions = [residual for one in pseudonyms for residual in residual_rows(one, n, remembering)]
    tasks = np.array([session.task for session in sessions])
    if len(np.unique(tasks)) < 2:
        raise CalibrationError("task directions need sessions of at least two tasks, beside the first of each person")
    corpus = Corpus.of(sessions, n)
    standard = Standard.mapped(corpus, np.isin(corpus.names, list(declared)))
    standard = replace(standard, modes=standard.modes[:1])
    described = (standard.chunks @ standard.modes.T).reshape(len(standard.chunks), -1)
    basis = discriminants(described, tasks[corpus.person], shrinkage)
    tables = tables_of(standard, _model(described, basis, corpus), described)
    fitting = [book for book in books if book.end <= basis.shape[1]]
    if fitting:
        tables = replace(tables, **shelved(fitting))
    return corpus.calibration(
        ENTRY.name,
        tables,
        description=f"{description}: task directions of residual rows",
        declared=standard.declared,
        lo=standard.lo,
        hi=standard.hi,
        fill=standard.fill,
    )


def discriminants(described: Array, tasks: NDArray[np.str_], shrinkage: float) -> Array:
    """(A, d) directions in which tasks (N,) differ most beside what varies within them, best first; d < tasks."""
    means, within = means_and_within(described, tasks, shrinkage)
    white = inverse_root(within)
    _, values, vectors = np.linalg.svd((means - means.mean(axis=0)) @ white, full_matrices=False)
    count = min(len(means) - 1, len(within), int(np.count_nonzero(values > 1e-9 * values[0])))
    return np.ascontiguousarray(directed(white @ vectors[:count].T))


def _model(described: Array, basis: Array, corpus: Corpus) -> Model:
    """The scores as `klt` predicts them: what stays in a session, the task above all, and what changes in it."""
    scores = described @ basis
    whole = positive(scores.T @ scores / len(scores), FLOOR)
    pole = float(np.exp(-corpus.n / corpus.rate_hz / MEMORY_S))
    own = [
        in_sequence(scores[corpus.person == one], corpus.index[corpus.person == one])
        for one in np.unique(corpus.person)
    ]
    stable = positive(stable_part(lagged_moments(own), pole), FLOOR)
    transient = positive(whole - stable, FLOOR)
    expand = np.asarray(np.linalg.solve(whole, scores.T @ described / len(scores)), np.float64)
    return Model(basis, expand, np.stack([stable, transient]), np.ones(2), pole)
