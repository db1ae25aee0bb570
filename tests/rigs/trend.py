"""How fast something grows, and how sure that is.

The slope is Theil's and Sen's, the median of the slopes between all pairs of points, which a step or a stray reading
does not move; its bounds are Sen's, from the variance of Kendall's S (P. K. Sen, JASA 63, 1968). Readings that follow
one another are not independent, so the points are the medians of a few blocks of them, and the bounds are widened by
what one step of the measure would make of the whole time.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

__all__ = ["Trend", "trend"]

BLOCKS = 24
FEWEST = 8
"""Points below which nothing is said."""
SETTLING_S = 120.0
"""Of the beginning nothing is said either: a heap that fills up looks like a leak."""
NORMAL = 2.576
"""Two-sided 99 %."""


@dataclass(frozen=True)
class Trend:
    """Growth an hour, between two bounds that hold it with 99 % confidence."""

    low: float
    middle: float
    high: float

    def verdict(self, limit: float) -> str:
        """``below`` the limit, ``above`` it, or ``undecided``: the time is too short to judge less than `high`."""
        if self.high <= limit:
            return "below"
        return "above" if self.low > limit else "undecided"


def trend(samples: Sequence[tuple[float, float]], step: float) -> Trend:
    """Growth in the later two thirds of `samples`, or after `SETTLING_S` where that is less.

    Parameters
    ----------
    samples
        (seconds, value), in order of time.
    step
        What the measure may rise by, once, without any growth.
    """
    begin, end = (samples[0][0], samples[-1][0]) if samples else (0.0, 0.0)
    settling = max((end - begin) / 3, SETTLING_S)
    blocks = _blocks([sample for sample in samples if sample[0] >= begin + settling])
    if len(blocks) < FEWEST:
        return Trend(-math.inf, 0.0, math.inf)
    slopes = sorted((y - x) / (t - s) for (s, x), (t, y) in itertools.combinations(blocks, 2))
    n, pairs = len(blocks), len(slopes)
    apart = NORMAL * math.sqrt(n * (n - 1) * (2 * n + 5) / 18)
    low = slopes[max(0, math.floor((pairs - apart) / 2))]
    high = slopes[min(pairs - 1, math.ceil((pairs + apart) / 2))]
    margin = step / (blocks[-1][0] - blocks[0][0])
    return Trend(3600 * (low - margin), 3600 * median(slopes), 3600 * (high + margin))


def _blocks(samples: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Medians of at most `BLOCKS` runs of equally many samples."""
    count = min(BLOCKS, len(samples))
    cuts = [len(samples) * i // count for i in range(count + 1)] if count else []
    runs = [samples[a:b] for a, b in itertools.pairwise(cuts)]
    return [(median(t for t, _ in run), median(value for _, value in run)) for run in runs]
