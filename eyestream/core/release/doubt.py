"""Whether rows can be what the calibration was made from: zeros, noise, swapped features and wrong units cannot.

Nothing is refused for it, and no release depends on it: what is noticed goes into the log of the tracker's side. It is
a function of raw rows, so it must go nowhere else. The work is the same whatever is found: nothing ends it early.

A feature lies far outside when it is further than a quarter of the calibrated range beyond that range, or below half of
a lower end that is above 0. In the corpus of the shipped calibrations (30 people in everyday life), the worst chunk of
64 rows had 7 of 100 features there. With the features in another order it was 37 of 100 or more, of noise 34, of zeros
55. So the limit is 20. Where levels are taken off and nothing stands in their place, ranges are of changes. They say
nothing of raw rows, so only rows that are all the same are noticed.
"""

import numpy as np
from numpy.typing import NDArray

from eyestream.core.calibration import Calibration

DOUBTS: dict[str, str] = {
    "same": "for a minute every row was the same. The tracker may be off, or send a placeholder such as zeros",
    "unit": "for a minute the angles in its rows lay far outside of what the calibration was made from. The unit is "
    "the likely reason: expected degrees, not radians, pixels or parts of a screen",
    "order": "for a minute a fifth of its features or more lay far outside of what the calibration was made from. The "
    "order of the features is the likely reason, or a tracker that sends noise: compare with [[stream]] names",
    "two": "rows come twice: two senders publish at its topic. Stop one of them, or give it another device's name",
    "rate": "for a minute its rows came at another rate than [[stream]] rate_hz, or with gaps",
}
"""Likely faults, by a word. No value is in any of them."""

_BEYOND = 0.25
_BELOW = 0.5
_SHARE = 0.2
_LOOKED_AT = 8
"""Rows of a chunk: those of a window that moves in small steps are nearly the same."""


class RowDoubts:
    """Looks at the rows of a stream, chunk by chunk."""

    def __init__(self, calibration: Calibration) -> None:
        lo, hi = calibration.lo, calibration.hi
        width, raw = hi - lo, calibration.takes_off is None or bool(calibration.fill.any())
        low = np.where(lo > 0.0, np.maximum(lo - _BEYOND * width, _BELOW * lo), lo - _BEYOND * width)
        self._low, self._high = low[:, None], (hi + _BEYOND * width)[:, None]
        self._ranged = ((width > 0.0) & raw)[:, None]
        angles = np.array([unit == "deg" for unit in calibration.units])
        self._angles = np.flatnonzero(angles & (lo > 0.0) & self._ranged[:, 0])

    def of(self, rows: NDArray[np.float64]) -> str | None:
        """A word of `DOUBTS` for the raw rows (F, n) of a chunk; None: they may be what they should be."""
        some = rows[:, :: max(1, rows.shape[1] // _LOOKED_AT)]
        seen = np.isfinite(some)
        equal = (some == some[:, :1]) | (np.isnan(some) & np.isnan(some[:, :1]))
        outside = ((some < self._low) | (some > self._high)) & self._ranged  # NaN compares false
        angles, far = seen[self._angles], outside[self._angles]
        numbers = (seen, equal, outside, seen & self._ranged, angles, far == angles)
        # sums, because `any` and `all` stop where they know the answer
        known, same, beyond, ranged, angular, agreeing = (int(np.sum(each)) for each in numbers)
        found = (
            ("same", some.shape[1] > 1 and same == some.size),
            ("order", beyond > _SHARE * ranged),
            ("unit", angular > 0 and agreeing == far.size),
        )
        return next((word for word, holds in found if known and holds), None)
