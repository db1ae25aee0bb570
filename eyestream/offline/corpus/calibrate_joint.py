"""Calibration of KLT: the Karhunen-Loeve basis of whole chunks, and how scores move from chunk to chunk.

No epsilon enters here. The settings below were chosen on the people at even positions of the corpus alone, by
cross-validation nested by person (`eyestream/privacy/KLT.md` has the figures); results are flat around them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version

import numpy as np
from numpy.typing import NDArray

from eyestream.errors import CalibrationError
from eyestream.offline.corpus.calibrate import WORDBOOK_MINIMA, Corpus
from eyestream.offline.corpus.persistence import FORGETTING, lagged_moments, staying_part
from eyestream.privacy.calibration import Calibration, JointTables, Provenance
from eyestream.privacy.schedule import inverse_root

__all__ = ["calibrate_joint"]

Array = NDArray[np.float64]

MODES = 4
"""Cosines over the rows of a chunk: features are 30 s windows, so chunks are smooth."""
SCORES = 24
TAIL = 0.005
"""Share of the corpus' rows clipped at each end: a few events make some features' tails very heavy."""
POLES = (1.0, FORGETTING)
"""A component that stays with the person, and one that forgets by half a chunk."""
SHRINKAGE = 0.5
"""Of the person's covariance, known from few people, toward the shape of the whole."""


def calibrate_joint(
    corpus: Corpus,
    *,
    shed_identity: float = 0.0,
    declared: Sequence[str] = WORDBOOK_MINIMA,
    description: str = "recordings given by the user",
) -> Calibration:
    """Calibration of KLT.

    Parameters
    ----------
    corpus
        At least three people.
    shed_identity
        W, 0 or more. Above 0 the scores are reduced to one, that which best describes what changes within a person
        while what stays with the person weighs 1 / (1 + W), and that part of the estimate is released with this weight:
        the least of |x - x^|^2 + W |the person's part of x^|^2. Measured, not proved, to make people harder to tell
        apart.
    declared
        Names of features that are declared constants.

    Raises
    ------
    CalibrationError
        when `shed_identity` is negative, there are fewer than three people, or chunks are too short for the cosines, or
        nothing varies.
    """
    people = len(corpus.hashes)
    if not 0 <= shed_identity < np.inf:
        raise CalibrationError(f"shed_identity must be 0 or more, not {shed_identity}")
    if people < 3:
        raise CalibrationError(
            f"klt needs the recordings of at least 3 people to tell people from moments, not {people}"
        )
    if corpus.n < MODES:
        raise CalibrationError(f"klt needs chunks of at least {MODES} rows, not {corpus.n}")
    rows = corpus.chunks.transpose(0, 2, 1).reshape(-1, len(corpus.names))
    lo, hi = np.quantile(rows, [TAIL, 1 - TAIL], axis=0)
    clipped = np.clip(rows, lo, hi)
    constant = np.isin(corpus.names, list(declared))
    mean, sd = clipped.mean(axis=0), clipped.std(axis=0)
    sd = np.where(constant | (sd < 1e-9 * (np.abs(mean) + 1e-9)), 0.0, sd)
    active = np.flatnonzero(sd > 0)
    if len(active) == 0:
        raise CalibrationError("every feature of the corpus is constant")
    modes = _cosines(corpus.n, MODES)
    chunks = np.clip(corpus.chunks[:, active], lo[active][:, None], hi[active][:, None])
    standard = (chunks - mean[active][:, None]) / sd[active][:, None]
    described = (standard @ modes.T).reshape(len(standard), -1)
    values, vectors = np.linalg.eigh(described.T @ described / len(described))
    count = min(SCORES, len(values))
    basis = np.ascontiguousarray(vectors[:, ::-1][:, :count])
    own = [described[corpus.person == person] @ basis for person in range(people)]
    stays = _person_covariance(own, np.diag(values[::-1][:count]))
    forgets = _positive(np.diag(values[::-1][:count]) - stays, 1e-3)
    # The corpus mean is an estimate from so many people: a new person lies that much further from it.
    model = _Model(basis, basis.T, np.stack([stays * (people + 1) / (people - 1), forgets]), np.ones(2))
    if shed_identity:
        model = model.shed(shed_identity)
    back = (described @ model.basis @ model.expand).reshape(len(standard), len(active), MODES) @ modes
    residual = np.zeros(len(corpus.names))
    residual[active] = ((standard - back) ** 2).mean(axis=(0, 2))
    return Calibration(
        mechanism="klt",
        names=corpus.names,
        units=("1",) * len(corpus.names),
        rate_hz=corpus.rate_hz,
        n=corpus.n,
        k=None,
        declared=constant,
        lo=lo,
        hi=hi,
        fill=np.where(sd > 0, mean, np.median(rows, axis=0)),
        tables=JointTables(
            mean=mean,
            sd=sd,
            modes=modes,
            basis=model.basis,
            expand=np.ascontiguousarray(model.expand),
            poles=np.array(POLES),
            covariances=model.covariances,
            weights=model.weights,
            residual=residual,
        ),
        provenance=Provenance(
            corpus=description,
            people=people,
            chunks=len(corpus.chunks),
            coverage=None,
            recordings=corpus.hashes,
            made_by=f"eyestream {version('eyestream')}",
        ),
    )


@dataclass(frozen=True, eq=False)
class _Model:
    """Scores of standardised modes: how to take them, back, their covariances and the weights of their parts."""

    basis: Array
    expand: Array
    covariances: Array
    weights: Array

    def shed(self, weight: float) -> "_Model":
        """The same reduced to the score that serves the shed target best.

        Of unit-variance scores h s, that with the largest h (Cv Cv + Cu Cu / (1 + W)^2) h': what it explains of the
        part that forgets and, with its weight, of the part that stays. `expand` becomes the regression of the modes on
        it.
        """
        stays, forgets = self.covariances
        whole = stays + forgets
        white = inverse_root(whole)
        values, vectors = np.linalg.eigh(white @ (forgets @ forgets + stays @ stays / (1 + weight) ** 2) @ white)
        keep = vectors[:, [int(np.argmax(values))]].T @ white
        onto = whole @ keep.T @ np.linalg.inv(keep @ whole @ keep.T)
        return _Model(
            basis=self.basis @ keep.T,
            expand=(self.expand.T @ onto).T,
            covariances=keep @ self.covariances @ keep.T,
            weights=np.array([1 / (1 + weight), 1.0]),
        )


def _cosines(n: int, count: int) -> Array:
    """(count, n) orthonormal: the leading vectors of the discrete cosine transform."""
    modes = np.cos(np.pi * np.arange(count)[:, None] * (np.arange(n) + 0.5) / n)
    orthonormal: Array = modes / np.linalg.norm(modes, axis=1, keepdims=True)
    return orthonormal


def _person_covariance(own: list[Array], whole: Array) -> Array:
    """(d, d) covariance of what stays with a person, from scores (T, d) of each, and the covariance of all, diagonal.

    What does not decay of the lagged moments, made positive, and shrunk toward the shape of the whole.
    """
    stays = _positive(staying_part(lagged_moments(own)), 0.0)
    share = float(np.clip(np.trace(stays) / np.trace(whole), 0.02, 0.9))
    return (1 - SHRINKAGE) * stays + SHRINKAGE * share * whole


def _positive(matrix: Array, floor: float) -> Array:
    """Symmetric `matrix` with every eigenvalue at least `floor` times its largest, and at least 0."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    positive: Array = (vectors * np.maximum(values, floor * values.max())) @ vectors.T
    return positive
