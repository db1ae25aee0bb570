"""Whether samples can be gaze in the units of a profile: pixels, radians, zeros and noise cannot.

Nothing is refused for it, and no row depends on it: what is noticed goes into the log of the tracker's side, and of a
recording to whoever holds it. It is a function of raw gaze, so it must go nowhere else.
"""

import math

import numpy as np
from numpy.typing import NDArray

from eyestream.gaze.clock_doubt import CLOCK_DOUBTS
from eyestream.gaze.profile import Profile
from eyestream.gaze.samples import Samples

GAZE_DOUBTS: dict[str, str] = CLOCK_DOUBTS | {
    "same": "every sample was the same. The tracker may be off, or send a placeholder such as zeros",
    "slow": "fewer samples came than half of the profile's rate: correct rate_hz of [[source]], or look for losses "
    "on the way",
    "fast": "more samples came than the profile's rate allows: correct rate_hz of [[source]], or stop a second sender "
    "of this device",
    "pupil_m": "its pupils are in metres. All count as missing: set the profile's pupil_unit to m, or send mm",
    "pupil": "its pupils lie outside of pupil_min_mm and pupil_max_mm of the profile. All count as missing: pixels or "
    "arbitrary units are the likely reason. Set pupil_unit of the profile to none",
    "outside": "most of the gaze lay outside of what the profile allows. The unit is the likely reason: pixels, or the "
    "size of another screen, in the place of the profile's unit",
    "still": "the gaze hardly moved. Check the unit: radians, or parts of a screen, in the place of the profile's unit",
    "noise": "the gaze jumped from sample to sample as no eye does. The likely reason is a column that is not gaze",
}
"""Likely faults, by a word. No value is in any of them."""

STILL_S = 30.0

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
        self._mm = 1e3 if profile.pupil_unit == "m" else 1.0
        self._pupil_mm = profile.pupil_min_mm, profile.pupil_max_mm
        self._has_pupils = profile.pupil_unit != "none"
        self._begin()

    def _begin(self) -> None:
        self._samples = self._told = self._inside = self._steps = 0
        self._pupils = self._pupils_fit = self._pupils_m = 0
        self._sums, self._squares, self._step_squares = np.zeros(2), np.zeros(2), np.zeros(2)
        self._low, self._high = np.full(2, math.inf), np.full(2, -math.inf)

    def take(
        self,
        points: NDArray[np.float64],
        tracked: NDArray[np.bool_] | None,
        samples: Samples,
        pupil: NDArray[np.float64] | None = None,
    ) -> None:
        """Look at some gaze.

        Parameters
        ----------
        points
            (n, 2) or (n, 3), in the unit of the profile, as the tracker says them.
        tracked
            (n,) whether the tracker says that it saw the eye; None: it does not say.
        samples
            What was made of them.
        pupil
            (n,) or (n, eyes), as the tracker says them.
        """
        if pupil is not None and self._has_pupils:
            self._take_pupils(pupil * self._mm)
        columns = points.T  # one by one: numpy is slow along an axis of two or three
        told = np.logical_and.reduce([np.isfinite(column) for column in columns])
        if tracked is not None:
            told &= tracked
        if self._zero_is_lost:
            told &= np.logical_or.reduce([column != 0.0 for column in columns])
        self._samples += len(points)
        self._told += int(np.count_nonzero(told))
        inside = int(np.count_nonzero(samples.valid))
        if inside:
            self._inside += inside
            self._steps += inside - 1
            for axis, values in enumerate((samples.x, samples.y)):
                seen = values[samples.valid]
                steps = np.diff(seen)
                self._sums[axis] += seen.sum()
                self._squares[axis] += seen @ seen
                self._step_squares[axis] += steps @ steps
                self._low[axis] = min(self._low[axis], seen.min())
                self._high[axis] = max(self._high[axis], seen.max())

    def _take_pupils(self, told_mm: NDArray[np.float64]) -> None:
        low, high = self._pupil_mm
        self._pupils += int(np.count_nonzero(told_mm > 0.0))  # 0, -1 and NaN are a pupil that is lost
        self._pupils_fit += int(np.count_nonzero((told_mm >= low) & (told_mm <= high)))
        self._pupils_m += int(np.count_nonzero((told_mm >= 1e-3 * low) & (told_mm <= 1e-3 * high)))

    def judge(self, seconds: float) -> str | None:
        """A word of `GAZE_DOUBTS` for the gaze of so many seconds; None: it may be gaze.

        Of less than `STILL_S` seconds it never is ``still``: a person may look at one place for so long.
        """
        found = self._word(seconds)
        self._begin()
        return found

    def _word(self, seconds: float) -> str | None:
        share = self._samples / (self._rate_hz * seconds)
        if share and not 0.5 <= share <= 1.25:
            return "slow" if share < 0.5 else "fast"
        if self._told > _FEWEST and self._inside < 0.5 * self._told:
            return "outside"
        if self._pupils > _FEWEST and self._pupils_fit < 0.05 * self._pupils:
            return "pupil_m" if self._pupils_m > 0.5 * self._pupils else "pupil"
        return self._moves(seconds) if self._inside >= _FEWEST else None  # the eye is lost, or the tracker is off

    def _moves(self, seconds: float) -> str | None:
        if (self._low == self._high).all():
            return "same"
        variance = self._squares / self._inside - (self._sums / self._inside) ** 2
        if seconds >= STILL_S and (variance < _STILL_DEG**2).all():
            return "still"
        jumps = self._step_squares / max(self._steps, 1)
        return "noise" if (jumps > _JUMPS * variance).all() else None
