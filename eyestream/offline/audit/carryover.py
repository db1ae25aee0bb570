"""Whether the output for a chunk depends on the chunks before it.

The chunk stays the same and the chunks before it change; the law of the output must not. The same search as for
epsilon looks for an event that is more likely after the one than after the other. Two forms: what came before changes
at random inside one process (memory of the last chunks), and two processes get one thing each (memory of all).
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from eyestream.offline.audit.bound import Draw, bound, screen
from eyestream.offline.audit.child import Child
from eyestream.offline.audit.inputs import Neighbours, generic, neighbours
from eyestream.offline.audit.subject import Subject

__all__ = ["BEFORE", "carried", "previous"]

Array = NDArray[np.float64]

BEFORE = 3
"""Releases of another chunk before each that is looked at."""
_CONFIDENCE = 1 - 5e-5
_PAIRS = ("constants at both ends", "a constant and an alternating chunk", "alternating", "one feature changed")
Take = Callable[[Child, Array, NDArray[np.int64]], Array]
"""Outputs (m, F, n) of a child for inputs (K, F, n) in an order (m,)."""


def previous(subject: Subject) -> list[Neighbours]:
    """What comes before: pairs of chunks that leave unlike traces."""
    return [pair for pair in neighbours(subject) if pair.name in _PAIRS]


def carried(
    subject: Subject, pairs: list[Neighbours], children: tuple[Child, Child], take: Take, calls: int
) -> str | None:
    """What of the chunks before is seen in `calls` outputs for a chunk after either; None if nothing."""
    chunk = generic(subject)

    def within(pair: Neighbours) -> Draw:
        return lambda count: _within(children[0], take, np.stack([pair.first, pair.second, chunk]), count)

    ranked = screen(pairs, within, max(calls // 5, 24))
    for pair in [pair for _, pair in ranked[:1]]:
        for how, draw in (("", within(pair)), (" all along", _across(children, take, pair, chunk))):
            found = bound(pair.name, draw, calls, _CONFIDENCE).bound
            if found.epsilon > 0:
                what = (
                    f"an event of {found.partition} is e^{found.epsilon:.2f} times as likely after one as after another"
                )
                return f"{what}, chunks before: {pair.name}{how}"
    return None


def _within(child: Child, take: Take, inputs: Array, count: int) -> tuple[Array, Array]:
    """(count, F, n) outputs for the last of `inputs` after the first and after the second, in random order."""
    which = np.random.default_rng().permutation(np.repeat([0, 1], count))
    order = np.full((2 * count, BEFORE + 1), 2, dtype=np.int64)
    order[:, :BEFORE] = which[:, None]
    outputs = take(child, inputs, order.ravel())[BEFORE :: BEFORE + 1]
    return outputs[which == 0], outputs[which == 1]


def _across(children: tuple[Child, Child], take: Take, pair: Neighbours, chunk: Array) -> Draw:
    def draw(count: int) -> tuple[Array, Array]:
        order = np.tile(np.array([0] * BEFORE + [1], dtype=np.int64), count)
        first, second = (
            take(child, np.stack([before, chunk]), order)[BEFORE :: BEFORE + 1]
            for child, before in zip(children, (pair.first, pair.second), strict=True)
        )
        return first, second

    return draw
