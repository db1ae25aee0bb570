"""Segmentation of fast and slow samples into events: runs, cuts on the clock's grid, losses.

Fed with samples whose label is final, in order. Samples of one label without a gap between them are a *run*. A slow run
that lasts is a fixation, and a judge says which fast runs are saccades. A gap closes the run. One that lasts as long as
a blink is a *loss*, which ends with the next sample. A fixation that lasts is cut at lines of the clock's grid, so that
rows hear of it before it ends.
"""

import itertools
import math

import numpy as np
from numpy.typing import NDArray

from eyestream.gaze.events import Blink, Event, Fixation
from eyestream.gaze.profile import Profile, ticks
from eyestream.gaze.runs import judge_of

Array = NDArray[np.float64]
Ticks = NDArray[np.int64]
Piece = tuple[Ticks, Array, Array, Array]  # t, x, y, pupil of some samples


class Segments:
    """Events of one session. Times are ticks of the tracker's clock.

    Attributes
    ----------
    last : time of the last sample.
    losing : whether a loss goes on since then.
    pieces : samples of the open run, of a fixation since its last cut; none: no run is open.
    fast, start : kind and begin of the open run.
    cut : the line of the grid at which the open fixation is cut next.
    judge : says which fast runs are saccades.
    """

    def __init__(self, profile: Profile) -> None:
        d, self._flicker = profile.detection, profile.flicker_deg
        self._gap, self._period, self._delay = profile.gap_ticks, profile.period_ticks, profile.delay_ticks
        self._fixation_min = ticks(d.fixation_min_s)
        self._cut_after, self._cut_grid = ticks(d.cut_after_s), ticks(d.cut_grid_s)
        self._saccade_min, self._saccade_max = ticks(d.saccade_min_s), ticks(d.saccade_max_s)
        self._blink_min, self._blink_max = ticks(d.blink_min_s), ticks(d.blink_max_s)
        # As if a sample had been there just before the session: what is lost from its start on is a loss like others.
        self.last = -self._period
        self.losing = False
        self.fast = False
        self.start = 0
        self.cut = 0
        self.pieces: list[Piece] = []
        self.judge = judge_of(profile)

    def take(self, piece: Piece, fast: NDArray[np.bool_], known: int) -> list[Event]:
        """Take samples whose labels are final; everything up to the tick `known` has been seen.

        Returns
        -------
        list
            Events that are complete, in any order; each says when it was confirmed, at the latest
            `delay_ticks` after `known`.
        """
        events: list[Event] = []
        t, x, y, pupil = piece
        if len(t):
            # Two slow neighbours far apart are not one fixation: the tracker flickers, which no speed shows.
            far = np.hypot(x[1:] - x[:-1], y[1:] - y[:-1]) > self._flicker
            torn = far & ~(fast[1:] | fast[:-1])
            breaks = np.flatnonzero((fast[1:] != fast[:-1]) | (t[1:] - t[:-1] > self._gap) | torn) + 1
            edges = [0, *breaks.tolist(), len(t)]
            for a, b in itertools.pairwise(edges):
                self._run((t[a:b], x[a:b], y[a:b], pupil[a:b]), bool(fast[a]), events)
        self._silence(known, events)
        # Copies, as the caller may write to its arrays. A fast run that is too long for a saccade keeps its ends alone:
        # so memory stays bounded, however long it lasts.
        if self.pieces:
            t, x, y, pupil = self._joined()
            long = self.fast and t[-1] - t[0] > self._saccade_max
            ends = slice(None, None, max(1, len(t) - 1) if long else 1)
            self.pieces = [(t[ends].copy(), x[ends].copy(), y[ends].copy(), pupil[ends].copy())]
        return events + self.judge.decided(known)

    def _run(self, piece: Piece, fast: bool, events: list[Event]) -> None:
        """Samples of one kind without a gap among them: part of the open run, or a new one."""
        first = int(piece[0][0])
        if first - self.last > self._gap:
            self._silence(first, events)
            if self.losing:
                lost = self.last + self._period
                if first - lost <= self._blink_max:
                    events.append(Blink(lost, first, first + self._delay))
                self.losing = False
                self.judge.end_loss(first)
        elif self.pieces and (fast != self.fast or self._torn(piece)):
            self._close(first, first + self._delay, events)
        if not self.pieces:
            self.fast, self.start = fast, first
            self.cut = self.first_cut(first)
        self.pieces.append(piece)
        self.last = int(piece[0][-1])
        if not fast and self.last >= self.cut + self._fixation_min:
            self._cut(events)

    def _torn(self, piece: Piece) -> bool:
        """Whether the samples, of the kind of the open run, are slow ones too far from it for one fixation."""
        _, x, y, _ = self.pieces[-1]
        apart = np.hypot(piece[1][0] - x[-1], piece[2][0] - y[-1])
        return not self.fast and bool(apart > self._flicker)

    def first_cut(self, start: int) -> int:
        """The line of the clock's grid at which a fixation that began at `start` is cut, if it lasts."""
        line = start + self._cut_after
        return line + -line % self._cut_grid

    def _silence(self, known: int, events: list[Event]) -> None:
        """Close the open run, and let a loss begin, where no sample came for long enough before `known`."""
        if self.pieces and known - self.last >= self._gap:
            self._close(self.last + self._period, self.last + self._gap + self._delay, events)
        lost = self.last + self._period
        if not self.losing and known - lost >= self._blink_min and known - self.last >= self._gap:
            self.losing = True
            self.judge.begin_loss(lost)

    def _close(self, end: int, confirmed: int, events: list[Event]) -> None:
        """The open run ends."""
        pieces, start = self._joined(), self.start
        self.pieces = []
        if not self.fast:
            if end - start >= self._fixation_min:
                events.append(_fixation(pieces, start, end, confirmed))
            return
        t, x, y, pupil = pieces
        if len(t) > 1 and self._saccade_min <= end - start <= self._saccade_max:
            self.judge.take(start, end, x, y, pupil)

    def _cut(self, events: list[Event]) -> None:
        """Cut the open fixation at the lines of the grid that it has outlived."""
        t, x, y, pupil = self._joined()
        begin = 0
        while self.last >= self.cut + self._fixation_min:
            a, b = np.searchsorted(t, [self.cut, self.cut + self._fixation_min]).tolist()
            part = (t[begin:a], x[begin:a], y[begin:a], pupil[begin:a])
            events.append(_fixation(part, self.start, self.cut, int(t[b]) + self._delay))
            self.start, begin = self.cut, a
            self.cut += self._cut_grid
        self.pieces = [(t[begin:], x[begin:], y[begin:], pupil[begin:])]

    def _joined(self) -> Piece:
        if len(self.pieces) == 1:
            return self.pieces[0]
        t, x, y, pupil = (np.concatenate(column) for column in zip(*self.pieces, strict=True))
        return t, x, y, pupil


def _moments(values: Array) -> tuple[float, float]:
    """Mean and population variance, in one order of additions for one array."""
    mean = np.add.reduce(values) / len(values)
    apart = values - mean
    return float(mean), float(np.add.reduce(apart * apart) / len(values))


def _fixation(piece: Piece, start: int, end: int, confirmed: int) -> Fixation:
    _, x, y, pupil = piece
    mean_x, var_x = _moments(x)
    mean_y, var_y = _moments(y)
    mean_pupil, var_pupil = _moments(pupil)
    if math.isnan(mean_pupil):  # some sample has no diameter
        sized = pupil[~np.isnan(pupil)]
        mean_pupil, var_pupil = _moments(sized) if len(sized) else (np.nan, np.nan)
    return Fixation(start, end, confirmed, mean_x, mean_y, var_x, var_y, mean_pupil, var_pupil)
