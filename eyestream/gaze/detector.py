"""The event detector: tracked samples in, events out.

The samples that are still undecided, and those that they are judged by, are kept, less than 0.3 s of them. Everything
else that is remembered is in `Segments`.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from eyestream.gaze.events import Event
from eyestream.gaze.movement import fast_samples
from eyestream.gaze.profile import Profile
from eyestream.gaze.segments import Segments

__all__ = ["Detector"]

Array = NDArray[np.float64]
Ticks = NDArray[np.int64]


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

    def state(self) -> dict[str, Any]:
        """All of it, as JSON knows it."""
        tail = {"t": self.t.tolist(), "values": self.values.tolist(), "decided": self.decided}
        return {**tail, "segments": self.segments.state()}

    def load(self, state: dict[str, Any]) -> None:
        """Go on from `state`."""
        self.t = np.array(state["t"], dtype=np.int64)
        self.values = np.array(state["values"], dtype=np.float64).reshape(3, len(self.t))
        self.decided = state["decided"]
        self.segments.load(state["segments"])
