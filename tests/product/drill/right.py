"""A front end that is not shipped: in each quarter of a second, whether the eye was on the right; NaN where lost."""

import hashlib

import numpy as np
from numpy.typing import NDArray

from eyestream.gaze.by_slot import BySlot
from eyestream.gaze.entry import FrontEndEntry
from eyestream.gaze.profile import Profile, ticks
from eyestream.gaze.samples import Samples
from eyestream.streams import FrontEndMark

__all__ = ["RIGHT", "STEP_S"]

STEP_S = 0.25


class _Right(BySlot):
    """One session."""

    seen = right = 0

    def fill(self, at_us: NDArray[np.int64], samples: Samples) -> None:
        """Count them by side."""
        self.seen += int(samples.valid.sum())
        self.right += int((samples.x[samples.valid] > 0).sum())

    def close(self) -> NDArray[np.float64]:
        """Whether most of them were on the right."""
        row = np.array([float(2 * self.right > self.seen) if self.seen else np.nan])
        self.seen = self.right = 0
        return row


def _mark(profile: Profile) -> FrontEndMark:
    own, any_tracker = (hashlib.sha256(text.encode()).hexdigest()[:16] for text in (f"right, {profile}", "right"))
    return FrontEndMark(profile.name, own, any_tracker)


RIGHT = FrontEndEntry(
    name="right",
    names=("right",),
    units=("1",),
    step_s=STEP_S,
    window_s=STEP_S,
    memory_s=lambda profile: profile.live_reach_s,
    mark=_mark,
    make=lambda profile, longest_step_s, origin_s: _Right(1, ticks(STEP_S), longest_step_s, origin_s),
)
