"""Ours: one code word for each recording, and rows drawn around it from a public model.

**What is released of the raw rows** is one chunk: the mean of the recording, feature by feature, coded by the mechanism
of a joint calibration (k-ary randomised response on a code word). It is epsilon-differentially private for any two
chunks, so for any two recordings: neighbours differ in a whole recording, however long. A recording costs epsilon once.

**Everything else is post-processing.** Rows are drawn around the released level from the calibration's own model of how
rows of one person vary: scores that move from chunk to chunk with the model's poles and covariances, less the part
that stays, and independent residuals.

So levels of a person at a task survive as far as epsilon pays for, and nothing survives of the course of the recording.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eyestream.core.calibration import Calibration, JointTables
from eyestream.core.mechanisms import build
from eyestream.errors import CalibrationError
from eyestream.rim.files.recordings import Recording
from eyestream_lab.corpora.claims import PUBLIC, Promise, exact, of_person
from eyestream_lab.corpora.corpus import Dataset, Part, Survey
from eyestream_lab.corpora.draws import Draws
from eyestream_lab.corpora.streams import built, recordings_of
from eyestream_lab.corpora.system import Unit

Array = NDArray[np.float64]


def mean_chunk(rows: Array, n: int) -> Array:
    """(F, n) the mean of each feature over the rows (m, F) that have it, at every row of a chunk; NaN where none
    has."""
    there = np.isfinite(rows)
    counts = there.sum(axis=0)
    with np.errstate(all="ignore"):
        means = np.where(counts > 0, np.where(there, rows, 0.0).sum(axis=0) / counts, np.nan)
    return np.repeat(means[:, None], n, axis=1)


class Course:
    """How rows of one person vary around their level: the public model of a joint calibration.

    Raises
    ------
    CalibrationError
        when the calibration has no such model, or takes a baseline off.
    """

    def __init__(self, calibration: Calibration) -> None:
        tables = calibration.tables
        if not isinstance(tables, JointTables) or calibration.anchor is not None:
            raise CalibrationError("level-synth needs a joint calibration without a baseline, such as everyday-klt-32")
        self._calibration, self._tables = calibration, tables
        self._active = np.flatnonzero(~calibration.constant)
        self._roots = [_root(own) for own in tables.covariances]

    def rows(self, level: Array, count: int, draws: Draws) -> Array:
        """(count, F) rows around `level` (F,)."""
        calibration, tables, active = self._calibration, self._tables, self._active
        chunks = -(-count // calibration.n)
        modes = (self._scores(chunks, draws) @ tables.expand).reshape(chunks, len(active), -1)
        course = np.concatenate(np.asarray(modes @ tables.modes), axis=1)[:, :count]
        course = course + np.sqrt(tables.residual[active])[:, None] * draws.normal(len(active), count)
        found = np.repeat(calibration.fill[None, :], count, axis=0)
        for row, f in zip(course, active.tolist(), strict=True):
            levels = self._there(f, level[f]) + row * tables.sd[f]
            found[:, f] = np.clip(self._back(f, levels), calibration.lo[f], calibration.hi[f])
        return found

    def _scores(self, chunks: int, draws: Draws) -> Array:
        """(chunks, d) the sum of the components that do not stay, each a first-order process."""
        total = np.zeros((chunks, self._tables.basis.shape[1]))
        for pole, root in zip(self._tables.poles.tolist(), self._roots, strict=True):
            if pole >= 1.0:
                continue
            drawn = draws.normal(*total.shape) @ root.T
            own = drawn[0]
            for i in range(chunks):
                own = own if i == 0 else pole * own + np.sqrt(1.0 - pole**2) * drawn[i]
                total[i] += own
        return total

    def _there(self, f: int, value: float) -> float:
        tables = self._tables
        if tables.knots is None or tables.levels is None:
            return value
        return float(np.interp(value, tables.knots[f], tables.levels[f]))

    def _back(self, f: int, levels: Array) -> Array:
        tables = self._tables
        if tables.knots is None or tables.levels is None:
            return levels
        return np.asarray(np.interp(levels, tables.levels[f], tables.knots[f]))


def _root(covariance: Array) -> Array:
    """R with R R' the covariance."""
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))


@dataclass(frozen=True)
class LevelSynth:
    """One code word for each recording.

    Attributes
    ----------
    calibration
        Joint, without a baseline.
    epsilon
        Of a recording.
    """

    calibration: Calibration
    epsilon: float
    name = "level-synth"
    released_kind = None

    def __post_init__(self) -> None:
        Course(self.calibration)
        build(self.calibration, self.epsilon)

    @property
    def options(self) -> dict[str, object]:
        """Options as given."""
        return {"calibration": self.calibration.content_hash, "epsilon": self.epsilon}

    def units(self, corpus: Dataset[Recording], survey: Survey) -> list[Unit]:
        """A recording each."""
        return recordings_of(corpus, self.calibration, survey)

    def promise(self, corpus: Dataset[Recording], survey: Survey) -> Promise:
        """Pure differential privacy of a person."""
        one = exact("recording", self.epsilon)
        made_up = "How a recording goes on in time is made up: it is not in the data."
        return Promise(of_person(one, corpus.most(), self.name), (made_up,), PUBLIC, (one,))

    def release(
        self, corpus: Dataset[Recording], survey: Survey, unit: Unit, draws: Draws
    ) -> Iterator[tuple[Part, Recording]]:
        """Rows around the released level of each."""
        mechanism, course = built(self.calibration, self.epsilon, draws), Course(self.calibration)
        for part in unit.parts:
            recording = corpus.load(part)
            level = mechanism.release(mean_chunk(recording.features, mechanism.n)).mean(axis=1)
            rows = course.rows(level, len(recording.t), draws)
            yield part, Recording(np.arange(len(rows)) / self.calibration.rate_hz, rows, recording.names)
