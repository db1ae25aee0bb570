"""Samples of a session that wait for their row, in the order of their times.

Samples arrive out of order, twice, and in any number. What becomes of one is decided by others of nearly its own time
alone, never by how many there were before:

- The session is divided into *places*, at least `PLACES_PER_PERIOD` to a period of the profile's rate, and the end of a
  row's step is the end of a place. The first sample that arrives in a place has it, others are dropped. So what waits
  is bounded, a flood drops its own samples, and no two samples have one time.
- A sample is dropped when one with a time up to `Profile.overtaken_ticks` later arrived before it: its time went
  backward. Where a clock was set back, what it shows a second time would else stand among what it showed first.

So whether a sample goes on is a function of the samples from one place before it to `overtaken_ticks` and one place
after it, which `Profile.memory_ticks` counts. How samples are handed over and when they are asked for does not matter,
as long as all that arrived before a sample are here when that sample is asked for: later ones do not change it.
"""

import math

import numpy as np
from numpy.typing import NDArray

from eyestream.gaze.profile import PLACES_PER_PERIOD, TICKS_PER_S, Profile, ticks
from eyestream.gaze.samples import Samples

__all__ = ["Waiting"]


class Waiting:
    """Samples of one session; their times are seconds since it began.

    Parameters
    ----------
    profile
        Of the tracker, with a rate.
    step_s
        From one row to the next.

    Attributes
    ----------
    crowded : samples that were dropped because their place was taken.
    overtaken : samples that were dropped because one of a later time came before them.
    """

    def __init__(self, profile: Profile, step_s: float) -> None:
        self._step = ticks(step_s)
        self.crowded = self.overtaken = 0
        self._places = math.ceil(PLACES_PER_PERIOD * profile.fixed_rate_hz * step_s)  # of a step
        self._reach = profile.overtaken_ticks
        self._came = 0
        self.clear()

    def __len__(self) -> int:
        return len(self._samples)

    def clear(self) -> None:
        """Forget all of them: another session begins."""
        self._samples = Samples.of([], [], [])
        self._tick, self._place, self._order = (np.zeros(0, dtype=np.int64) for _ in range(3))

    def put(self, samples: Samples) -> None:
        """Take samples, in the order in which they arrived."""
        tick = np.rint(samples.t * TICKS_PER_S).astype(np.int64)
        order = np.arange(self._came, self._came + len(samples))
        self._came += len(samples)
        if len(self._samples):
            samples = Samples.joined([self._samples, samples])
            tick, order = np.concatenate((self._tick, tick)), np.concatenate((self._order, order))
        place = -(-tick * self._places // self._step)
        if (place[1:] <= place[:-1]).any():
            by_place = np.argsort(place, kind="stable")  # of one place the first that came is the first
            first = np.append(True, np.diff(place[by_place]) > 0)
            self.crowded += len(first) - int(np.count_nonzero(first))
            kept = by_place[first]
            samples, tick, order, place = samples.picked(kept), tick[kept], order[kept], place[kept]
        self._samples, self._tick, self._order, self._place = samples, tick, order, place

    def until(self, end_s: float) -> Samples:
        """Take out the samples of all places that end at or before `end_s`; those of the end of a step are whole."""
        last = math.floor(end_s * TICKS_PER_S) * self._places // self._step
        count = int(np.searchsorted(self._place, last, side="right"))
        late = self._overtaken()[:count]
        self.overtaken += int(np.count_nonzero(late))
        taken = self._samples[:count].picked(~late) if late.any() else self._samples[:count]
        self._samples = self._samples[count:]
        self._tick, self._place, self._order = self._tick[count:], self._place[count:], self._order[count:]
        return taken

    def _overtaken(self) -> NDArray[np.bool_]:
        """Which samples one of a later time, not far ahead, came before."""
        tick, order = self._tick, self._order
        late = np.zeros(len(tick), dtype=np.bool_)
        if (order[1:] > order[:-1]).all():
            return late
        for apart in range(1, len(tick)):
            near = tick[apart:] - tick[:-apart] <= self._reach
            if not near.any():
                break
            late[:-apart] |= near & (order[apart:] < order[:-apart])
        return late
