"""Live gaze to rows at the host's pace: one row each step of a front end, whatever comes or does not come.

Samples come with the tracker's time and the time of their arrival. Two clocks do two things, and nothing passes from
one to the other within a session:

- **The tracker's clock decides what a row is.** Row k is that of the window which ends k steps after the session's
  first sample, by the tracker's own times. Its values are those that the front end makes of the samples of that window
  and of its memory around it: to the last bit the batch's.
- **The host's clock decides when a row is made**: `DELAY_S` after the moment at which its window ends by the session's
  map (`ClockMap`), which is the delay of the session's first sample. Never earlier, never later. A lost eye, a tracker
  that falls silent or floods, and a clock that doubles, halves or stops, give the same rows at the same moments.

A sample is lost when its own time cannot be true: when it arrives more than `DELAY_S` away from the map. That depends
on that sample alone. All others have arrived when their row is made. So no row depends on how late samples were, how
they were handed over, or when somebody asked.

**Borders.** A session ends only at the moments of the host's clock at which the map is voted on (each `PERIOD_S`): when
the tracker's clock was set or has drifted away, or when the tracker is off, because it has not answered for
`SILENCE_S`. Its first vote must find that the map stands, or the session never was: the first row comes later than
that. The next session knows only what arrives after the vote that ended the last one.

**Memory.** d seconds of gaze enter at most ceil(r (W + d + M)) rows, r a second, W the window and M the entry's
`memory_s`: `MEMORY.md` has the proof.

Rows whose window has a quarter more samples than the profile's rate are lost: thresholds are those of that rate. (At
half of it and below, half of a window is missing.)

Pure: fed with samples and readings of a clock.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eyestream.gaze.clock_map import BAND_S, PERIOD_S, ClockMap
from eyestream.gaze.entry import USUAL, FrontEndEntry, RowMaker
from eyestream.gaze.profile import PLACES_PER_PERIOD, TICKS_PER_S, Profile, ticks
from eyestream.gaze.samples import Samples
from eyestream.gaze.timeline import LONGEST_STEP_S

DELAY_S = BAND_S
"""Seconds for samples on their way, for jitter and for the drift of a whole session."""

SILENCE_S = 60.0
"""After so long without an answer the tracker is off, and the next vote ends the session."""

_FASTEST = 1.25
_ON_TIME_S = 1e-6


class Waiting:
    """Samples of a session that wait for their row, in the order of their times, seconds since it began.

    Samples arrive out of order, twice, and in any number. What becomes of one is decided by others of nearly its own
    time alone, never by how many there were before:

    - The session is divided into *places*, at least `PLACES_PER_PERIOD` to a period of the profile's rate, and the end
      of a row's step is the end of a place. The first sample that arrives in a place has it, others are dropped. So
      what waits is bounded, a flood drops its own samples, and no two samples have one time.
    - A sample is dropped when one with a time up to `Profile.overtaken_ticks` later arrived before it: its time went
      backward. Where a clock was set back, what it shows a second time would else stand among what it showed first.

    So whether a sample goes on is a function of the samples from one place before it to `overtaken_ticks` and one place
    after it, which `Profile.memory_ticks` counts. How samples are handed over and when they are asked for does not
    matter, as long as all that arrived before a sample are here when that sample is asked for: later ones do not change
    it.

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
    due
        When the clock made them, on the host's clock; None where there are none.
    """

    session: int
    number: int
    t: NDArray[np.float64]
    values: NDArray[np.float64]
    end: bool = False
    due: float | None = None


class LiveFrontEnd:
    """All sessions of one tracker, one after the other.

    Parameters
    ----------
    profile
        Of the tracker, with a rate.
    answers
        Whether the tracker is asked, so that only `stand` says that it is there. Of one that cannot be asked, each
        sample says it too.
    entry
        Of the front end that makes the rows.

    Attributes
    ----------
    clock : the map of the tracker's clock, to be read.
    waiting : the samples that wait for their row, to be read.
    too_fast : rows that count as lost because samples came faster than the profile's rate.
    """

    def __init__(self, profile: Profile, answers: bool = False, entry: FrontEndEntry = USUAL) -> None:
        self.profile, self.entry = profile, entry
        self.clock, self.waiting = ClockMap(), Waiting(profile, entry.step_s)
        self.too_fast = 0
        self._answers = answers
        self._most = math.ceil(_FASTEST * profile.fixed_rate_hz * entry.window_s)
        self._made: list[LiveRows] = []
        self._front: RowMaker | None = None
        self._session, self._given = -1, False  # of the session under way, whether it has given a row
        self._origin = self._began = 0.0  # its first sample, by the tracker and by the host
        self._heard = self._vote = -math.inf  # the last answer; the next vote
        self._steps = 0

    @property
    def next_due(self) -> float | None:
        """When `due` must be called next, on the host's clock; None while no session is under way."""
        return None if self._front is None else min(self._moment, self._vote)

    def take(self, samples: Samples, arrived: NDArray[np.float64]) -> None:
        """Take samples on the tracker's clock; `arrived` (n,) is when each came, on the host's."""
        while len(samples):
            if arrived[0] >= self._vote - _ON_TIME_S:
                self._made += self._rows_by(float(arrived[0]))
            count = int(np.searchsorted(arrived, self._vote - _ON_TIME_S))
            self._put(samples[:count], arrived[:count])
            samples, arrived = samples[count:], arrived[count:]

    def stand(self, now_s: float) -> None:
        """Note that the tracker answers when the host's clock shows `now_s`, whether or not it sends samples."""
        self._heard = max(self._heard, now_s)

    def due(self, now_s: float) -> list[LiveRows]:
        """Work on what waits; the rows whose moment has come when the host's clock shows `now_s`.

        All samples that arrived by then have been taken.
        """
        made, self._made = self._made, []
        return made + self._rows_by(now_s)

    def finish(self, now_s: float) -> list[LiveRows]:
        """No sample comes any more: the rows of windows that end by `now_s`, and the end of the session."""
        return self.due(now_s + DELAY_S) + self._end()

    def cut(self) -> None:
        """End the session here: nothing that was taken until now is in a row that is made from now on."""
        self._made = self._end()

    def _put(self, samples: Samples, arrived: NDArray[np.float64]) -> None:
        """Samples of one period."""
        believed = self.clock.take(samples.t, arrived)
        if not self._answers:
            self.stand(float(arrived[-1]))  # also by what has no time to believe: it is there
        if not believed.any():
            return
        if self._front is None:
            first = int(np.argmax(believed))
            self._front, self._steps = self.entry.make(self.profile, LONGEST_STEP_S, 0.0), 1
            self._origin, self._began = float(samples.t[first]), float(arrived[first])
        kept = samples if believed.all() else samples.picked(believed)
        self.waiting.put(Samples(kept.t - self._origin, kept.x, kept.y, kept.pupil_mm, kept.valid))

    def _end(self) -> list[LiveRows]:
        """The end of the session; none where it has given no row."""
        given, number, self._given = self._given, self._number, False
        self._front = None
        self.clock.forget()
        self.waiting.clear()
        none = np.zeros((0, len(self.entry.names)))
        return [LiveRows(self._session, number, np.zeros(0), none, end=True)] if given else []

    @property
    def _number(self) -> int:
        """Number of the row that the next step makes; 0 too before there is one."""
        return max(0, self._steps - round(self.entry.window_s / self.entry.step_s))

    @property
    def _moment(self) -> float:
        """When the row of the window that ends with the next step is made."""
        return self._began + self._steps * self.entry.step_s + DELAY_S

    def _rows_by(self, now_s: float) -> list[LiveRows]:
        """Rows and votes that are due, in order; a vote comes before the row of its moment."""
        rows: list[LiveRows] = []
        while self._front is not None and now_s >= min(self._moment, self._vote) - _ON_TIME_S:
            if self._vote <= self._moment:
                rows += self._voted()
            else:
                rows += self._row(self._front)
                self._steps += 1
        if self._front is not None:
            self._front.feed(self.waiting.until(now_s - self._began - DELAY_S))  # no other one will be as early
        elif now_s >= self._vote - _ON_TIME_S:  # without a session there is nothing to vote on
            self._vote = PERIOD_S * (math.floor((now_s + _ON_TIME_S) / PERIOD_S) + 1)
        return rows

    def _voted(self) -> list[LiveRows]:
        """The end of the session where its map has fallen, or the tracker is off."""
        off = self._vote - self._heard > SILENCE_S
        self._vote += PERIOD_S
        return [] if self.clock.vote() and not off else self._end()

    def _row(self, front: RowMaker) -> list[LiveRows]:
        """The row of the window that ends with this step; a sample of that very moment belongs to it."""
        end, due = self._steps * self.entry.step_s, self._moment
        made = front.advance(end, self.waiting.until(end))
        if len(made) == 0:
            return []
        values = made.values
        if front.came > self._most:
            self.too_fast += 1
            values = np.full_like(values, np.nan)
        self._session += not self._given
        self._given = True
        return [LiveRows(self._session, self._number, np.array([self._origin + end]), values, due=due)]
