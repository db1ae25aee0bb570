"""The event detector: tracked samples in, events out.

The samples that are still undecided, and those that they are judged by, are kept, less than 0.3 s of them. Everything
else that is remembered is in `Segments`.

Speed and label of a sample are functions of the samples near to it, so that an array may be cut anywhere as long as its
parts overlap by that reach: every operation is elementwise, in one order, and gives the same bits in every part.
"""

import numpy as np
from numpy.typing import NDArray

from eyestream.gaze.events import Event
from eyestream.gaze.profile import TICKS_PER_S, Profile, ticks
from eyestream.gaze.segments import Segments

Array = NDArray[np.float64]
Ticks = NDArray[np.int64]


def squared_speed(t: Ticks, x: Array, y: Array, profile: Profile) -> Array:
    """Square of the angular speed, in deg^2 / tick^2; 0 for a sample that nothing is joined to.

    The velocity of a sample is the slope of the least-squares line through the samples at most 12 ms away, at least the
    next one on both sides. On a uniform grid that is the first derivative of Savitzky and Golay (1964), order 1 and 2.

    Parameters
    ----------
    t, x, y
        (n,) increasing ticks, and degrees; tracked samples only.
    """
    n = len(t)
    count = np.ones(n)
    s_t, s_tt = np.zeros(n), np.zeros(n)
    s_x, s_tx, s_y, s_ty = np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(n)
    linked = joined = t[1:] - t[:-1] <= profile.gap_ticks
    for k in range(1, min(profile.velocity_samples, n - 1) + 1):
        if k > 1:
            joined = joined[:-1] & linked[k - 1 :]
        dt = t[k:] - t[:-k]
        used = joined if k == 1 else joined & (dt <= profile.velocity_ticks)
        w = used.astype(np.float64)
        tau = dt * w
        dx, dy = (x[k:] - x[:-k]) * w, (y[k:] - y[:-k]) * w
        for here, sign in ((slice(None, n - k), 1.0), (slice(k, None), -1.0)):  # the later sample, then the earlier
            count[here] += w
            s_t[here] += sign * tau
            s_x[here] += sign * dx
            s_y[here] += sign * dy
        for total, square in ((s_tt, tau * tau), (s_tx, tau * dx), (s_ty, tau * dy)):
            total[:-k] += square
            total[k:] += square
    spread = count * s_tt - s_t * s_t  # whole numbers, exact
    spread[spread == 0.0] = np.inf
    v_x, v_y = (count * s_tx - s_t * s_x) / spread, (count * s_ty - s_t * s_y) / spread
    return v_x * v_x + v_y * v_y


def fast_samples(t: Ticks, x: Array, y: Array, profile: Profile) -> NDArray[np.bool_]:
    """Which of (n,) tracked samples are fast.

    A sample is fast from the onset threshold on. Between the thresholds it is fast when one above the onset came at
    most `hysteresis_s` before it and no sample between them was below the offset threshold: a hysteresis of bounded
    reach.

    Right for those at least `reach_ticks` from the first sample and `delay_ticks` from the last one, if others exist.
    """
    if len(t) == 0:
        return np.zeros(0, dtype=np.bool_)
    onset, offset = (threshold / TICKS_PER_S for threshold in profile.thresholds_deg_per_s)
    speed = squared_speed(t, x, y, profile)
    seed, above = speed >= onset * onset, speed >= offset * offset
    if not seed.any():
        return seed
    index = np.arange(len(t))
    breaks = np.where(above, 0, index + 1)
    breaks[1:] = np.maximum(breaks[1:], np.where(t[1:] - t[:-1] <= profile.gap_ticks, 0, index[1:]))
    chain_start = np.maximum.accumulate(breaks)
    last_seed = np.maximum.accumulate(np.where(seed, index, -1))
    recent = t - t[last_seed] <= ticks(profile.detection.hysteresis_s)
    return np.asarray(above & (last_seed >= chain_start) & recent)


class Detector:
    """Events of one session of one tracker.

    Parameters
    ----------
    profile
        With a rate.
    """

    def __init__(self, profile: Profile) -> None:
        self._profile, self._delay, self._reach = profile, profile.delay_ticks, profile.reach_ticks
        self.segments = Segments(profile)
        self.t = np.zeros(0, dtype=np.int64)
        self.values = np.zeros((3, 0))
        self.decided = 0

    def take(self, t: Ticks, values: Array, clock: int) -> list[Event]:
        """Take tracked samples that follow those taken before; no other one will come up to the tick `clock`.

        Parameters
        ----------
        t, values
            (n,) increasing ticks, the last at most `clock`; (3, n) x and y in degrees, pupil in mm or NaN.

        Returns
        -------
        list
            All events confirmed up to `clock` that were not returned before, in any order.
        """
        if len(t):
            self.t, self.values = np.concatenate((self.t, t)), np.concatenate((self.values, values), axis=1)
        known = clock - self._delay
        final = int(np.searchsorted(self.t, known, side="right"))
        new = slice(self.decided, final)
        if final > self.decided:
            fast = fast_samples(self.t, self.values[0], self.values[1], self._profile)[new]
        else:
            fast = np.zeros(0, dtype=np.bool_)
        x, y, pupil = self.values[:, new]
        events = self.segments.take((self.t[new], x, y, pupil), fast, known)
        kept = int(np.searchsorted(self.t, known - self._reach))
        self.t, self.values = self.t[kept:].copy(), self.values[:, kept:].copy()
        self.decided = final - kept
        return events
