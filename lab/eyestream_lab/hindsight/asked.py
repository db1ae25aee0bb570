"""Hindsight of asked features: the backward recursion of their chains."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def look_back(core: Any, states: Sequence[Array], out: Sequence[Array]) -> None:
    """Write the chunks of a session to `out`, each from all of its released words; `states` after each of them.

    With the option `later` each is the chunk before, as what is released is.
    """
    if core.later and len(out):
        out[0][:, 0] = core.read(core.start)
        out = [*out[1:], np.empty_like(out[0])]
    later: Array | None = None
    for state, page in zip(reversed(states), reversed(out), strict=True):
        later = state if later is None else core.chains.smoothed(state, later)
        page[:, 0] = core.read(later)
