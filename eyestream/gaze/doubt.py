"""Whether samples can be gaze in the units of a profile: pixels, radians, zeros and noise cannot.

Nothing is refused for it, and no row depends on it: what is noticed goes into the log of the tracker's side, and of a
recording to whoever holds it. It is a function of raw gaze, so it must go nowhere else.
"""

import math

import numpy as np
from numpy.typing import NDArray

from eyestream.gaze.profile import Profile
from eyestream.gaze.samples import Samples

__all__ = ["GAZE_DOUBTS", "GazeDoubts"]

GAZE_DOUBTS: dict[str, str] = {
    "same": "every sample was the same. The tracker may be off, or send a placeholder such as zeros",
    "rate": "samples came at another rate than the profile's",
    "outside": "most of the gaze lay outside of what the profile allows. The unit is the likely reason: pixels, or the "
    "size of another screen, in the place of the profile's unit",
    "still": "the gaze hardly moved. The unit is the likely reason: radians, or parts of a screen, in the place of the "
    "profile's unit",
    "noise": "the gaze jumped from sample to sample as no eye does. The likely reason is a column that is not gaze",
}
"""What is likely to be wrong, by a word. No value is in any of them."""

_STILL_DEG = 0.5
"""Standard deviations to the right and up, of radians below 0.35 and of parts of a screen below 0.3, as numbers."""

_JUMPS = 1.5
"""Mean square of the steps between samples by their variance: 2 of noise (von Neumann 1941), far below 1 of gaze."""

_FEWEST = 100


class GazeDoubts:
    """Looks at the gaze of one tracker; a `judge` is about everything since the one before.

    Parameters
    ----------
    profile
        What the gaze is in, with a rate.
    """

    def __init__(self, profile: Profile) -> None:
        self._rate_hz, self._zero_is_lost = profile.fixed_rate_hz, profile.zero_is_lost
        self._begin()

    def _begin(self) -> None:
        self._samples = self._told = self._inside = self._steps = 0
        self._sums, self._squares, self._step_squares = np.zeros(2), np.zeros(2), np.zeros(2)
        self._low, self._high = np.full(2, math.inf), np.full(2, -math.inf)

    def take(self, points: NDArray[np.float64], tracked: NDArray[np.bool_] | None, samples: Samples) -> None:
        """Look at some gaze.

        Parameters
        ----------
        points
            (n, 2) or (n, 3), in the unit of the profile, as the tracker says them.
        tracked
            (n,) whether the tracker says that it saw the eye; None: it does not say.
        samples
            What was made of them.
        """
        told = np.isfinite(points).all(axis=1)
        if tracked is not None:
            told &= tracked
        if self._zero_is_lost:
            told &= (points != 0.0).any(axis=1)
        self._samples += len(points)
        self._told += int(told.sum())
        seen = np.stack((samples.x, samples.y), axis=1)[samples.valid]
        if len(seen):
            self._inside += len(seen)
            self._sums += seen.sum(axis=0)
            self._squares += (seen**2).sum(axis=0)
            self._steps += len(seen) - 1
            self._step_squares += (np.diff(seen, axis=0) ** 2).sum(axis=0)
            self._low, self._high = np.minimum(self._low, seen.min(axis=0)), np.maximum(self._high, seen.max(axis=0))

    def judge(self, seconds: float) -> str | None:
        """A word of `GAZE_DOUBTS` for the gaze of so many seconds; None: it may be gaze."""
        found = self._word(seconds)
        self._begin()
        return found

    def _word(self, seconds: float) -> str | None:
        if self._samples and not 0.5 <= self._samples / (self._rate_hz * seconds) <= 1.25:
            return "rate"
        if self._told > _FEWEST and self._inside < 0.5 * self._told:
            return "outside"
        if self._inside < _FEWEST:  # the eye is lost, or the tracker is off
            return None
        if (self._low == self._high).all():
            return "same"
        variance = self._squares / self._inside - (self._sums / self._inside) ** 2
        if (variance < _STILL_DEG**2).all():
            return "still"
        jumps = self._step_squares / max(self._steps, 1)
        return "noise" if (jumps > _JUMPS * variance).all() else None
