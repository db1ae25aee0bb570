"""From gaze samples to slots of evenly spaced samples by the clock: fed, never asking.

A slot has w places of equal length. A place has the last sample of its slot that came by the end of the place, so a
slow tracker is held inside a slot, and nothing of another slot is read. How many places a slot has follows from the
clock alone: a tracker that sends more samples, or whose clock jumps, makes no more of them. A row is one slot: w
azimuths, w elevations, and w times whether the eye was seen. What is not seen is 0.
"""

import numpy as np
from numpy.typing import NDArray

from eyestream.gaze.entry import FrontEndEntry, Rows
from eyestream.gaze.profile import ticks
from eyestream.gaze.samples import Samples
from eyestream.gaze.timeline import TimeCounters, Timeline
from eyestream.privacy.calibration import Calibration
from eyestream.privacy.mechanisms.kaleido.tables import mark_of, settings_of

__all__ = ["Places", "place_rows"]


class Places:
    """One session of one tracker, as `eyestream.gaze.entry.RowMaker`.

    Parameters
    ----------
    w
        Places of a slot.
    slot_us
        Length of a slot in microseconds.
    longest_step_s, origin_s
        As for `eyestream.gaze.slots.Slots`.
    """

    def __init__(self, w: int, slot_us: int, longest_step_s: float, origin_s: float | None = None) -> None:
        self._w, self._slot = w, slot_us
        self._timeline = Timeline(longest_step_s, origin_s)
        self._done, self._count, self.came = 0, 0, 0
        self._open = self._empty()

    @property
    def counters(self) -> TimeCounters:
        """What became of the samples."""
        return self._timeline.counters

    def feed(self, samples: Samples) -> Rows:
        """Take samples; the rows of the slots that are over at the time of the last one."""
        tick, which = self._timeline.take(samples.t)
        seen = samples.valid[which]
        values = np.where(seen, (samples.x[which], samples.y[which], seen), 0.0)
        over: list[NDArray[np.float64]] = []
        for at, value in zip(tick.tolist(), values.T, strict=True):
            over += self._until(at // self._slot)
            self._open[:, at % self._slot * self._w // self._slot :] = value[:, None]
            self._count += 1
        return self._rows(over)

    def advance(self, now_s: float, samples: Samples | None = None) -> Rows:
        """Take samples, none after `now_s`; the rows of the slots that are over then."""
        over = [] if samples is None else list(self.feed(samples).values)
        self._timeline.clock = self._timeline.tick_of(now_s)
        return self._rows(over + self._until(self._timeline.clock // self._slot))

    def _until(self, slot: int) -> list[NDArray[np.float64]]:
        """The open slot and empty ones after it, up to `slot`, which is open then."""
        over = []
        while self._done < slot:
            over.append(self._open.ravel())
            self._open, self.came, self._count = self._empty(), self._count, 0
            self._done += 1
        return over

    def _rows(self, over: list[NDArray[np.float64]]) -> Rows:
        ends = [self._timeline.seconds((self._done - len(over) + i + 1) * self._slot) for i in range(len(over))]
        return Rows(np.array(ends, dtype=np.float64), np.array(over, dtype=np.float64).reshape(-1, 3 * self._w))

    def _empty(self) -> NDArray[np.float64]:
        return np.zeros((3, self._w))


def place_rows(calibration: Calibration) -> FrontEndEntry:
    """The front end of a calibration of Kaleido: its samples a slot, and its length of a slot."""
    w, slot_s = settings_of(calibration).w, 1 / calibration.rate_hz
    mark = mark_of(w, w * calibration.rate_hz)
    return FrontEndEntry(
        name="places",
        names=calibration.names,
        units=calibration.units,
        step_s=slot_s,
        window_s=slot_s,
        memory_s=lambda profile: profile.live_reach_s,
        mark=lambda _: mark,
        make=lambda _, longest_s, origin_s: Places(w, ticks(slot_s), longest_s, origin_s),
    )
