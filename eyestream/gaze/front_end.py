"""From gaze samples to rows of 52 features, one each 0.5 s over the last 30 s: fed, never asking.

Rows stand on a grid that begins with the session's first sample; the first one comes 30 s after it. A row over
(te - 30 s, te] counts the events that are *known* at te, so it is a function of samples up to te alone, and of none
before te - 30 s - M, where M is `Profile.memory_s`. How samples are handed over does not matter: whole, one by one, or
in between, every bit of every row is the same.

The cadence follows the clock, never the eye: a lost eye, or no samples at all, give rows of NaN, and `advance` makes
the rows that are due when no sample comes. A sample whose time does not go forward, or lies far ahead, is dropped and
counted (`counters`); it never stops the front end. M bounds what gaze, diameters, and lost samples do. Time is not the
eye's: a wrong time that is not too far ahead makes the samples after it late, so a source must not pass one on.
"""

import math

import numpy as np
from numpy.typing import NDArray

from eyestream.gaze.detector import Detector
from eyestream.gaze.features import NAMES
from eyestream.gaze.profile import Profile, ticks
from eyestream.gaze.samples import Samples, TimedRows
from eyestream.gaze.timeline import LONGEST_STEP_S, TimeCounters, Timeline
from eyestream.gaze.window import STEP, WINDOW, Window

_BLOCK = 8192
"""Samples that are worked on at once; what is held between calls does not depend on it."""

_PATIENCE = 256
"""Samples that may wait for the next row to be due, when they come in small portions."""

_WIDEST_DEG = 180.0
_LARGEST_PUPIL_MM = 100.0

Array = NDArray[np.float64]


class FrontEnd:
    """One session of one tracker.

    Parameters
    ----------
    profile
        Of the tracker, with a rate.
    longest_step_s
        A sample further ahead of the last one, or of the clock, is dropped. A recording may have longer gaps than live
        gaze, where `advance` goes on with the clock.
    origin_s
        Where the grid of the rows begins on the tracker's clock; by default at the first sample.

    Raises
    ------
    ConfigError
        when the profile leaves its rate open.
    """

    def __init__(self, profile: Profile, longest_step_s: float = LONGEST_STEP_S, origin_s: float | None = None) -> None:
        self.profile = profile
        self._timeline = Timeline(longest_step_s, origin_s)
        self._detector, self._window = Detector(profile), Window(profile)
        self._frozen, self._gap = ticks(profile.detection.frozen_s), profile.gap_ticks
        self._still = (np.nan, np.nan, -(10**15), 0)  # x and y of the last tracked sample, its tick, unchanged since
        self._end = STEP
        self._pending: list[Samples] = []
        self._patience = _PATIENCE

    @property
    def counters(self) -> TimeCounters:
        """Counters of the samples that have been worked on; the last few wait for the next row."""
        return self._timeline.counters

    @property
    def came(self) -> int:
        """How many samples lie in the window of the last row, tracked or not."""
        return self._window.came

    def feed(self, samples: Samples) -> TimedRows:
        """Take samples, any number; returns the rows that are due at the time of the last one."""
        if len(samples):
            self._pending.append(samples)
            self._patience -= len(samples)
            latest = samples.t[0] if len(samples) == 1 else samples.t.max()
            if self._patience <= 0 or not latest < self._timeline.seconds(self._end) - 1e-6:
                return self._rows(self._work())
            self._pending[-1] = samples.copy()  # the caller may fill its arrays again
        return self._rows([])

    def advance(self, now_s: float, samples: Samples | None = None) -> TimedRows:
        """The rows that are due when the tracker's clock shows `now_s`, whether samples came or not.

        `samples`, none after `now_s`, are taken first, in the same step (`feed` would work twice).
        Samples at or before `now_s` that come later are dropped, so leave them the time that they need on their way.
        Rows are made for at most the longest step in one call; what is not a number, or goes backward, is no progress.
        """
        if samples is not None and len(samples):
            self._pending.append(samples)
        rows = self._work(now_s)
        tick = self._timeline.tick_of(now_s)
        if tick > self._timeline.clock:
            self._timeline.clock = tick
            nothing = np.zeros(0, dtype=np.int64)
            self._window.put(self._detector.take(nothing, np.zeros((3, 0)), tick))
            rows += self._due(tick)
        return self._rows(rows)

    def _work(self, now_s: float = -math.inf) -> list[tuple[int, Array]]:
        """Work on the samples that wait; returns the rows that are due, at the last of them or at `now_s`."""
        if not self._pending:
            return []
        samples = self._pending[0] if len(self._pending) == 1 else Samples.joined(self._pending)
        self._pending, self._patience = [], _PATIENCE
        t, which = self._timeline.take(samples.t)
        rows: list[tuple[int, Array]] = []
        for a in range(0, len(t), _BLOCK):
            part = t[a : a + _BLOCK]
            clock = int(part[-1])
            if a + _BLOCK >= len(t):  # no other sample comes up to `now_s`: one step for both
                clock = self._timeline.clock = self._timeline.tick_of(now_s)
            self._block(part, samples, which[a : a + _BLOCK], clock)
            rows += self._due(clock)
        return rows

    def _block(self, t: NDArray[np.int64], samples: Samples, which: NDArray[np.intp], clock: int) -> None:
        x, y, pupil = samples.x[which], samples.y[which], samples.pupil_mm[which]
        tracked = samples.valid[which] & (np.abs(x) <= _WIDEST_DEG) & (np.abs(y) <= _WIDEST_DEG)  # NaN compares false
        sized = (pupil > 0.0) & (pupil <= _LARGEST_PUPIL_MM)
        values = np.stack((x, y, np.where(sized, pupil, np.nan)))[:, tracked]
        self._window.put(self._detector.take(t[tracked], values, clock))
        usable = tracked.copy()
        usable[tracked] = self._moving(t[tracked], values[0], values[1])
        self._window.count(t, usable, sized & tracked)

    def _moving(self, t: NDArray[np.int64], x: Array, y: Array) -> NDArray[np.bool_]:
        """Which tracked samples are not the repetition of a value that has been there for `frozen_s`."""
        if self._frozen == 0 or len(t) == 0:
            return np.ones(len(t), dtype=np.bool_)
        last_x, last_y, last_t, since = self._still
        same = np.empty(len(t), dtype=np.bool_)
        same[0] = x[0] == last_x and y[0] == last_y and t[0] - last_t <= self._gap
        same[1:] = (x[1:] == x[:-1]) & (y[1:] == y[:-1]) & (t[1:] - t[:-1] <= self._gap)
        began = np.maximum.accumulate(np.where(same, since, t))
        self._still = (float(x[-1]), float(y[-1]), int(t[-1]), int(began[-1]))
        return np.asarray(t - began < self._frozen)

    def _due(self, clock: int) -> list[tuple[int, Array]]:
        """The rows up to the tick `clock`."""
        rows = []
        while self._end <= clock:
            self._window.move(self._end)
            if self._end >= WINDOW:
                rows.append((self._end, self._window.row()))
            self._end += STEP
        return rows

    def _rows(self, rows: list[tuple[int, Array]]) -> TimedRows:
        if not rows:
            return TimedRows(np.zeros(0), np.zeros((0, len(NAMES))))
        t = np.array([self._timeline.seconds(end) for end, _ in rows])
        return TimedRows(t, np.stack([values for _, values in rows]))
