"""A front end that lives outside the package: in each half second, which third of the field the eye was on.

It is named in a configuration as ``front_end = "thirds:THIRDS"``, with this folder in PYTHONPATH. A row has one number:
0 left, 1 middle, 2 right, and NaN where the eye was lost. Row k describes the half second that ends (k + 1) / 2 seconds
after the session's first sample.
"""

import hashlib
import math

import numpy as np
from numpy.typing import NDArray

from eyestream.gaze.by_slot import BySlot
from eyestream.gaze.entry import FrontEndEntry
from eyestream.gaze.profile import Profile, ticks
from eyestream.gaze.samples import Samples
from eyestream.streams import FrontEndMark

__all__ = ["EDGE_DEG", "THIRDS"]

EDGE_DEG = 10.0
"""From straight ahead to where the left and the right third begin."""

_STEP_S = 0.5


class _Thirds(BySlot):
    """One session: samples are counted by third; a row is the third with most of them."""

    def __init__(self, longest_step_s: float, origin_s: float | None) -> None:
        super().__init__(1, ticks(_STEP_S), longest_step_s, origin_s)
        self._counts = np.zeros(3, dtype=np.int64)

    def fill(self, at_us: NDArray[np.int64], samples: Samples) -> None:
        """Count them."""
        x = samples.x[samples.valid]
        self._counts += np.bincount((x > -EDGE_DEG).astype(int) + (x > EDGE_DEG), minlength=3)

    def close(self) -> NDArray[np.float64]:
        """The row of the half second that is over."""
        over, self._counts = self._counts, np.zeros_like(self._counts)
        return np.array([over.argmax() if over.any() else math.nan])


def _mark(profile: Profile) -> FrontEndMark:
    """The rows depend on what degrees are, and on nothing else of the tracker."""
    version = f"thirds 2, edge {EDGE_DEG}, step {_STEP_S}"
    own, any_tracker = (hashlib.sha256(text.encode()).hexdigest()[:16] for text in (f"{version}, {profile}", version))
    return FrontEndMark(profile.name, own, any_tracker)


THIRDS = FrontEndEntry(
    name="thirds",
    names=("third",),
    units=("1",),
    step_s=_STEP_S,
    window_s=_STEP_S,
    memory_s=lambda profile: profile.live_reach_s,
    mark=_mark,
    make=lambda profile, longest_step_s, origin_s: _Thirds(longest_step_s, origin_s),
)
