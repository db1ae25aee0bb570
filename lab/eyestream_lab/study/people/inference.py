"""Inference from a handful of people: rates with intervals over people, permutation p, and the smallest effect."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_DRAWS = 1000
_LEVEL, _POWER = 0.05, 0.8
_NORMAL = 1.6449 + 0.8416
"""Quantiles of the standard normal law at one-sided `_LEVEL` and `_POWER`."""


@dataclass(frozen=True)
class AttackTrial:
    """Everybody attributed once: one gallery, or several of different people.

    Attributes
    ----------
    people : names of the unknowns, in order.
    firsts : chance that the right person is named; below 1 where others have the same score.
    ranks : place of the right person, 1 the first; equal scores share their places.
    areas : share of the wrong scores of the gallery, of every unknown, below the right score of this one.
    p : of the permutation test of the mean area.
    null_sd : standard deviation of the mean area when names are permuted.
    """

    people: tuple[str, ...]
    firsts: tuple[float, ...]
    ranks: tuple[float, ...]
    areas: tuple[float, ...]
    p: float
    null_sd: float


def trial(galleries: Sequence[tuple[Sequence[str], Array]], seed: int, draws: int = _DRAWS) -> AttackTrial:
    """Figures of galleries: names (P,), and scores (P, P) of unknowns (rows) against candidates, the right ones on the
    diagonal.

    Scores of an unknown are brought to mean 0 and standard deviation 1 first, so that unknowns can be compared. The
    mean area is that under the ROC curve of "same person or not". Its permutation test draws the names of the unknowns
    anew within each gallery, `draws` times; p counts the draw that was made.
    """
    rng = np.random.default_rng(seed)
    firsts, ranks, areas, drawn = [], [], [], np.zeros(draws)
    for _, scores in galleries:
        count = len(scores)
        spread = scores.std(axis=1, keepdims=True)
        level = (scores - scores.mean(axis=1, keepdims=True)) / np.where(spread > 0, spread, 1.0)
        right = np.diag(level)[:, None]
        before, equal = (level > right).sum(axis=1), (level == right).sum(axis=1)
        firsts.append(np.where(before == 0, 1 / equal, 0.0))
        ranks.append(1 + before + (equal - 1) / 2)
        areas.append(_areas(level, np.arange(count)))
        drawn += np.array([_areas(level, rng.permutation(count)).sum() for _ in range(draws)])
    found = np.concatenate(areas)
    drawn /= len(found)
    return AttackTrial(
        people=tuple(name for names, _ in galleries for name in names),
        firsts=tuple(np.concatenate(firsts).tolist()),
        ranks=tuple(np.concatenate(ranks).tolist()),
        areas=tuple(found.tolist()),
        p=(1 + int((drawn >= found.mean() - 1e-12).sum())) / (1 + draws),
        null_sd=float(drawn.std()),
    )


def _areas(level: Array, names: NDArray[np.intp]) -> Array:
    """(P,) share of the wrong scores below each right one, equal ones half, when unknown i is called names[i]."""
    count = len(level)
    right = level[np.arange(count), names]
    wrong = np.ones_like(level, dtype=np.bool_)
    wrong[np.arange(count), names] = False
    against = np.sort(level[wrong])
    below = np.searchsorted(against, right, "left") + np.searchsorted(against, right, "right")
    shares: Array = below / (2 * len(against))
    return shares


@dataclass(frozen=True)
class AttackFigures:
    """An attacker's success over all trials.

    Attributes
    ----------
    people : how many people were attributed.
    trials, gallery : how often each was, and people in a gallery.
    rate, rate_low, rate_high : right names, and the 95 % interval over people.
    chance : 1 / gallery.
    mean_rank, mean_rank_chance : place of the right name.
    area, area_low, area_high : under the ROC curve, and the 95 % interval over people.
    p : that names say nothing: twice the median over trials, valid however trials depend (Rueger, 1978).
    least_rate, least_area : the smallest true rate and area that one trial of so many people shows at the one-sided
        level of 5 % with a chance of 80 %.
    """

    people: int
    trials: int
    gallery: int
    rate: float
    rate_low: float
    rate_high: float
    chance: float
    mean_rank: float
    mean_rank_chance: float
    area: float
    area_low: float
    area_high: float
    p: float
    least_rate: float
    least_area: float


def figures(trials: Sequence[AttackTrial], gallery: int, seed: int = 0) -> AttackFigures:
    """Figures over trials; intervals resample people, each with all of its trials (percentile bootstrap)."""
    by_person: dict[str, list[list[float]]] = {}
    for one in trials:
        for name, *row in zip(one.people, one.firsts, one.ranks, one.areas, strict=True):
            by_person.setdefault(name, []).append(row)
    means = np.array([np.mean(rows, axis=0) for rows in by_person.values()])  # (people, 3)
    rng = np.random.default_rng(seed)
    drawn = means[rng.integers(0, len(means), (_DRAWS, len(means)))].mean(axis=1)
    low, high = np.quantile(drawn, [0.025, 0.975], axis=0)
    rate, rank, area = means.mean(axis=0)
    return AttackFigures(
        people=len(means),
        trials=len(trials),
        gallery=gallery,
        rate=float(rate),
        rate_low=float(low[0]),
        rate_high=float(high[0]),
        chance=1 / gallery,
        mean_rank=float(rank),
        mean_rank_chance=(gallery + 1) / 2,
        area=float(area),
        area_low=float(low[2]),
        area_high=float(high[2]),
        p=min(1.0, 2 * float(np.median([one.p for one in trials]))),
        least_rate=least_rate(len(means), 1 / gallery),
        least_area=min(1.0, 0.5 + _NORMAL * float(np.mean([one.null_sd for one in trials]))),
    )


def least_rate(people: int, chance: float) -> float:
    """Smallest true rate that `people` attributions show: above chance at one-sided 5 %, with a chance of 80 %.

    Exact binomial: the count that chance reaches in at most 5 % of the cases, and the rate that reaches it in 80 %.
    """
    needed = next(c for c in range(people + 2) if _tail(people, c, chance) <= _LEVEL)
    rates = np.linspace(chance, 1.0, 2001)
    return float(next(rate for rate in rates if _tail(people, needed, float(rate)) >= _POWER or rate == 1.0))


def _tail(count: int, least: int, rate: float) -> float:
    return sum(comb(count, k) * rate**k * (1 - rate) ** (count - k) for k in range(least, count + 1))
