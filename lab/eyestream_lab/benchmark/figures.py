"""Figures of recognition: identification at rank 1, area under the ROC curve, equal error rate, false rejections.

All are of scores (S, P, P) of S trials, unnamed people first. Each unnamed person has one score with each candidate.
The diagonal is of the same person. Intervals hold 95 % of draws of people with replacement.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

Array = NDArray[np.float64]
_DRAWS, _ORDERS = 400, 200
_SHARE = 0.95


class Interval(Struct, frozen=True):
    """A figure, and 95 % of its draws over people."""

    value: float
    low: float
    high: float


class Figures(Struct, frozen=True):
    """How well people are recognised.

    Attributes
    ----------
    rank1
        Share of unnamed people whose own score is the largest.
    auc
        Chance that a score of the same person is above one of two people.
    eer
        Rate of both errors where they are equal.
    frr_at_far
        Share of scores of the same person below the threshold that so large a share of the others passes, by that
        share as text: "0.01", and smaller ones where there are a hundred pairs above the threshold.
    """

    rank1: Interval
    auc: Interval
    eer: Interval
    frr_at_far: dict[str, Interval]


def rank1_of(scores: Array) -> Array:
    """(P,) share of trials in which each person is named rightly; those who are as likely share the guess."""
    largest = scores >= scores.max(axis=2, keepdims=True) - 1e-12 * np.abs(scores).max()
    shares = np.diagonal(largest, axis1=1, axis2=2) / largest.sum(axis=2)
    return np.asarray(shares.mean(axis=0))


def area_of(scores: Array) -> float:
    """Area under the ROC curve of all trials together."""
    return float(_Curve(scores).areas(np.ones((1, scores.shape[1])))[0])


def figures_of(scores: Array, seed: int) -> Figures:
    """All figures, with intervals."""
    people = scores.shape[1]
    curve, named = _Curve(scores), rank1_of(scores)
    drawn = np.random.default_rng(seed).multinomial(people, np.full(people, 1 / people), size=_DRAWS).astype(float)
    every = np.concatenate([np.ones((1, people)), drawn[(drawn > 0).sum(axis=1) > 1]])
    pairs = people * (people - 1) * len(scores)
    fars = [far for far in (0.01, 0.001, 0.0001) if far == 0.01 or far * pairs >= 100]
    errors = curve.errors(every, fars)
    return Figures(
        interval_of(every @ named / every.sum(axis=1)),
        interval_of(curve.areas(every)),
        interval_of(errors["eer"]),
        {f"{far:g}": interval_of(errors[f"{far:g}"]) for far in fars},
    )


def interval_of(values: Array) -> Interval:
    """The first value, and the interval of the others."""
    low, high = np.quantile(values[1:], ((1 - _SHARE) / 2, (1 + _SHARE) / 2)) if len(values) > 1 else values[[0, 0]]
    return Interval(*(round(float(value), 4) for value in (values[0], low, high)))


class _Curve:
    """The ROC curve of scores, for people who are drawn several times over or not at all."""

    def __init__(self, scores: Array) -> None:
        trials, people, _ = scores.shape
        order, self._level = np.unique(scores.ravel(), return_inverse=True)
        self._levels = len(order)
        self._rows = np.tile(np.repeat(np.arange(people), people), trials)
        self._columns = np.tile(np.arange(people), people * trials)
        self._own = self._rows == self._columns

    def _counted(self, weights: Array) -> tuple[Array, Array]:
        """Share of scores at each level, from the lowest: of the same person, and of two people."""
        mass = weights[self._rows] * np.where(self._own, 1.0, weights[self._columns])
        own, other = (np.bincount(self._level, mass * kept, self._levels) for kept in (self._own, ~self._own))
        return own / own.sum(), other / other.sum()

    def areas(self, weights: Array) -> Array:
        """(D,) area for each line of weights (D, P)."""
        found = []
        for one in weights:
            own, other = self._counted(one)
            found.append(float((own * (np.cumsum(other) - other / 2)).sum()))
        return np.array(found)

    def errors(self, weights: Array, fars: Sequence[float]) -> dict[str, Array]:
        """Equal error rates "eer", and false rejections at each rate of false acceptances, for weights (D, P)."""
        found: list[list[float]] = []
        for one in weights:
            own, other = self._counted(one)
            rejected = np.concatenate(([0.0], np.cumsum(own)))  # with a threshold below level i
            accepted = np.concatenate(([1.0], 1.0 - np.cumsum(other)))
            crossing = int(np.argmax(rejected >= accepted))
            line = [float(np.maximum(rejected, accepted)[max(crossing - 1, 0) : crossing + 1].min())]
            line += [float(rejected[np.argmax(accepted <= far + 1e-12)]) for far in fars]
            found.append(line)
        return dict(zip(("eer", *(f"{far:g}" for far in fars)), np.array(found).T, strict=True))


def seen_from(scores: Mapping[str, Array], seed: int) -> dict[str, float]:
    """Area and share at rank 1 from which something could have been seen: where people are exchanged, the strongest of
    all attackers (S, P, P), or one of them inverted, stays below in 95 of 100 orders."""
    people = next(iter(scores.values())).shape[1]
    rng = np.random.default_rng(seed)
    orders = np.array([rng.permutation(people) for _ in range(_ORDERS)])
    areas, named = np.zeros(_ORDERS), np.zeros(_ORDERS)
    for own in scores.values():
        area, share = _strength(own.ravel().argsort().argsort().reshape(own.shape), own.argmax(axis=2), orders)
        areas, named = np.maximum(areas, area), np.maximum(named, share)
    return {"auc": round(float(np.quantile(areas, _SHARE)), 4), "rank1": round(float(np.quantile(named, _SHARE)), 4)}


def _strength(ranks: NDArray[Any], best: NDArray[Any], orders: NDArray[np.intp]) -> tuple[Array, Array]:
    """(R,) area, or what is left of it to 1, and share at rank 1: unnamed person i is held to be `orders[:, i]`."""
    trials, people, _ = ranks.shape
    own = ranks[:, np.arange(people), orders].sum(axis=(0, 2))
    size = trials * people
    area = (own - size * (size - 1) / 2) / (size * (ranks.size - size))
    return np.maximum(area, 1 - area), (best[:, None] == orders).mean(axis=(0, 2))
