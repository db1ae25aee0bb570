"""Figures by which two sets of recordings are compared: deciles, correlations within and between people, slowness.

A row in which the eye was lost is NaN, and so are the pupils of people whose tracker gives none; both are left out, of
products pair by pair.

All but the deciles are taken of normal scores (ranks within the set itself): a feature such as a variance of variances
has one event in a corpus that outweighs all the others, and its product moments would describe that event only.
"""

import io
from collections.abc import Sequence
from dataclasses import dataclass, fields
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eyestream.rim.files import DATA
from eyestream_lab.simulation.people import CONSTANTS, NAMES

__all__ = ["COLUMNS", "LAGS", "Likeness", "load_likeness", "measure"]

Floats = NDArray[np.float64]

COLUMNS: tuple[int, ...] = tuple(i for i, name in enumerate(NAMES) if name not in CONSTANTS)
"""The 48 features that are compared."""

LAGS = (1, 4, 16, 32, 64, 128)
"""Rows."""

_QUANTILES = np.arange(1, 2048) / 2048
_SCORES = np.array([NormalDist().inv_cdf(q) for q in _QUANTILES])


@dataclass(frozen=True)
class Likeness:
    """What a set of recordings looks like; 48 features.

    Parameters
    ----------
    deciles
        (9, 48) of all rows together, in the unit of each feature.
    within
        (48, 48) correlation of the scores less each person's mean.
    between
        (48, 48) correlation of people's mean scores, weighted by rows.
    autocorrelation
        (6, 48) of the scores less each person's mean, at `LAGS`.
    share
        (48,) variance of people's mean scores in the whole variance of the scores.
    """

    deciles: Floats
    within: Floats
    between: Floats
    autocorrelation: Floats
    share: Floats


def measure(recordings: Sequence[NDArray[Any]]) -> Likeness:
    """Likeness of recordings of (m_i, 52) features, m_i > 128, of at least two people; NaN is missing."""
    pooled = np.concatenate([np.asarray(features, np.float64)[:, COLUMNS] for features in recordings])
    cuts = np.cumsum([len(features) for features in recordings])[:-1]
    people = np.split(np.stack([_normal_scores(column) for column in pooled.T], axis=1), cuts)
    there = [np.isfinite(scores).astype(np.float64) for scores in people]
    rows = np.array([present.sum(axis=0) for present in there])
    totals = np.array([np.nansum(scores, axis=0) for scores in people])
    means = np.divide(totals, rows, out=np.zeros_like(totals), where=rows > 0)
    weights = np.array([present.T @ present for present in there])
    between = np.einsum("pi,pj,pij->ij", means, means, weights) / weights.sum(axis=0)
    centred = [np.nan_to_num(scores - mean) for scores, mean in zip(people, means, strict=True)]
    within = np.sum([scores.T @ scores for scores in centred], axis=0) / weights.sum(axis=0)
    lagged = []
    for lag in LAGS:
        pairs = np.sum([np.sum(present[lag:] * present[:-lag], axis=0) for present in there], axis=0)
        lagged.append(np.sum([np.sum(scores[lag:] * scores[:-lag], axis=0) for scores in centred], axis=0) / pairs)
    return Likeness(
        deciles=np.nanquantile(pooled, np.arange(1, 10) / 10, axis=0),
        within=_correlation(within),
        between=_correlation(between),
        autocorrelation=np.array(lagged) / np.diag(within),
        share=np.diag(between) / np.diag(between + within),
    )


def load_likeness() -> Likeness:
    """Likeness of the 30-person corpus, as shipped."""
    shipped = (DATA / "simulation.npz").read_bytes()
    with np.load(io.BytesIO(shipped), allow_pickle=False) as file:
        return Likeness(**{field.name: file[f"corpus_{field.name}"].astype(np.float64) for field in fields(Likeness)})


def _normal_scores(values: Floats) -> Floats:
    """Standard normal scores by rank, ties at their middle, mean 0; NaN stays NaN."""
    scores, present = np.full(len(values), np.nan), np.isfinite(values)
    _, place, count = np.unique(values[present], return_inverse=True, return_counts=True)
    middle = (np.cumsum(count) - count / 2) / count.sum()
    scores[present] = np.interp(middle, _QUANTILES, _SCORES)[place]
    return np.asarray(scores - np.nanmean(scores))


def _correlation(covariance: Floats) -> Floats:
    size = np.sqrt(np.diag(covariance))
    return np.asarray(covariance / np.outer(size, size))
