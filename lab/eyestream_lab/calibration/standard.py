"""The chunks of a corpus, clipped, standardised and described by cosines: what KLT is calibrated from."""

from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from eyestream.core.mechanisms.klt.maps import RankMap
from eyestream.errors import CalibrationError
from eyestream_lab.calibration.corpus import Corpus
from eyestream_lab.calibration.redundancy import group_sizes

Array = NDArray[np.float64]

MODES = 4
"""Cosines over the rows of a chunk: features are 30 s windows, so chunks are smooth."""
TAIL = 0.01
"""Share of the corpus' rows clipped at each end: a few events make some features' tails very heavy."""
RANK_TAIL = 0.003
"""The same where features are coded on their maps, which take tails better."""
KNOTS = 65
"""Knots of each feature: quantiles of the corpus, evenly spaced."""


def rank_knots(rows: Array, lo: Array, hi: Array) -> tuple[Array, Array]:
    """Knots (F, KNOTS) of features and their levels (F, KNOTS), from rows (m, F); NaN is missing.

    A feature without spread, or without any value, gets evenly spaced levels: nothing is coded of it.
    """
    knots, levels = np.empty((2, len(lo), KNOTS))
    for f, column in enumerate(rows.T):
        clamped = np.clip(column[np.isfinite(column)], lo[f], hi[f])
        if len(clamped) < 2 or not clamped.std() > 0:
            knots[f] = levels[f] = np.arange(KNOTS, dtype=np.float64)
            continue
        knots[f], levels[f] = _knots(np.sort(clamped))
    return knots, levels


def _knots(ordered: Array) -> tuple[Array, Array]:
    """(KNOTS,) knots and levels of sorted values: their different quantiles, filled up by halving the widest step."""
    points = np.unique(np.quantile(ordered, np.linspace(0, 1, KNOTS)))
    while len(points) < KNOTS:  # ties: a value that stands for many ranks
        widest = int(np.argmax(np.diff(points)))
        points = np.insert(points, widest + 1, (points[widest] + points[widest + 1]) / 2)
    below, upto = np.searchsorted(ordered, points, "left"), np.searchsorted(ordered, points, "right")
    share = (below + upto + 1) / (2 * (len(ordered) + 1))
    normal = np.array([NormalDist().inv_cdf(p) for p in share])
    return points, (points - ordered.mean()) / (2 * ordered.std()) + normal / 2


@dataclass(frozen=True, eq=False, repr=False)
class Standard:
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
    def of(cls, corpus: Corpus, declared: NDArray[np.bool_], tail: float = TAIL) -> "Standard":
        """Features as they are; of those `declared` (F,), nothing. `tail` is the share clipped at each end."""
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
    def mapped(cls, corpus: Corpus, declared: NDArray[np.bool_]) -> "Standard":
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

    def rows(self, corpus: Corpus) -> list[tuple[Array, NDArray[np.bool_]]]:
        """Rows (m, A) of each person in their places, and where they are there; gaps between chunks are not."""
        people = []
        for one in np.unique(corpus.person):
            own = corpus.person == one
            places = corpus.index[own][:, None] * corpus.n + np.arange(corpus.n)
            rows = np.zeros((int(places.max()) + 1, len(self.active)))
            there = np.zeros(rows.shape, dtype=np.bool_)
            rows[places] = self.chunks[own].transpose(0, 2, 1)
            there[places] = self.present[own][:, None]
            people.append((rows, there))
        return people


def _cosines(n: int, count: int) -> Array:
    """(count, n) orthonormal: the leading vectors of the discrete cosine transform."""
    modes = np.cos(np.pi * np.arange(count)[:, None] * (np.arange(n) + 0.5) / n)
    orthonormal: Array = modes / np.linalg.norm(modes, axis=1, keepdims=True)
    return orthonormal
