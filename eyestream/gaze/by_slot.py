"""From gaze samples to one row of each slot, by the clock: fed, never asking.

Slot k of a session is [k s, (k + 1) s) after its origin on the tracker's clock. Its row follows from its own samples,
so samples of t seconds enter at most ceil(t / s) + 1 slots and nothing else reads them. The cadence follows the clock,
never the eye: a lost eye, or no samples at all, make slots too. A sample whose time does not go forward, or lies far
ahead, is dropped and counted, and so is one of a slot that is over.

What a wrong time that is not too far ahead does to the samples after it is said in `eyestream.gaze.front_end`.
"""

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

from eyestream.gaze.samples import Samples, TimedRows
from eyestream.gaze.timeline import LONGEST_STEP_S, TimeCounters, Timeline


class BySlot(ABC):
    """One session of one tracker, as `eyestream.gaze.entry.RowMaker`; what a row is, a subclass says.

    Parameters
    ----------
    features
        Numbers of a row.
    slot_us
        Length of a slot in microseconds.
    longest_step_s
        A sample further ahead of the last one, or of the clock, is dropped.
    origin_s
        Where the slots begin on the tracker's clock; by default at the first sample.

    Attributes
    ----------
    done : how many slots were returned.
    came : how many samples lay in the last of them.
    """

    def __init__(
        self, features: int, slot_us: int, longest_step_s: float = LONGEST_STEP_S, origin_s: float | None = None
    ) -> None:
        self._features, self._slot = features, slot_us
        self._timeline = Timeline(longest_step_s, origin_s)
        self.done = self.came = self._count = 0

    @abstractmethod
    def fill(self, at_us: NDArray[np.int64], samples: Samples) -> None:
        """Take samples of the open slot; `at_us` (m,) since the slot began."""

    @abstractmethod
    def close(self) -> NDArray[np.float64]:
        """(F,) the row of the open slot; the one that opens has no samples."""

    @property
    def counters(self) -> TimeCounters:
        """Counters of the samples."""
        return self._timeline.counters

    def feed(self, samples: Samples) -> TimedRows:
        """Take samples, any number; the rows of the slots that are over at the time of the last one."""
        ticks, which = self._timeline.take(samples.t)
        slots, over = ticks // self._slot, []
        for part in np.split(np.arange(len(slots)), np.flatnonzero(slots[1:] != slots[:-1]) + 1):
            if len(part):
                over += self._until(int(slots[part[0]]))
                self.fill(ticks[part] % self._slot, samples.picked(which[part]))
                self._count += len(part)
        return self._rows(over)

    def advance(self, now_s: float, samples: Samples | None = None) -> TimedRows:
        """The rows of the slots that are over when the tracker's clock shows `now_s`, whether samples came or not.

        `samples`, none after `now_s`, are taken first. Samples at or before `now_s` that come later are dropped. What
        is not a number, or goes backward, is no progress.
        """
        over = [] if samples is None else list(self.feed(samples).values)
        self._timeline.clock = self._timeline.tick_of(now_s)
        return self._rows(over + self._until(self._timeline.clock // self._slot))

    def _until(self, slot: int) -> list[NDArray[np.float64]]:
        """The open slot and empty ones after it, up to `slot`, which is open then."""
        over = []
        while self.done < slot:
            over.append(self.close())
            self.came, self._count = self._count, 0
            self.done += 1
        return over

    def _rows(self, over: list[NDArray[np.float64]]) -> TimedRows:
        ends = [self._timeline.seconds((self.done - i) * self._slot) for i in reversed(range(len(over)))]
        return TimedRows(np.array(ends, dtype=np.float64), np.array(over, dtype=np.float64).reshape(-1, self._features))
