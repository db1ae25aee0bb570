"""Calibration of KLT: the Karhunen-Loeve basis of whole chunks, and how scores move from chunk to chunk.

No epsilon enters here. The settings below were chosen on the people at even positions of the corpus alone, by
cross-validation nested by person (`eyestream/privacy/KLT.md` has the figures); results are flat around them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from eyestream.errors import CalibrationError
from eyestream.privacy.calibration import Calibration, JointTables
from eyestream.privacy.calibration.corpus import WORDBOOK_MINIMA, Corpus, in_sequence
from eyestream.privacy.calibration.persistence import lagged_moments, stable_part
from eyestream.privacy.calibration.redundancy import group_sizes
from eyestream.privacy.joint.maps import RankMap, rank_knots
from eyestream.privacy.joint.schedule import inverse_root

__all__ = ["calibrate_joint"]

Array = NDArray[np.float64]

MODES = 4
"""Cosines over the rows of a chunk: features are 30 s windows, so chunks are smooth."""
SCORES = 24
TAIL = 0.01
"""Share of the corpus' rows clipped at each end: a few events make some features' tails very heavy."""
RANK_TAIL = 0.003
"""The same where features are coded on their maps, which take tails better."""
MEMORY_S = 37.0
"""Beside a stable component, the person's own, there is a transient one that decays by e in so long."""
SHRINKAGE = 0.5
"""Of the person's covariance, known from few people, toward the shape of the whole."""


def calibrate_joint(
    corpus: Corpus,
    *,
    shed_identity: float = 0.0,
    ranks: bool = True,
    anchored: bool = False,
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
        Whether features are coded on their maps (`eyestream.privacy.joint.maps`), those that follow from each other
        weighing as one; False: as version 0.1.0 coded them.
    anchored
        Whether a baseline is taken off each session (`eyestream.privacy.anchor`).
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
    standard = _Standard.mapped(corpus, constant) if ranks else _Standard.of(corpus, constant)
    described = (standard.chunks @ standard.modes.T).reshape(len(standard.chunks), -1)
    pole = float(np.exp(-corpus.n / corpus.rate_hz / MEMORY_S))
    model = _Model.of(described, corpus.person, corpus.index, pole)
    if shed_identity:
        model = model.shed(shed_identity)
    progress(1, 1)
    return corpus.calibration(
        "klt",
        _tables(standard, model, described),
        description=description,
        declared=standard.declared,
        lo=standard.lo,
        hi=standard.hi,
        fill=standard.fill,
        anchor=anchor,
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


@dataclass(frozen=True, eq=False, repr=False)
class _Standard:
    """The corpus' chunks, clipped and standardised, and the figures that this takes; A features vary.

    Attributes
    ----------
    chunks : (N, A, n), 0 where the chunk lacks the feature: the mean of those that have it, which is what such a
        device's chunks are released as.
    present : (N, A).
    modes : (M, n) cosines over the rows.
    active : (A,) indices.
    declared, lo, hi, fill, mean, sd : (F,).
    """

    chunks: Array
    present: NDArray[np.bool_]
    modes: Array
    active: NDArray[np.intp]
    declared: NDArray[np.bool_]
    lo: Array
    hi: Array
    fill: Array
    mean: Array
    sd: Array
    knots: Array | None = None
    levels: Array | None = None

    @classmethod
    def of(cls, corpus: Corpus, declared: NDArray[np.bool_], tail: float = TAIL) -> "_Standard":
        there = corpus.present | ~corpus.present.any(axis=0)  # what nobody has is a constant
        held = np.where(there[:, :, None], corpus.chunks, np.nan)
        rows = held.transpose(0, 2, 1).reshape(-1, len(corpus.names))
        lo, hi = np.nanquantile(rows, [tail, 1 - tail], axis=0)
        clipped = np.clip(rows, lo, hi)
        mean, sd = np.nanmean(clipped, axis=0), np.nanstd(clipped, axis=0)
        sd = np.where(declared | (sd < 1e-9 * (np.abs(mean) + 1e-9)), 0.0, sd)
        active = np.flatnonzero(sd > 0)
        if len(active) == 0:
            raise CalibrationError("every feature of the corpus is constant")
        chunks = np.clip(held[:, active], lo[active][:, None], hi[active][:, None])
        return cls(
            chunks=np.nan_to_num((chunks - mean[active][:, None]) / sd[active][:, None]),
            present=there[:, active],
            modes=_cosines(corpus.n, MODES),
            active=active,
            declared=declared,
            lo=lo,
            hi=hi,
            fill=np.where(sd > 0, mean, np.nanmedian(rows, axis=0)),
            mean=mean,
            sd=sd,
        )

    @classmethod
    def mapped(cls, corpus: Corpus, declared: NDArray[np.bool_]) -> "_Standard":
        """The same of features on their maps, each weighing what its group of near copies has of it."""
        plain = cls.of(corpus, declared, RANK_TAIL)
        there = corpus.present | ~corpus.present.any(axis=0)
        held = np.where(there[:, :, None], corpus.chunks, np.nan)
        rows = np.clip(held.transpose(0, 2, 1).reshape(-1, len(corpus.names)), plain.lo, plain.hi)
        knots, levels = rank_knots(rows, plain.lo, plain.hi)
        active = plain.active
        lines = RankMap(knots[active], levels[active])
        moved = lines.there(rows[:, active].T)
        mean, sd = np.zeros(len(declared)), plain.sd.copy()
        mean[active], sd[active] = np.nanmean(moved, axis=1), np.nanstd(moved, axis=1)
        sd[active] *= np.sqrt(group_sizes(rows[:, active]))
        chunks = lines.there(np.nan_to_num(held[:, active]).transpose(1, 0, 2).reshape(len(active), -1))
        chunks = chunks.reshape(len(active), len(held), corpus.n).transpose(1, 0, 2)
        chunks = (chunks - mean[active][:, None]) / sd[active][:, None]
        fill = plain.fill.copy()
        fill[active] = lines.back(mean[active][:, None])[:, 0]
        return replace(
            plain,
            chunks=np.where(plain.present[:, :, None], chunks, 0.0),
            fill=fill,
            mean=mean,
            sd=sd,
            knots=knots,
            levels=levels,
        )


def _tables(standard: _Standard, model: "_Model", described: Array) -> JointTables:
    """The figures, from `described` (N, A M), the modes of the chunks."""
    modes, count = standard.modes, len(standard.chunks)
    back = (described @ model.basis @ model.expand).reshape(count, len(standard.active), MODES) @ modes
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
        covariances=model.covariances,
        weights=model.weights,
        residual=residual,
        knots=standard.knots,
        levels=standard.levels,
    )


@dataclass(frozen=True, eq=False)
class _Model:
    """Scores of standardised modes: how to take them, back, their covariances and the weights of their parts.

    `pole` is how much of the transient part is left a chunk later.
    """

    basis: Array
    expand: Array
    covariances: Array
    weights: Array
    pole: float

    @classmethod
    def of(cls, described: Array, person: NDArray[np.intp], index: NDArray[np.intp], pole: float) -> "_Model":
        """The leading directions of `described` (N, A M), and how scores move from chunk to chunk."""
        values, vectors = np.linalg.eigh(described.T @ described / len(described))
        count = min(SCORES, len(values))
        basis = np.ascontiguousarray(vectors[:, ::-1][:, :count])
        names = np.unique(person)
        people = len(names)
        own = [in_sequence(described[person == one] @ basis, index[person == one]) for one in names]
        whole = np.diag(values[::-1][:count])
        stable = _person_covariance(own, whole, pole)
        transient = _positive(whole - stable, 1e-3)
        # The corpus mean is an estimate from so many people: a new person lies that much further from it.
        return cls(basis, basis.T, np.stack([stable * (people + 1) / (people - 1), transient]), np.ones(2), pole)

    def shed(self, weight: float) -> "_Model":
        """The same reduced to the score that serves the shed target best.

        Of unit-variance scores h s, that with the largest h (Cv Cv + Cu Cu / (1 + W)^2) h': what it explains of the
        transient part and, with its weight, of the stable one. `expand` becomes the regression of the modes on it.
        """
        stable, transient = self.covariances
        whole = stable + transient
        white = inverse_root(whole)
        values, vectors = np.linalg.eigh(white @ (transient @ transient + stable @ stable / (1 + weight) ** 2) @ white)
        keep = vectors[:, [int(np.argmax(values))]].T @ white
        onto = whole @ keep.T @ np.linalg.inv(keep @ whole @ keep.T)
        return _Model(
            basis=self.basis @ keep.T,
            expand=(self.expand.T @ onto).T,
            covariances=keep @ self.covariances @ keep.T,
            weights=np.array([1 / (1 + weight), 1.0]),
            pole=self.pole,
        )


def _cosines(n: int, count: int) -> Array:
    """(count, n) orthonormal: the leading vectors of the discrete cosine transform."""
    modes = np.cos(np.pi * np.arange(count)[:, None] * (np.arange(n) + 0.5) / n)
    orthonormal: Array = modes / np.linalg.norm(modes, axis=1, keepdims=True)
    return orthonormal


def _person_covariance(own: list[Array], whole: Array, pole: float) -> Array:
    """(d, d) covariance of the stable part, from scores (T, d) of each, and the covariance of all, diagonal.

    What does not decay of the lagged moments, made positive, and shrunk toward the shape of the whole.
    """
    stable = _positive(stable_part(lagged_moments(own), pole), 0.0)
    share = float(np.clip(np.trace(stable) / np.trace(whole), 0.02, 0.9))
    return (1 - SHRINKAGE) * stable + SHRINKAGE * share * whole


def _positive(matrix: Array, floor: float) -> Array:
    """Symmetric `matrix` with every eigenvalue at least `floor` times its largest, and at least 0."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    positive: Array = (vectors * np.maximum(values, floor * values.max())) @ vectors.T
    return positive
