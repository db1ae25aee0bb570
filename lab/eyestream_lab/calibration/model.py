"""The model of scores that KLT predicts with: which directions of a chunk they are, and how they move.

Two ways of learning it. From the scores of whole chunks, as version 0.1.0 did. Or from rows, which says more of few
people (`eyestream_lab.calibration.row_parts`).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eyestream_lab.calibration.corpus import Corpus, in_sequence
from eyestream_lab.calibration.persistence import lagged_moments, stable_part
from eyestream_lab.calibration.row_parts import (
    MEMORIES_S,
    chunk_moments,
    directed,
    fitted_parts,
    inverse_root,
    positive,
    row_moments,
)
from eyestream_lab.calibration.standard import Standard

Array = NDArray[np.float64]

SCORES = 24
MEMORY_S = 37.0
"""Beside a stable component, the person's own, there is a transient one that decays by e in so long: of features that
are coded as they are."""
SHRINKAGE = 0.5
"""Shrinkage of the covariances of parts, known from few people, toward the shape of the whole."""
FLOOR = 1e-5
"""Least variance of a direction of a component, beside its largest: what looks back divides by it."""
MOST_LEFT = 0.98
"""Largest share of any direction of the transient component that is left a chunk later."""


@dataclass(frozen=True, eq=False)
class Model:
    """Scores of standardised modes: how to take them, back, their covariances and the weights of their parts.

    `pole` is how much of the transient part is left a chunk later; `moves` (2, d, d), where they are known, say it of
    every direction.
    """

    basis: Array
    expand: Array
    covariances: Array
    weights: Array
    pole: float
    moves: Array | None = None

    @classmethod
    def of(cls, described: Array, corpus: Corpus) -> "Model":
        """The leading directions of `described` (N, A M), and how scores move from chunk to chunk."""
        person, index = corpus.person, corpus.index
        pole = float(np.exp(-corpus.n / corpus.rate_hz / MEMORY_S))
        values, vectors = np.linalg.eigh(described.T @ described / len(described))
        count = min(SCORES, len(values))
        basis = np.ascontiguousarray(directed(vectors[:, ::-1][:, :count]))
        names = np.unique(person)
        people = len(names)
        own = [in_sequence(described[person == one] @ basis, index[person == one]) for one in names]
        whole = np.diag(values[::-1][:count])
        stable = _person_covariance(own, whole, pole)
        transient = positive(whole - stable, 1e-3)
        # The corpus mean is an estimate from so many people: a new person lies that much further from it.
        return cls(basis, basis.T, np.stack([stable * (people + 1) / (people - 1), transient]), np.ones(2), pole)

    @classmethod
    def of_rows(cls, standard: Standard, corpus: Corpus) -> "Model":
        """The same from how rows hang together (`eyestream_lab.calibration.row_parts`)."""
        return Moments.of_rows(standard, corpus).model()

    def shed(self, weight: float) -> "Model":
        """The same reduced to the score that serves the shed target best.

        Of unit-variance scores h s, that with the largest h (Cv Cv + Cu Cu / (1 + W)^2) h': what it explains of the
        transient part and, with its weight, of the stable one. `expand` becomes the regression of the modes on it.
        """
        stable, transient = self.covariances
        whole = stable + transient
        white = inverse_root(whole)
        values, vectors = np.linalg.eigh(white @ (transient @ transient + stable @ stable / (1 + weight) ** 2) @ white)
        keep = directed(vectors[:, [int(np.argmax(values))]]).T @ white
        onto = whole @ keep.T @ np.linalg.inv(keep @ whole @ keep.T)
        covariances, moves = keep @ self.covariances @ keep.T, None
        if self.moves is not None:  # of one score: its correlation with itself a chunk later
            moves = np.ones((2, 1, 1))
            moves[1] = keep @ self.moves[1] @ transient @ keep.T / covariances[1]
        return Model(
            basis=self.basis @ keep.T,
            expand=(self.expand.T @ onto).T,
            covariances=covariances,
            weights=np.array([1 / (1 + weight), 1.0]),
            pole=self.pole if moves is None else float(moves[1, 0, 0]),
            moves=moves,
        )


@dataclass(frozen=True, eq=False)
class Moments:
    """How a corpus' modes hang together, (A M, A M) each: what stays with a person, what changes, and that and later.

    Attributes
    ----------
    stable : E u u' of what stays with a person.
    transient : E v v' of what changes.
    later : E v_next v' of what changes, a chunk later.
    """

    stable: Array
    transient: Array
    later: Array

    @classmethod
    def of_rows(cls, standard: Standard, corpus: Corpus) -> "Moments":
        """From rows of the people of a corpus, two at least (`eyestream_lab.calibration.row_parts`)."""
        parts = fitted_parts(*row_moments(standard.rows(corpus), corpus.rate_hz))
        whole, shares = parts.sum(axis=0), np.trace(parts, axis1=1, axis2=2)
        parts = (1 - SHRINKAGE) * parts + SHRINKAGE * np.multiply.outer(shares / shares.sum(), whole)
        people = len(np.unique(corpus.person))
        parts[0] *= (people + 1) / (people - 1)
        each = [chunk_moments(memory, standard.modes, corpus.rate_hz) for memory in MEMORIES_S]
        same = [np.kron(part, here) for part, (here, _) in zip(parts, each, strict=True)]
        later = [np.kron(part, there) for part, (_, there) in zip(parts, each, strict=True)]
        return cls(same[0], np.sum(same[1:], axis=0), np.sum(later[1:], axis=0))

    def mixed(self, other: "Moments", share: float) -> "Moments":
        """`share` of the other, the rest of this."""
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return Moments(*((1 - share) * own + share * theirs for own, theirs in pairs))

    def model(self) -> Model:
        """The leading directions, and how their scores move."""
        vectors = np.linalg.eigh(self.stable + self.transient)[1]
        basis = np.ascontiguousarray(directed(vectors[:, ::-1][:, :SCORES]))
        stable, transient = (positive(basis.T @ part @ basis, FLOOR) for part in (self.stable, self.transient))
        move = _held(basis.T @ self.later @ basis, transient)
        pole = float(np.sqrt(np.trace(move @ transient @ move.T) / np.trace(transient)))
        moves = np.stack([np.eye(len(move)), move])
        return Model(basis, basis.T, np.stack([stable, transient]), np.ones(2), pole, moves)


def _held(later: Array, covariance: Array) -> Array:
    """(d, d) A with A `covariance` = `later`, E next this', and no more than MOST_LEFT left of any direction."""
    white = inverse_root(covariance)
    left, kept, right = np.linalg.svd(white @ later @ white)
    move: Array = np.linalg.solve(white, (left * np.minimum(kept, MOST_LEFT)) @ right) @ white
    return move


def _person_covariance(own: list[Array], whole: Array, pole: float) -> Array:
    """(d, d) covariance of the stable part, from scores (T, d) of each, and the covariance of all, diagonal.

    What does not decay of the lagged moments, made positive, and shrunk toward the shape of the whole.
    """
    stable = positive(stable_part(lagged_moments(own), pole), 0.0)
    share = float(np.clip(np.trace(stable) / np.trace(whole), 0.02, 0.9))
    return (1 - SHRINKAGE) * stable + SHRINKAGE * share * whole
