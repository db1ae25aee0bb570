"""Live gaze to rows at the host's pace: one row each step of a front end, whatever comes or does not come.

Samples come with the tracker's time and the time of their arrival. Two clocks do two things, and nothing passes from
one to the other within a session:

- **The tracker's clock decides what a row is.** Row k is that of the window which ends k steps after the session's
  first sample, by the tracker's own times. Its values are those that the front end makes of the samples of that window
  and of its memory around it: to the last bit the batch's.
- **The host's clock decides when a row is made**: `DELAY_S` after the moment at which its window ends by the session's
  map (`ClockMap`), which is fixed before the session begins. Never earlier, never later. A lost eye, a tracker that
  falls silent or floods, and a clock that doubles, halves or stops, give the same rows at the same moments.

A sample is lost when its own time cannot be true: when it arrives more than `DELAY_S` away from the map. That depends
on that sample alone. All others have arrived when their row is made. So no row depends on how late samples were, how
they were handed over, or when somebody asked.

**Memory.** Neighbours are two streams of samples that differ in one event: in the values, the latencies and the number
of samples whose times lie within its span. Claim: while the session goes on in both, d seconds of gaze enter at most
ceil(r (W + d + M)) rows, r a second, with M = `FrontEndEntry.memory_s`. All other rows have the same bits in both, and
every row has the same moment. Proof: the map and the grid are older than the event. Whether a sample is believed
depends on its own time, its own arrival and the map. Whether a believed sample goes on depends on the believed samples
of nearly its time (`Waiting`). The values of a row depend on the samples that went on and lie within its window or
shortly before it (the front end). M counts the last two.

Two things are the session's own, and an event that decides them is in all of its rows. The grid begins with the
session's first sample, and the second before that one makes the map. And where a session ends, the next one begins.

A session ends when nothing has come for `SILENCE_S` and the tracker has not answered either: it is off. It ends too
when the tracker's clock was set, or has drifted away. Another one begins when its clock has run evenly for a second.

Rows whose window has a quarter more samples than the profile's rate are lost: thresholds are those of that rate. (At
half of it and below, half of a window is missing.)

Pure: fed with samples and readings of a clock.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eyestream.gaze.clock_map import BAND_S, ClockMap
from eyestream.gaze.entry import USUAL, FrontEndEntry, RowMaker
from eyestream.gaze.profile import Profile
from eyestream.gaze.samples import Samples
from eyestream.gaze.timeline import LONGEST_STEP_S
from eyestream.gaze.waiting import Waiting

__all__ = ["DELAY_S", "SILENCE_S", "LiveFrontEnd", "LiveRows"]

DELAY_S = BAND_S
"""What samples are given for their way, for jitter and for the drift of a whole session."""

SILENCE_S = 60.0
"""After so long without any sample or answer a session is over."""

_FASTEST = 1.25
_ON_TIME_S = 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class LiveRows:
    """m rows of one session in succession; m may be 0 where it ends.

    Attributes
    ----------
    session
        Number of the session, from 0.
    number
        Of the first row in it.
    t
        (m,) the ends of their windows, on the tracker's clock: steps after the session's first sample, exactly.
    values
        (m, F) or NaN.
    end
        Whether the session ends after them.
    """

    session: int
    number: int
    t: NDArray[np.float64]
    values: NDArray[np.float64]
    end: bool = False


class LiveFrontEnd:
    """All sessions of one tracker, one after the other.

    Parameters
    ----------
    profile
        Of the tracker, with a rate.
    entry
        Of the front end that makes the rows.

    Attributes
    ----------
    clock : the map of the tracker's clock, to be read.
    waiting : the samples that wait for their row, to be read.
    too_fast : rows that count as lost because samples came faster than the profile's rate.
    """

    def __init__(self, profile: Profile, entry: FrontEndEntry = USUAL) -> None:
        self.profile, self.entry = profile, entry
        self.clock, self.waiting = ClockMap(), Waiting(profile, entry.step_s)
        self.too_fast = 0
        self._most = math.ceil(_FASTEST * profile.fixed_rate_hz * entry.window_s)
        self._made: list[LiveRows] = []
        self._front: RowMaker | None = None
        self._session = -1
        self._origin = self._began = self._heard = 0.0  # the first sample, by the tracker and by the host; the last one
        self._steps = 0

    @property
    def next_due(self) -> float | None:
        """When `due` must be called next, on the host's clock; None while no session is under way."""
        return None if self._front is None else self._moment(self._steps)

    def take(self, samples: Samples, arrived: NDArray[np.float64]) -> None:
        """Take samples on the tracker's clock; `arrived` (n,) is when each came, on the host's."""
        while len(samples):
            believed = self.clock.take(samples.t, arrived)
            self._put(samples[: len(believed)], arrived[: len(believed)], believed)
            samples, arrived = samples[len(believed) :], arrived[len(believed) :]
            if len(samples):
                self._begin(float(samples.t[0]), float(arrived[0]))

    def stand(self, now_s: float) -> None:
        """Note that the tracker answers when the host's clock shows `now_s`, whether or not it sends samples."""
        self._heard = max(self._heard, now_s)

    def due(self, now_s: float) -> list[LiveRows]:
        """Work on what waits; the rows whose moment has come when the host's clock shows `now_s`.

        All samples that arrived by then have been taken.
        """
        made, self._made = self._made, []
        return made + self._rows_by(now_s)

    def finish(self) -> list[LiveRows]:
        """No sample comes any more: the rows up to the last one's time, and the end of the session."""
        rows = self.due(self._heard + DELAY_S)
        return [*rows, self._end()] if self._front is not None else rows

    def _put(self, samples: Samples, arrived: NDArray[np.float64], believed: NDArray[np.bool_]) -> None:
        if len(arrived):
            self._heard = max(self._heard, float(arrived[-1]))  # also by what has no time to believe: it is there
        if believed.any():
            kept = samples if believed.all() else samples.picked(believed)
            self.waiting.put(Samples(kept.t - self._origin, kept.x, kept.y, kept.pupil_mm, kept.valid))

    def _begin(self, origin: float, arrived: float) -> None:
        """A session begins, after the one that was under way, with a sample of the time `origin`."""
        self._heard = max(self._heard, arrived)
        self._made += self._rows_by(arrived)
        if self._front is not None:
            self._made.append(self._end())
        assert self.clock.offset_s is not None
        self._front, self._steps = self.entry.make(self.profile, LONGEST_STEP_S, 0.0), 1
        self._origin, self._began = origin, origin + self.clock.offset_s
        self._session += 1

    def _end(self) -> LiveRows:
        self._front = None
        self.waiting.clear()
        return LiveRows(self._session, self._number, np.zeros(0), np.zeros((0, len(self.entry.names))), end=True)

    @property
    def _number(self) -> int:
        """Of the row that the next step makes; 0 too before there is one."""
        return max(0, self._steps - round(self.entry.window_s / self.entry.step_s))

    def _moment(self, step: int) -> float:
        """When the row of the window that ends with a step is made."""
        return self._began + step * self.entry.step_s + DELAY_S

    def _rows_by(self, now_s: float) -> list[LiveRows]:
        rows: list[LiveRows] = []
        while self._front is not None:
            moment = self._moment(self._steps)
            if now_s < moment - _ON_TIME_S:
                self._front.feed(self.waiting.until(now_s - self._began - DELAY_S))  # no other one will be as early
                break
            rows += self._row(self._front)
            self._steps += 1
            if moment - self._heard > SILENCE_S:
                rows.append(self._end())
                self.clock = ClockMap()
        return rows

    def _row(self, front: RowMaker) -> list[LiveRows]:
        """The row of the window that ends with this step; a sample of that very moment belongs to it."""
        end = self._steps * self.entry.step_s
        made = front.advance(end, self.waiting.until(end))
        if len(made) == 0:
            return []
        values = made.values
        if front.came > self._most:
            self.too_fast += 1
            values = np.full_like(values, np.nan)
        return [LiveRows(self._session, self._number, np.array([self._origin + end]), values)]
