"""A lower confidence bound on epsilon, from counts of what came out under two neighbouring inputs.

Every outcome falls into one cell of a partition. Which cells make the event is chosen on one half of the draws, the
most telling first; the probability of that one event under both inputs is then bounded on the other half (Clopper and
Pearson 1934), and epsilon >= log(p / q). What was tested there, the partitions in both directions, is corrected for by
Bonferroni.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

CONFIDENCE = 0.999
_TINY = 1e-300
_DEVIATIONS = 4.0  # of a probability from its bound, about
_SAFE = 4.5  # of an estimate from its mean

Counts = Mapping[str, NDArray[np.int64]]
"""By partition, (2, cells): how many draws fell into each cell, under the first input and under the second."""


@dataclass(frozen=True)
class Bound:
    """Result of the tested half: epsilon is at least `epsilon`, by an event of `partition` of `cells` cells."""

    epsilon: float
    partition: str
    cells: int


def incomplete_beta(a: float, b: float, x: float) -> float:
    """Regularised incomplete beta function I_x(a, b), a and b positive; the continued fraction after Lentz."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):
        return 1.0 - incomplete_beta(b, a, 1 - x)
    front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    return math.exp(front) * _fraction(a, b, x) / a


def _fraction(a: float, b: float, x: float) -> float:
    c, d = 1.0, 1.0 / _away(1.0 - (a + b) * x / (a + 1))
    result = d
    for m in range(1, 100_000):
        change = 1.0
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            c, d = _away(1.0 + term / c), 1.0 / _away(1.0 + term * d)
            change = c * d
            result *= change
        if abs(change - 1.0) < 1e-14:
            break
    return result


def _away(value: float) -> float:
    """The same number, but not zero."""
    return value if abs(value) > _TINY else _TINY


def lower_share(hits: int, draws: int, alpha: float) -> float:
    """Clopper-Pearson: the probability whose chance of `hits` or more out of `draws` is `alpha`.

    Examples
    --------
    >>> round(lower_share(5, 10, 0.025), 6)
    0.187086
    """
    if hits == 0:
        return 0.0
    low, high = 0.0, hits / draws
    while low < (middle := (low + high) / 2) < high and high - low > 1e-15 * high:
        if incomplete_beta(hits, draws - hits + 1, middle) < alpha:
            low = middle
        else:
            high = middle
    return low


def lower_epsilon(hits: tuple[int, int], draws: tuple[int, int], alpha: float) -> float:
    """log(p / q), which the true one exceeds but for a chance of `alpha`; half of it goes to each probability.

    Examples
    --------
    Half of the draws under one input, a hundredth under the other, a thousand of each:

    >>> round(lower_epsilon((500, 10), (1000, 1000), 0.001), 2)
    2.88
    """
    p = lower_share(hits[0], draws[0], alpha / 2)
    q = 1.0 - lower_share(draws[1] - hits[1], draws[1], alpha / 2)
    return math.log(p / q) if p > 0 else -math.inf


def lower_bound(chosen_on: Counts, tested_on: Counts, confidence: float = CONFIDENCE) -> Bound:
    """The largest lower bound on epsilon of any partition, in either direction."""
    alpha = (1 - confidence) / (2 * len(chosen_on))
    best = Bound(-math.inf, "", 0)
    for partition, counts in chosen_on.items():
        for ours in (0, 1):
            cells = _most_telling(counts[ours], counts[1 - ours])
            tested = tested_on[partition]
            hits = int(tested[ours, cells].sum()), int(tested[1 - ours, cells].sum())
            draws = int(tested[ours].sum()), int(tested[1 - ours].sum())
            epsilon = lower_epsilon(hits, draws, alpha)
            if epsilon > best.epsilon:
                best = Bound(epsilon, partition, len(cells))
    return best


def chained_bound(chosen_on: Counts, tested_on: Counts, confidence: float = CONFIDENCE) -> Bound:
    """A lower bound for one release that is made step by step: the bounds of its steps added up.

    A partition is a step of two cells. Each step begins in the public state that cell 1 of the step before leads to, so
    the probability of "cell 1 at every step" is the product of theirs. The event is fixed: both halves are tested.
    """
    alpha, epsilon = (1 - confidence) / len(chosen_on), 0.0
    for step, counts in chosen_on.items():
        both = counts + tested_on[step]
        draws = both.sum(axis=1)
        epsilon += lower_epsilon((int(both[0, 1]), int(both[1, 1])), (int(draws[0]), int(draws[1])), alpha)
    return Bound(epsilon, "every step", 1)


def safe_bound(p: NDArray[np.float64], q: NDArray[np.float64], draws: int) -> float:
    """A figure that a correct mechanism's bound nearly always exceeds when `draws` are tested.

    `p` and `q` are the probabilities of the events that may be chosen, under the two inputs.
    """
    errors = [np.sqrt((1 - share) / (share * draws)) for share in (p, q)]
    return float((np.log(p / q) - _DEVIATIONS * (errors[0] + errors[1]) - _SAFE * np.hypot(*errors)).max())


def response_bound(words: int, epsilon: float, draws: int) -> float:
    """`safe_bound` of a response of `words` words: by the event that the own word came, and that one other did not."""
    other = 1 / (math.exp(epsilon) + words - 1)
    own = other * math.exp(epsilon)
    return safe_bound(np.array([own, 1 - other]), np.array([other, 1 - own]), draws)


def _most_telling(p: NDArray[np.int64], q: NDArray[np.int64]) -> NDArray[np.intp]:
    """Cells whose union promises the largest bound: those of the largest ratio, as many as pay."""
    order = np.argsort(-(p + 0.5) / (q + 0.5), kind="stable")
    first, second = np.cumsum(p[order]) + 0.5, np.cumsum(q[order]) + 0.5
    promise = np.log(first / second) - _DEVIATIONS * (np.sqrt(1 / first) + np.sqrt(1 / second))
    return order[: int(np.argmax(promise)) + 1]
