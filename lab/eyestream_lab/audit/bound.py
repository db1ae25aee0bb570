"""A lower bound on epsilon from outside, for outputs of any form.

Pairs of neighbouring chunks are screened with a few draws each; the most telling ones get many. Of these a first part
teaches what tells the outputs apart (`eyestream_lab.audit.telling`), a second chooses the event, a third bounds its
probabilities (Clopper and Pearson 1934), corrected for all partitions, both directions and all pairs that reached this
stage. A bound above the epsilon of a mechanism therefore comes with a chance of at most 1 - confidence for each audit.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eyestream_lab.audit.estimate import Bound, Counts, lower_bound, lower_share
from eyestream_lab.audit.inputs import Neighbours
from eyestream_lab.audit.telling import Telling, learn

Array = NDArray[np.float64]
Draw = Callable[[int], tuple[Array, Array]]
"""So many outputs (m, F, n) under the first chunk of a pair and as many under the second."""

_BATCH = 1000
_DEVIATIONS = 1.0
"""How far estimates of the screening, which only ranks the pairs, are pulled towards nothing."""


@dataclass(frozen=True)
class Tested:
    """Result of the most telling event of one pair."""

    pair: str
    bound: Bound
    draws: int
    """Outputs under either chunk in the part that was tested."""
    partitions: int


def screen(
    pairs: list[Neighbours], draw_for: Callable[[Neighbours], Draw], calls: int
) -> list[tuple[float, Neighbours]]:
    """The pairs with what a small number of draws promises, the largest first."""
    ranked = []
    for pair in pairs:
        draw = draw_for(pair)
        telling = learn(*draw(max(calls // 2, 8)))
        counts = [_count(telling, draw, max(calls // 4, 4)) for _ in range(2)]
        ranked.append((_promise(counts[0], counts[1]), pair))
    return sorted(ranked, key=lambda item: -item[0])


def bound(pair: str, draw: Draw, calls: int, confidence: float, most: int = 4 * _BATCH) -> Tested:
    """The lower bound from about `calls` draws under either chunk of a pair; at most `most` of them teach."""
    learned = max(calls // 6, 8)
    telling = learn(*draw(min(learned, most)))
    chosen_on, tested_on = _count(telling, draw, max(calls // 4, 4)), _count(telling, draw, max(calls // 2, 8))
    found = lower_bound(chosen_on, tested_on, confidence)
    return Tested(pair, found, max(calls // 2, 8), len(chosen_on))


def resolution(draws: int, partitions: int, confidence: float) -> float:
    """The largest bound that so many draws can give: by an event that always comes under one chunk alone."""
    alpha = (1 - confidence) / (4 * partitions)
    share = lower_share(draws, draws, alpha)
    return math.log(share / (1 - share)) if share < 1 else math.inf


def _promise(chosen_on: Counts, tested_on: Counts) -> float:
    """About the logarithm of the largest ratio of probabilities that was seen, by events chosen on the other part."""
    best = -math.inf
    for name, chosen in chosen_on.items():
        for ours in (0, 1):
            order = np.argsort(-(chosen[ours] + 0.5) / (chosen[1 - ours] + 0.5), kind="stable")
            p = np.cumsum(tested_on[name][ours][order]) + 0.5
            q = np.cumsum(tested_on[name][1 - ours][order]) + 0.5
            best = max(best, float((np.log(p / q) - _DEVIATIONS * (np.sqrt(1 / p) + np.sqrt(1 / q))).max()))
    return best


def _count(telling: Telling, draw: Draw, calls: int) -> Mapping[str, NDArray[np.int64]]:
    counts = {name: np.zeros((2, cells), dtype=np.int64) for name, cells in telling.cells.items()}
    done = 0
    while done < calls:
        size = min(_BATCH, calls - done)
        for which, outputs in enumerate(draw(size)):
            for name, cells in telling.place(outputs).items():
                counts[name][which] += np.bincount(cells, minlength=telling.cells[name])
        done += size
    return counts
