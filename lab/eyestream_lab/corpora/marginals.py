"""Task-based marginals (David-John, Butler, Jain, ETRA 2022), as published and with a guarantee.

Each feature is cut into 30 buckets of equal width. Each task has a histogram of each feature over all people. A
released row draws every feature independently from its histogram, uniformly inside the bucket.

**As published (`marginals-pd`) nothing is promised.** A drawn row is put to the test of plausible deniability
(`eyestream_lab.corpora.deniability`). But its probability does not depend on any seed record: all records are of
one class, and the test passes whenever the task has k of them, whatever gamma is. So this code does not run it. The
histograms, and the ranges that are read from the data, are released without noise.

**With noise (`marginals-noised`)** ranges are those of a public calibration. A person gives each histogram the shares
of their own rows, which sum to 1. Neighbouring corpora differ in all recordings of one person. With F features and T
tasks the person's shares are a vector of non-negative numbers of L2 norm at most sqrt(F T), and two such vectors are at
most sqrt(2 F T) apart. Rounded Gaussian noise makes all histograms together (epsilon, delta)-differentially private.
Rows are drawn from them alone: post-processing.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from eyestream.core.calibration import Calibration
from eyestream.core.kinds import DifferentialPrivacy, NoClaim
from eyestream.errors import ConfigError
from eyestream.rim.files.recordings import Recording
from eyestream_lab.corpora.claims import PERSON, PUBLIC, Promise, exact
from eyestream_lab.corpora.corpus import Dataset, Part, Survey
from eyestream_lab.corpora.deniability import check_deniability
from eyestream_lab.corpora.draws import Draws
from eyestream_lab.corpora.rounded_gaussian import SIGMA, RoundedGaussian, gaussian_sigma
from eyestream_lab.corpora.streams import check_calibration
from eyestream_lab.corpora.system import Unit, tasks_of

Array = NDArray[np.float64]

BUCKETS = 30


def shares_of(rows: Array, lo: Array, hi: Array) -> Array:
    """(F, 30) share of a recording's rows (m, F) in each bucket of [lo, hi]; values outside count at the ends.

    A feature without any value gets equal shares.
    """
    width = np.where(hi > lo, hi - lo, 1.0)
    with np.errstate(all="ignore"):
        bucket = np.clip(np.floor((rows - lo) / width * BUCKETS), 0, BUCKETS - 1)
    found = np.full((rows.shape[1], BUCKETS), 1.0 / BUCKETS)
    for f in range(rows.shape[1]):
        own = bucket[np.isfinite(rows[:, f]), f].astype(np.intp)
        if len(own):
            found[f] = np.bincount(own, minlength=BUCKETS) / len(own)
    return found


def sampled_rows(histograms: Array, lo: Array, hi: Array, count: int, draws: Draws) -> Array:
    """`count` rows (count, F), each value drawn from its feature's histogram (F, 30), uniform inside the bucket."""
    positive = np.maximum(histograms, 0.0)
    empty = positive.sum(axis=1, keepdims=True) <= 0
    positive = np.where(empty, 1.0, positive)
    below = np.cumsum(positive, axis=1) / positive.sum(axis=1, keepdims=True)
    uniform = draws.uniform(2, count, len(lo))
    bucket = np.stack([np.searchsorted(below[f], uniform[0, :, f], side="right") for f in range(len(lo))], axis=1)
    place = (np.minimum(bucket, BUCKETS - 1) + uniform[1]) / BUCKETS
    return np.asarray(lo + place * (hi - lo))


@dataclass(frozen=True)
class MarginalsPD:
    """Histograms as published.

    Attributes
    ----------
    k, gamma
        Of the test that always passes; gamma above 1.
    """

    k: int
    gamma: float = 2.0
    name = "marginals-pd"
    released_kind = None

    def __post_init__(self) -> None:
        check_deniability(self.k, self.gamma, self.name)

    @property
    def options(self) -> dict[str, object]:
        """Options as given."""
        return {"k": self.k, "gamma": self.gamma}

    def units(self, corpus: Dataset[Recording], survey: Survey) -> list[Unit]:
        """A task each; the test needs k records."""
        survey.check_rate()
        for task in corpus.tasks:
            if sum(survey.extents[part].rows for part in corpus.of_task(task)) < self.k:
                raise ConfigError(f"{corpus.folder}: task {task} has fewer than {self.k} rows")
        return tasks_of(corpus)

    def promise(self, corpus: Dataset[Recording], survey: Survey) -> Promise:
        """None."""
        always = "the published test of plausible deniability passes for every draw, as no draw depends on one record"
        return Promise(NoClaim(always), ("Histograms and ranges of the features are released without noise.",), PUBLIC)

    def release(
        self, corpus: Dataset[Recording], survey: Survey, unit: Unit, draws: Draws
    ) -> Iterator[tuple[Part, Recording]]:
        """Rows from the task's histograms; two passes, one recording in memory at a time."""
        lo, hi = np.full(len(survey.names), np.inf), np.full(len(survey.names), -np.inf)
        for part in unit.parts:
            rows = corpus.load(part).features
            lo, hi = np.fmin(lo, np.fmin.reduce(rows)), np.fmax(hi, np.fmax.reduce(rows))
        lo, hi = np.where(np.isfinite(lo), lo, 0.0), np.where(np.isfinite(hi), hi, 0.0)
        total = np.zeros((len(lo), BUCKETS))
        for part in unit.parts:
            total += shares_of(corpus.load(part).features, lo, hi) * survey.extents[part].rows
        yield from _drawn(survey, unit.parts, (lo, hi), total, draws)


@dataclass(frozen=True)
class MarginalsNoised:
    """With noise on every histogram.

    Attributes
    ----------
    calibration
        Public ranges of the features.
    epsilon, delta
        Of all recordings of one person together.
    """

    calibration: Calibration
    epsilon: float
    delta: float
    name = "marginals-noised"
    released_kind = None

    def __post_init__(self) -> None:
        gaussian_sigma(self.epsilon, self.delta, 1.0, BUCKETS)

    @property
    def options(self) -> dict[str, object]:
        """Options as given."""
        made = self.calibration.content_hash
        return {"calibration": made, "epsilon": self.epsilon, "delta": self.delta}

    def units(self, corpus: Dataset[Recording], survey: Survey) -> list[Unit]:
        """A task each."""
        check_calibration(self.calibration, corpus, survey)
        self._step(corpus)
        return tasks_of(corpus)

    def promise(self, corpus: Dataset[Recording], survey: Survey) -> Promise:
        """Approximate differential privacy of a person."""
        return Promise(
            DifferentialPrivacy(exact("person", self.epsilon, self.delta), PERSON),
            ("Features are drawn independently: how they go together, and their course, are not released.",),
            PUBLIC,
        )

    def _step(self, corpus: Dataset[Recording]) -> float:
        """Step of the integers that noise is added to, in shares of a person."""
        counts = int((~self.calibration.constant).sum()) * len(corpus.tasks)
        return gaussian_sigma(self.epsilon, self.delta, float(np.sqrt(2.0 * counts)), counts * BUCKETS) / SIGMA

    def release(
        self, corpus: Dataset[Recording], survey: Survey, unit: Unit, draws: Draws
    ) -> Iterator[tuple[Part, Recording]]:
        """Rows from the task's noisy histograms; one recording in memory at a time."""
        lo, hi = self.calibration.lo, self.calibration.hi
        active = np.flatnonzero(~self.calibration.constant)
        step = self._step(corpus)
        total = np.zeros((len(lo), BUCKETS), dtype=np.int64)
        for part in unit.parts:  # towards 0, so that a person's norm does not grow
            total += np.trunc(shares_of(corpus.load(part).features, lo, hi) * ((1.0 - 2.0**-40) / step)).astype(
                np.int64
            )
        noise = draws.draw(RoundedGaussian(len(active) * BUCKETS)).reshape(len(active), BUCKETS)
        histograms = np.ones((len(lo), BUCKETS))
        histograms[active] = (total[active] + noise) * step
        survey = replace(survey, declared_hz=self.calibration.rate_hz)
        for part, drawn in _drawn(survey, unit.parts, (lo, hi), histograms, draws):
            drawn.features[:, self.calibration.constant] = self.calibration.fill[self.calibration.constant]
            yield part, drawn


def _drawn(
    survey: Survey, parts: tuple[Part, ...], bounds: tuple[Array, Array], histograms: Array, draws: Draws
) -> Iterator[tuple[Part, Recording]]:
    """For each person as many rows as their recording has."""
    for part in parts:
        rows = survey.extents[part].rows
        t = np.arange(rows) / survey.rate_hz
        yield part, Recording(t, sampled_rows(histograms, *bounds, rows, draws), survey.names)
