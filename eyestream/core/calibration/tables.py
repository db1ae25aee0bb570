"""Figures that mechanisms are calibrated with: one class for each way of coding."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from eyestream.core.portable import is_positive, product
from eyestream.errors import CalibrationError

STORED_NAMES: Mapping[str, str] = {"stable_variance": "stays", "transient_variance": "forgets"}
"""Names of fields in files, and so in content hashes, where they differ from those here."""


_MOST_BOOK_BITS = 16
"""Far above what a book is made with."""


class Tables(Protocol):
    """Face of the figures: a frozen dataclass of arrays."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def scale(self) -> NDArray[np.float64]:
        """(F,) how far a feature reaches; 0 makes it a constant."""
        ...

    def check(self, features: int, n: int) -> None:
        """Raise CalibrationError when the figures are not of so many features and rows."""
        ...


@dataclass(frozen=True, eq=False, repr=False)
class PerFeatureTables:
    """Figures of a mechanism that codes each feature by itself; sums of squares are over the n rows of a chunk.

    The *signal* is the chunk for LPA and CFPA and its difference signal for DCFPA.
    """

    centre: NDArray[np.float64]
    """(F, n) centre of the ball of signals."""
    radius: NDArray[np.float64]
    """(F,) its radius: L1 for LPA, Euclidean for CFPA and DCFPA; 0 makes the feature a constant."""
    mean: NDArray[np.float64]
    """(F, n) mean of the corpus' chunks (not signals)."""
    spread: NDArray[np.float64]
    """(F,) S: mean squared distance of the corpus' chunks to `mean`; 0 everywhere when there is no corpus."""
    truncation: NDArray[np.float64]
    """(F, K) T(k), k = 1 .. K, of the plain release."""
    overlap: NDArray[np.float64]
    """(F, K) A(k) of `eyestream.core.additive.signals`."""
    energy: NDArray[np.float64]
    """(F, K) B(k)."""
    stable_variance: NDArray[np.float64]
    """(F,) variance of a chunk's mean that does not change within a person; here and in the next two, values are
    clipped to the corpus' 0.5 % and 99.5 % quantiles."""
    transient_variance: NDArray[np.float64]
    """(F,) variance of a chunk's mean whose correlation halves from chunk to chunk."""
    detail: NDArray[np.float64]
    """(F,) variance of a value around the mean of its chunk."""
    diameter: NDArray[np.float64]
    """(F,) largest distance between any two signals of the corpus."""
    between_people: NDArray[np.float64]
    """(F,) the papers' Delta: largest distance between two people's signals at the same chunk index. Bounds nothing."""

    @property
    def scale(self) -> NDArray[np.float64]:
        """(F,) `radius`."""
        return self.radius

    def check(self, features: int, n: int) -> None:
        """Raise CalibrationError when the figures are not of so many features and rows."""
        for name in ("centre", "radius", "mean", "spread", "truncation", "overlap", "energy", "stable_variance"):
            if len(getattr(self, name)) != features:
                raise CalibrationError(f"{name} of the calibration is not of {features} features")
        if self.centre.shape[1:] != (n,) or self.mean.shape[1:] != (n,):
            raise CalibrationError(f"centre or mean of the calibration is not of {n} rows")
        if (self.radius < 0).any():
            raise CalibrationError("a radius of the calibration is negative")


@dataclass(frozen=True, eq=False, repr=False)
class JointTables:
    """Figures of the mechanism that codes all features jointly (KLT); `eyestream.core.mechanisms.klt` has the model.

    Features are standardised by `mean` and `sd` after the clamp to [lo, hi]; a chunk is described by the M leading
    cosine modes of every released feature, and of those by d scores. A counts the released features.
    """

    mean: NDArray[np.float64]
    """(F,) of the clamped rows."""
    sd: NDArray[np.float64]
    """(F,) of the clamped rows; 0 makes the feature a constant."""
    modes: NDArray[np.float64]
    """(M, n) orthonormal cosines."""
    basis: NDArray[np.float64]
    """(A M, d) takes standardised modes, features by modes, to scores."""
    expand: NDArray[np.float64]
    """(d, A M) takes scores back."""
    poles: NDArray[np.float64]
    """(J,) how much of each component of the scores is left a chunk later; 1: it does not change within a person. Where
    there are `moves`, the part of its variance that they keep, and a figure for readers alone but for the 1."""
    covariances: NDArray[np.float64]
    """(J, d, d) of each component."""
    weights: NDArray[np.float64]
    """(J,) share of each component's estimate that is released; below 1 to shed identity."""
    residual: NDArray[np.float64]
    """(F,) mean square of a standardised value that the scores do not describe."""
    knots: NDArray[np.float64] | None = None
    """(F, Q) where the map of a feature is known (`klt.maps`); None: values are coded as they are,
    as all of version 0.1.0 were."""
    levels: NDArray[np.float64] | None = None
    """(F, Q) what they become; `mean` and `sd` are of these, and `sd` is larger where a feature weighs less."""
    moves: NDArray[np.float64] | None = None
    """(J, d, d) what is expected of each component a chunk later; None: all its scores times its pole."""
    shares: NDArray[np.float64] | None = None
    """(F,) of a feature's estimate that is released, 0 to 1 (`klt.shares`); None: all of it, as in all files that were
    made without."""
    book_shapes: NDArray[np.int64] | None = None
    """(B, 3) of each book (`klt.books`): number of its first score, of that after its last, and
    bits; None: scores are quantised one by one, as in all files of version 0.1.0."""
    book_points: NDArray[np.float16] | None = None
    """Points of all books, one after the other."""
    book_shares: NDArray[np.float32] | None = None
    """How often each point is the nearest, all books one after the other."""
    book_weights: NDArray[np.float64] | None = None
    """Weight of each of a book's scores when the nearest point is looked for, all books one after the other."""

    @property
    def scale(self) -> NDArray[np.float64]:
        """(F,) `sd`."""
        return self.sd

    def check(self, features: int, n: int) -> None:
        """Raise CalibrationError when the figures are not of so many features and rows."""
        if not self.mean.shape == self.sd.shape == self.residual.shape == (features,) or self.modes.shape[1:] != (n,):
            raise CalibrationError(f"the moments and modes of the calibration are not of {features} features, {n} rows")
        components, scores = self.covariances.shape[0], self.basis.shape[1]
        shapes = (self.poles.shape, self.weights.shape, self.covariances.shape, self.expand.shape[0])
        if shapes != ((components,), (components,), (components, scores, scores), scores):
            raise CalibrationError("the model of the calibration does not fit together")
        if self.moves is not None:
            self._check_moves()
        if self.knots is not None or self.levels is not None:
            self._check_maps(features)
        if self.shares is not None and not (
            self.shares.shape == (features,) and (self.shares >= 0).all() and (self.shares <= 1).all()
        ):
            raise CalibrationError(f"the shares of the calibration are not of {features} features, 0 to 1 each")
        books = (self.book_shapes, self.book_points, self.book_shares, self.book_weights)
        if any(part is not None for part in books):
            self._check_books(scores)

    def _check_books(self, scores: int) -> None:
        """Refuse books that lack a part, or name scores, points or shares that are not there."""
        shapes, points, shares, weights = self.book_shapes, self.book_points, self.book_shares, self.book_weights
        if shapes is None or points is None or shares is None or weights is None:
            raise CalibrationError("the books of the calibration lack their shapes, points, shares or weights")
        if shapes.dtype != np.int64 or shapes.ndim != 2 or shapes.shape[1] != 3:
            raise CalibrationError("the shapes of the calibration's books are not three whole numbers each")
        first, end, bits = shapes.T
        if not ((first >= 0) & (first < end) & (end <= scores) & (bits >= 1) & (bits <= _MOST_BOOK_BITS)).all():
            raise CalibrationError(f"a book of the calibration is not of some of its {scores} scores")
        words = 2**bits
        if points.shape != ((words * (end - first)).sum(),) or shares.shape != (words.sum(),):
            raise CalibrationError("the points or shares of the calibration's books are not of their shapes")
        if weights.shape != ((end - first).sum(),) or (weights <= 0).any() or (shares < 0).any():
            raise CalibrationError(
                "the weights or shares of the calibration's books are negative or not of their shapes"
            )
        if any(part.sum() <= 0 for part in np.split(shares, np.cumsum(words)[:-1])):
            raise CalibrationError("the shares of a book of the calibration are all nothing")

    def _check_moves(self) -> None:
        """Refuse moves that a component with its covariance cannot make: they would leave more than there was."""
        assert self.moves is not None
        if self.moves.shape != self.covariances.shape:
            raise CalibrationError("the moves of the calibration are not one matrix for each component")
        for move, own in zip(self.moves, self.covariances, strict=True):
            left = own - product(product(move, own), move.T)
            rounding = 1e-6 * math.fsum(np.diagonal(own)) * np.eye(len(own))
            if own.any() and not is_positive(left + left.T + rounding):
                raise CalibrationError("the moves of the calibration leave more of a component than there was")

    def _check_maps(self, features: int) -> None:
        maps = (self.knots, self.levels)
        if any(m is None or m.ndim != 2 or len(m) != features or m.shape[1] < 2 for m in maps):
            raise CalibrationError(f"the maps of the calibration are not of {features} features")
        if self.knots.shape != self.levels.shape or not all((np.diff(m, axis=1) > 0).all() for m in maps):  # type: ignore
            raise CalibrationError("a map of the calibration does not rise")
