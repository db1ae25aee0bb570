"""Whole recordings released as sessions, with what can be compared between ways of releasing: the same rows of each."""

import numpy as np
from numpy.typing import NDArray

from eyestream.core.mechanism import Mechanism
from eyestream_lab.calibration.corpus import whole_chunks
from eyestream_lab.hindsight import hindsight

Array = NDArray[np.float64]

WITHHELD_ROWS = 128
"""At least the minute that an anchored calibration withholds, and a multiple of every chunk length."""


def released_session(mechanism: Mechanism, rows: Array, n: int) -> tuple[Array, Array, Array | None]:
    """Raw rows (m, F) behind the withheld ones, what a session released of them, and what all of it tells of them.

    The last is None for a mechanism that does not look back. Missing values go in as they are.
    """
    own, released, states, skipped = mechanism.session(), [], [], 0
    for chunk in whole_chunks(rows if mechanism.calibration.anchor else rows[WITHHELD_ROWS:], n):
        if own.awaits_baseline:
            own.anchor(chunk)
            skipped += n
            continue
        released.append(own.release(chunk).T)
        states.append(own.state)
    start = skipped or WITHHELD_ROWS
    raw = rows[start : start + n * len(released)]
    better = hindsight(mechanism, states)
    return raw, np.concatenate(released), None if better is None else np.concatenate([chunk.T for chunk in better])
