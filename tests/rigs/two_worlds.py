"""Whether two worlds can be told apart by when messages come: both in one run, by turns, in random order.

An observation is what an application sees beside one chunk: some times in microseconds, as when the chunk came on its
grid and how long after it `budget` came. Two questions are answered of two worlds:

- By how much do their medians differ? The interval of the difference is that of the bootstrap. Worlds alternate at
  random, so that what drifts is in both.
- How often is one chunk told right? A rule is learned on one half of the observations and tested on the other. It is
  the sum over the times of log-likelihood ratios in the cells between their quantiles. So any difference of the laws
  counts, of the spread too. The same rule votes over `VOTERS` chunks of one world.

Two worlds count as told apart when the rule is right more often than by chance, or the ranks of one time differ (Mann
and Whitney 1947). The level is `FALSE_ALARM` for all comparisons of a run, divided between them (Bonferroni). So where
nothing can be told, a run raises an alarm with probability `FALSE_ALARM` at most.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eyestream_lab.audit.estimate import incomplete_beta, lower_share

__all__ = ["FALSE_ALARM", "VOTERS", "Comparison", "Interval", "compare", "interval_of_share", "median_difference"]

Array = NDArray[np.float64]

FALSE_ALARM = 0.01
"""Of a whole run of comparisons."""

VOTERS = 15
_CELLS, _TIMES, _LEVEL = 8, 1000, 0.05
_POWER_Z = 1.2816
"""Normal quantile of the power 0.9 at which the smallest effect would be seen."""


@dataclass(frozen=True)
class Interval:
    """An estimate and its 95 % interval."""

    estimate: float
    low: float
    high: float


@dataclass(frozen=True)
class Comparison:
    """What one pair of worlds gave.

    Attributes
    ----------
    observations
        Of both worlds together.
    difference
        Of the medians of each time, second world less first, in microseconds.
    smallest
        Of each time: the smallest difference of medians that would have been seen, in nine runs of ten.
    told
        Share of single observations of the tested half that were told right.
    votes
        The same of votes over `VOTERS` of one world; None where there were fewer than two of each world.
    chance
        The smallest probability of what was seen, or more, if the worlds cannot be told apart; of the rules tried here
        already times their number.
    apart
        Whether that is too small for chance among all comparisons of the run.
    """

    observations: int
    difference: Mapping[str, Interval]
    smallest: Mapping[str, float]
    told: Interval
    votes: Interval | None
    chance: float
    apart: bool


def compare(
    first: Sequence[Mapping[str, float]],
    second: Sequence[Mapping[str, float]],
    rng: np.random.Generator,
    comparisons: int = 1,
) -> Comparison:
    """Compare observations of two worlds, each a list in the order of time, with the same names of times.

    Parameters
    ----------
    rng
        Divides the observations into halves, and draws for the bootstrap.
    comparisons
        Made in the whole run.

    Raises
    ------
    ValueError
        Fewer than 20 observations of a world.
    """
    if min(len(first), len(second)) < 2 * 10:
        raise ValueError(f"expected 20 observations of each world or more, not {len(first)} and {len(second)}")
    names = sorted(first[0])
    tables = [np.array([[one[name] for name in names] for one in world]) for world in (first, second)]
    columns = [(name, tables[0][:, i], tables[1][:, i]) for i, name in enumerate(names)]
    drawn = {name: median_difference(a, b, rng) for name, a, b in columns}
    told, votes, by_rule = _told(tables[0], tables[1], rng)
    by_rank = min(_rank_chance(a, b) for _, a, b in columns)
    tried = 1 + len(names)
    chance = min(1.0, tried * min(by_rule, by_rank))
    beyond = _normal_quantile(1.0 - FALSE_ALARM / (2 * tried * comparisons)) + _POWER_Z
    return Comparison(
        observations=len(first) + len(second),
        difference=drawn,
        smallest={name: beyond * _spread(one) for name, one in drawn.items()},
        told=told,
        votes=votes,
        chance=chance,
        apart=chance < FALSE_ALARM / comparisons,
    )


def median_difference(first: Array, second: Array, rng: np.random.Generator) -> Interval:
    """Median of the second less that of the first, by the bootstrap."""
    medians = [np.median(rng.choice(each, (_TIMES, len(each))), axis=1) for each in (first, second)]
    low, high = np.quantile(medians[1] - medians[0], (_LEVEL / 2, 1.0 - _LEVEL / 2))
    return Interval(float(np.median(second) - np.median(first)), float(low), float(high))


def interval_of_share(hits: int, draws: int) -> Interval:
    """A share and its interval (Clopper and Pearson 1934)."""
    low = lower_share(hits, draws, _LEVEL / 2)
    high = 1.0 - lower_share(draws - hits, draws, _LEVEL / 2)
    return Interval(hits / draws, low, high)


def _told(first: Array, second: Array, rng: np.random.Generator) -> tuple[Interval, Interval | None, float]:
    """Share told right of the tested half, of votes, and the chance of so many or more among guesses."""
    halves = [rng.permutation(len(each)) < len(each) // 2 for each in (first, second)]
    learned = [each[half] for each, half in zip((first, second), halves, strict=True)]
    tested = [each[~half] for each, half in zip((first, second), halves, strict=True)]
    least = min(map(len, tested))  # as many of each, so that a guess is right half of the time
    scores = [_scores(learned[0], learned[1], each[:least]) for each in tested]
    hits = _right(scores[0], scores[1], rng)
    groups = [each[: least // VOTERS * VOTERS].reshape(-1, VOTERS).sum(axis=1) for each in scores]
    votes = None
    if len(groups[0]) >= 2:
        votes = interval_of_share(_right(groups[0], groups[1], rng), 2 * len(groups[0]))
    by_chance = 1.0 if hits == 0 else incomplete_beta(hits, 2 * least - hits + 1, 0.5)
    return interval_of_share(hits, 2 * least), votes, by_chance


def _right(first: Array, second: Array, rng: np.random.Generator) -> int:
    """How many are told right by the sign of their score; ties by lot."""
    ties = np.concatenate((first, second)) == 0.0
    sure = int((first < 0.0).sum() + (second > 0.0).sum())
    return sure + int(rng.binomial(int(ties.sum()), 0.5))


def _scores(first: Array, second: Array, tested: Array) -> Array:
    """(m,) log-likelihood ratios, second world to first, of observations (m, times), summed over the times."""
    total = np.zeros(len(tested))
    for column in range(tested.shape[1]):
        both = np.concatenate((first[:, column], second[:, column]))
        edges = np.unique(np.quantile(both, np.arange(1, _CELLS) / _CELLS))
        counts = [
            np.bincount(np.searchsorted(edges, each[:, column]), minlength=len(edges) + 1) for each in (first, second)
        ]
        laws = [(each + 1.0) / (each.sum() + len(each)) for each in counts]
        total += np.log(laws[1] / laws[0])[np.searchsorted(edges, tested[:, column])]
    return total


def _rank_chance(first: Array, second: Array) -> float:
    """Probability of ranks as different, or more, in either direction: the normal law of Mann and Whitney's number."""
    n, m = len(first), len(second)
    values, counts = np.unique(np.concatenate((first, second)), return_counts=True)
    below = np.sort(first)
    longer = np.searchsorted(below, second, "left") + np.searchsorted(below, second, "right")
    ties = float((counts.astype(np.float64) ** 3 - counts).sum()) / ((n + m) * (n + m - 1))
    variance = n * m * (n + m + 1 - ties) / 12.0
    if len(values) == 1 or variance <= 0.0:
        return 1.0
    away = abs(float(longer.sum()) / 2.0 - n * m / 2.0)
    return math.erfc(max(0.0, away - 0.5) / math.sqrt(2.0 * variance))


def _spread(one: Interval) -> float:
    """Standard deviation of an estimate, from its interval."""
    return (one.high - one.low) / (2.0 * _normal_quantile(1.0 - _LEVEL / 2))


def _normal_quantile(level: float) -> float:
    """Where the standard normal law has reached `level`, above one half."""
    low, high = 0.0, 40.0
    for _ in range(100):
        middle = (low + high) / 2.0
        low, high = (middle, high) if math.erfc(middle / math.sqrt(2.0)) / 2.0 > 1.0 - level else (low, middle)
    return (low + high) / 2.0
