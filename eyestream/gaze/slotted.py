"""Slots by the clock, one after the other: what a front end that makes one row of each has in common with another.

Slot k of a session is [k s, (k + 1) s) after its origin on the tracker's clock. When a slot is over follows from the
clock alone, and from no sample: a lost eye, or no samples at all, make slots too.
"""

from abc import ABC, abstractmethod
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from eyestream.gaze.samples import Samples
from eyestream.gaze.timeline import TimeCounters, Timeline

__all__ = ["Slotted"]

Content = TypeVar("Content", bound=NDArray[Any])


class Slotted(ABC, Generic[Content]):
    """One session of one tracker.

    Parameters
    ----------
    slot_us
        Length of a slot in microseconds.
    longest_step_s
        A sample further ahead of the last one, or of the clock, is dropped.
    origin_s
        Where the slots begin on the tracker's clock; None: at the first sample.

    Attributes
    ----------
    done : how many slots are over.
    """

    def __init__(self, slot_us: int, longest_step_s: float, origin_s: float | None) -> None:
        self._slot = slot_us
        self._timeline = Timeline(longest_step_s, origin_s)
        self.done = 0

    @property
    def counters(self) -> TimeCounters:
        """What became of the samples."""
        return self._timeline.counters

    def end_s(self, slot: int) -> float:
        """The tracker's clock at the end of a slot."""
        return self._timeline.seconds((slot + 1) * self._slot)

    def ends_s(self, over: int) -> NDArray[np.float64]:
        """(over,) the same of the last slots that are over."""
        return np.array([self.end_s(slot) for slot in range(self.done - over, self.done)], dtype=np.float64)

    @abstractmethod
    def _taken(self, samples: Samples) -> list[Content]:
        """Take samples into the open slot; the slots that are over at the time of the last one."""

    @abstractmethod
    def _close(self) -> Content:
        """What is in the open slot, which is over; the next one is empty."""

    def _advanced(self, now_s: float, samples: Samples | None) -> list[Content]:
        """Take samples, none after `now_s`; the slots that are over then.

        Samples at or before `now_s` that come later are dropped. What is not a number, or goes backward, is no
        progress.
        """
        over = [] if samples is None else self._taken(samples)
        self._timeline.clock = self._timeline.tick_of(now_s)
        return over + self._until(self._timeline.clock // self._slot)

    def _until(self, slot: int) -> list[Content]:
        """The open slot and empty ones after it, up to `slot`, which is open then."""
        over = []
        while self.done < slot:
            over.append(self._close())
            self.done += 1
        return over
