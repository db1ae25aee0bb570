"""Whether the output for a chunk depends on the chunks before it.

The chunk stays the same and the chunks before it change; the law of the output must not. What tells the outputs apart
is learned on some draws. On the others ranks are compared (Mann and Whitney 1947), which sees a small shift, and events
as in the bound on epsilon, which see a rare one. Two forms: what came before changes at random inside one process
(memory of the last chunks), and two processes get one thing each (memory of all).
"""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from eyestream_lab.audit.bound import Draw, screen
from eyestream_lab.audit.child import Child
from eyestream_lab.audit.estimate import lower_bound
from eyestream_lab.audit.inputs import Neighbours, generic, neighbours
from eyestream_lab.audit.subject import Subject
from eyestream_lab.audit.telling import learn

Array = NDArray[np.float64]
Take = Callable[[Child, Array, NDArray[np.int64]], Array]
"""Outputs (m, F, n) of a child for inputs (K, F, n) in an order (m,)."""

_BEFORE = 3
"""Releases of another chunk before each that is looked at, inside one process; one in two processes."""
PRICE = 16
"""Releases for every output that is looked at after either chunk, the screening included."""
_ALPHA = 5e-5
"""Chance of a false finding in either form."""
_PAIRS = ("constants at both ends", "a constant and an alternating chunk", "alternating", "one feature changed")
_BATCH = 1000


def previous(subject: Subject) -> list[Neighbours]:
    """Chunks that come before: pairs that leave unlike traces."""
    return [pair for pair in neighbours(subject) if pair.name in _PAIRS]


def carried(
    subject: Subject, pairs: list[Neighbours], children: tuple[Child, Child], take: Take, calls: int
) -> str | None:
    """Trace of the chunks before in `calls` outputs for a chunk after either; None if there is none."""
    chunk = generic(subject)

    def within(pair: Neighbours) -> Draw:
        return lambda count: _within(children[0], take, np.stack([pair.first, pair.second, chunk]), count)

    ranked = screen(pairs, within, max(calls // 10, 24))
    if not ranked:
        return None
    best = ranked[0][1]
    for how, draw, count in (
        ("all along", _across(children, take, best, chunk), calls),
        ("just before", within(best), calls // 2),
    ):
        found = _unlike(draw, max(count, 24))
        if found is not None:
            return f"{found}; before: {best.name}, {how}"
    return None


def _unlike(draw: Draw, count: int) -> str | None:
    """Difference between `count` outputs of either kind; None when chance explains it."""
    telling = learn(*draw(min(max(count // 6, 8), 4 * _BATCH)))
    numbers: dict[str, tuple[list[Array], list[Array]]] = {}
    halves = [{name: np.zeros((2, cells), np.int64) for name, cells in telling.cells.items()} for _ in range(2)]
    for index in range(max(count // _BATCH, 2)):
        for which, outputs in enumerate(draw(min(_BATCH, count // 2))):
            for name, values in telling.numbers(outputs).items():
                numbers.setdefault(name, ([], []))[which].append(values)
            for name, cells in telling.place(outputs).items():
                halves[index % 2][name][which] += np.bincount(cells, minlength=telling.cells[name])
    for name, (first, second) in numbers.items():
        deviations = _deviations(np.concatenate(first), np.concatenate(second))
        if math.erfc(abs(deviations) / math.sqrt(2)) < _ALPHA / (2 * len(numbers)):
            return f"{name} is shifted by {abs(deviations):.1f} standard deviations of its ranks"
    bound = lower_bound(halves[0], halves[1], 1 - _ALPHA / 2)
    return f"an event of {bound.partition} is e^{bound.epsilon:.2f} times as likely" if bound.epsilon > 0 else None


def _deviations(first: Array, second: Array) -> float:
    """Mann and Whitney's statistic in its standard deviations, ties taken into account."""
    both = np.concatenate([first, second])
    values, places, counts = np.unique(both, return_inverse=True, return_counts=True)
    if len(values) == 1:
        return 0.0
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[places]
    m, k, total = len(first), len(second), len(both)
    ties = float((counts.astype(np.float64) ** 3 - counts).sum()) / (total * (total - 1))
    deviation = math.sqrt(m * k / 12 * (total + 1 - ties))
    return float((ranks[:m].sum() - m * (total + 1) / 2) / deviation)


def _within(child: Child, take: Take, inputs: Array, count: int) -> tuple[Array, Array]:
    """(count, F, n) outputs for the last of `inputs` after the first and after the second, in random order."""
    which = np.random.default_rng().permutation(np.repeat([0, 1], count))
    order = np.full((2 * count, _BEFORE + 1), 2, dtype=np.int64)
    order[:, :_BEFORE] = which[:, None]
    outputs = take(child, inputs, order.ravel())[_BEFORE :: _BEFORE + 1]
    return outputs[which == 0], outputs[which == 1]


def _across(children: tuple[Child, Child], take: Take, pair: Neighbours, chunk: Array) -> Draw:
    def draw(count: int) -> tuple[Array, Array]:
        order = np.arange(2 * count, dtype=np.int64) % 2
        first, second = (
            take(child, np.stack([before, chunk]), order)[1::2]
            for child, before in zip(children, (pair.first, pair.second), strict=True)
        )
        return first, second

    return draw
