"""Calibration of KLT: the Karhunen-Loeve basis of whole chunks, and how scores move from chunk to chunk.

No epsilon enters here. The settings (`klt.standard` and `.model`) were chosen by cross-validation
nested by person; `eyestream/core/KLT.md` has the figures, and which people they were chosen on. Results are flat
around them.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eyestream.core.calibration import Calibration, JointTables
from eyestream.core.mechanisms.klt.books import ScoreBook
from eyestream.errors import CalibrationError
from eyestream_lab.calibration.corpus import WORDBOOK_MINIMA, Corpus
from eyestream_lab.calibration.model import Model
from eyestream_lab.calibration.shares import shares_of
from eyestream_lab.calibration.standard import MODES, Standard

Array = NDArray[np.float64]


def calibrate_joint(
    corpus: Corpus,
    *,
    shed_identity: float = 0.0,
    ranks: bool = True,
    anchored: bool = False,
    books: Sequence[ScoreBook] = (),
    shares: bool = True,
    declared: Sequence[str] = WORDBOOK_MINIMA,
    description: str = "recordings given by the user",
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Calibration:
    """Calibration of KLT.

    Parameters
    ----------
    corpus
        At least three people.
    shed_identity
        W, 0 or more. Above 0 the scores are reduced to one, that which best describes what changes within a person
        while the stable part weighs 1 / (1 + W), and that part of the estimate is released with this weight:
        the least of |x - x^|^2 + W |the person's part of x^|^2. Measured, not proved, to make people harder to tell
        apart.
    ranks
        Whether features are coded on their maps (`klt.maps`), those that follow from each other
        weighing as one; False: as version 0.1.0 coded them.
    anchored
        Whether a baseline is taken off each session (`eyestream.core.anchor`).
    books
        That the leading scores of features on maps may be coded by (`klt.books`); those for more
        scores than there are, are left out.
    shares
        Whether less is released of the estimate of a feature that some people move far less in than others
        (`klt.shares`). On maps and behind a baseline alone: with levels of people in it, it costs more than it saves.
    declared
        Names of features that are declared constants.
    progress
        Called with (1, 1) when the figures are there.

    Raises
    ------
    CalibrationError
        when `shed_identity` is negative, there are fewer than three people, or chunks are too short for the cosines, or
        nothing varies.
    """
    _check(corpus, shed_identity)
    anchor = None
    if anchored:
        corpus, anchor = corpus.anchored()
    constant = np.isin(corpus.names, list(declared))
    standard = Standard.mapped(corpus, constant) if ranks else Standard.of(corpus, constant)
    described = (standard.chunks @ standard.modes.T).reshape(len(standard.chunks), -1)
    model = Model.of_rows(standard, corpus) if ranks else Model.of(described, corpus)
    if shed_identity:
        model = model.shed(shed_identity)
    tables = tables_of(standard, model, described)
    fitting = [book for book in books if ranks and book.end <= tables.basis.shape[1]]
    if fitting:
        tables = replace(tables, **shelved(fitting))
    if ranks and anchored and shares:
        tables = replace(tables, shares=shares_of(tables, standard, corpus))
    progress(1, 1)
    return corpus.calibration(
        "klt",
        tables,
        description=description,
        declared=standard.declared,
        lo=standard.lo,
        hi=standard.hi,
        fill=standard.fill,
        takes_off=anchor,
    )


def _check(corpus: Corpus, shed_identity: float) -> None:
    people = len(corpus.hashes)
    if not 0 <= shed_identity < np.inf:
        raise CalibrationError(f"shed_identity must be 0 or more, not {shed_identity}")
    if people < 3:
        raise CalibrationError(
            f"klt needs the recordings of at least 3 people to tell people from moments, not {people}"
        )
    if corpus.n < MODES:
        raise CalibrationError(f"klt needs chunks of at least {MODES} rows, not {corpus.n}")


def tables_of(standard: Standard, model: Model, described: Array) -> JointTables:
    """The figures, from `described` (N, A M), the modes of the chunks that `standard` has."""
    modes, count = standard.modes, len(standard.chunks)
    back = (described @ model.basis @ model.expand).reshape(count, len(standard.active), len(modes)) @ modes
    residual = np.zeros(len(standard.mean))
    missed = ((standard.chunks - back) ** 2).mean(axis=2) * standard.present
    residual[standard.active] = missed.sum(axis=0) / standard.present.sum(axis=0)
    return JointTables(
        mean=standard.mean,
        sd=standard.sd,
        modes=modes,
        basis=model.basis,
        expand=np.ascontiguousarray(model.expand),
        poles=np.array([1.0, model.pole]),
        moves=model.moves,
        covariances=model.covariances,
        weights=model.weights,
        residual=residual,
        knots=standard.knots,
        levels=standard.levels,
    )


def shelved(books: Sequence[ScoreBook]) -> dict[str, NDArray[Any]]:
    """At least one book, as fields of `JointTables`."""
    return {
        "book_shapes": np.array([(book.first, book.end, book.bits) for book in books], dtype=np.int64),
        "book_points": np.concatenate([book.points.ravel() for book in books]).astype(np.float16),
        "book_shares": np.concatenate([book.shares for book in books]).astype(np.float32),
        "book_weights": np.concatenate([book.weights for book in books]),
    }
