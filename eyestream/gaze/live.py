"""Live gaze to rows at the host's pace: one row each half second, whatever comes or does not come.

Samples come with the tracker's time and the time of their arrival. They are placed on the host's clock (`ClockMap`),
so that a clock of the tracker's that is set, or drifts, moves no row. The row of the window that ends at te is made at
te + `DELAY_S`, never earlier and never later: its moment and its number are functions of the first sample's time and
the clock. A lost eye, a tracker that falls silent, a flood and a clock that is set all give the same rows at the same
moments; of what came in, too late samples are dropped. Samples that come faster than a quarter above the profile's rate
count as lost from the next second on: thresholds and memory are those of the profile's rate. (At half of it and below,
half of a window is missing.)

A session ends when nothing has come for `SILENCE_S`, and the tracker has not answered either: it is off. It begins anew
with the next sample.

Pure: fed with samples and readings of a clock.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eyestream.gaze.clock_map import ClockMap
from eyestream.gaze.features import NAMES, STEP_S, WINDOW_S
from eyestream.gaze.front_end import FrontEnd
from eyestream.gaze.profile import Profile
from eyestream.gaze.samples import Samples

__all__ = ["DELAY_S", "SILENCE_S", "LiveFrontEnd", "LiveRows"]

DELAY_S = 0.1
"""What samples are given for their way, beside the shortest way that the map knows of."""

SILENCE_S = 60.0
"""After so long without any sample or answer a session is over."""

_SLACK = 2.0
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
        (m,) the ends of their windows, on the tracker's clock.
    values
        (m, 52) or NaN.
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

    Attributes
    ----------
    clock : the map of the tracker's clock, to be read.
    overflowed : samples that were dropped because too many came at once.
    too_fast : samples that counted as lost because they came faster than the profile's rate.
    """

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        self.clock = ClockMap()
        self.overflowed = self.too_fast = 0
        self._second, self._in_second, self._too_many = -1, 0, False
        self._most_a_second = math.ceil(_FASTEST * profile.fixed_rate_hz) + 2
        self._most = math.ceil(_SLACK * profile.fixed_rate_hz)
        self._waiting = Samples.of([], [], [])
        self._front: FrontEnd | None = None
        self._session = -1
        self._origin = self._heard = 0.0
        self._steps = 0

    @property
    def next_due(self) -> float | None:
        """When `due` must be called next, on the host's clock; None while no session is under way."""
        return None if self._front is None else self._end(self._steps) + DELAY_S

    def take(self, samples: Samples, arrived: NDArray[np.float64]) -> None:
        """Take samples on the tracker's clock; `arrived` (n,) is when each came, on the host's.

        Of more than come in two seconds at the nominal rate, the oldest are dropped.
        """
        if len(samples) > self._most:
            self.overflowed += len(samples) - self._most
            samples, arrived = samples[-self._most :], arrived[-self._most :]
        host = self.clock.take(samples.t, arrived)
        believed = np.isfinite(host)
        if len(arrived):
            self._heard = max(self._heard, float(arrived[-1]))  # also by what has no time to believe: it is there
        if not believed.any():
            return
        if self._front is None:
            self._open(float(host[believed][0]))
        seen = samples.valid & believed & ~self._faster(host, believed)
        placed = Samples(host, samples.x, samples.y, samples.pupil_mm, seen)
        self._waiting = Samples.joined([self._waiting, placed]) if len(self._waiting) else placed
        if len(self._waiting) > self._most:
            self.overflowed += len(self._waiting) - self._most
            self._waiting = self._waiting[-self._most :]

    def stand(self, now_s: float) -> None:
        """Note that the tracker answers when the host's clock shows `now_s`, whether or not it sends samples."""
        self._heard = max(self._heard, now_s)

    def due(self, now_s: float) -> list[LiveRows]:
        """Work on what waits; the rows whose moment has come when the host's clock shows `now_s`."""
        rows: list[LiveRows] = []
        while self._front is not None:
            end = self._end(self._steps)
            if now_s < end + DELAY_S - _ON_TIME_S:
                # what lies behind it would make the row before its moment
                self._front.feed(self._until(end - _ON_TIME_S))
                break
            rows += self._row(self._front, end)
            self._steps += 1
            if end + DELAY_S - self._heard > SILENCE_S:
                rows.append(self._close())
        return rows

    def finish(self) -> list[LiveRows]:
        """No sample comes any more: the rows up to the last one's time, and the end of the session."""
        if self._front is None:
            return []
        rows = self.due(self._heard + DELAY_S)
        return [*rows, self._close()] if self._front is not None else rows

    def _faster(self, host: NDArray[np.float64], believed: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Which samples follow a second with too many, by the time that they are of; those not believed do not count.

        A sample whose time goes backward is late, and dropped behind: it counts for the second that is reached.
        """
        late = np.zeros(len(host), dtype=np.bool_)
        seconds = np.floor(host)
        for second in sorted(set(seconds[believed].tolist())):
            which = believed & (seconds == second)
            if second > self._second:
                followed = second == self._second + 1
                self._too_many = followed and self._in_second > self._most_a_second
                self._second, self._in_second = int(second), 0
            self._in_second += int(np.count_nonzero(which))
            if self._too_many:
                late |= which
                self.too_fast += int(np.count_nonzero(which))
        return late

    def _open(self, origin: float) -> None:
        self._front, self._origin, self._steps = FrontEnd(self.profile), origin, 1
        self._session += 1
        self._front.feed(Samples.of([origin], [np.nan], [np.nan]))  # the grid begins here, whatever comes first

    def _close(self) -> LiveRows:
        number = self._number
        self._front, self._waiting, self.clock = None, self._waiting[:0], ClockMap()
        return LiveRows(self._session, number, np.zeros(0), np.zeros((0, len(NAMES))), end=True)

    @property
    def _number(self) -> int:
        """Of the row that the next step makes; 0 too before there is one."""
        return max(0, self._steps - round(WINDOW_S / STEP_S))

    def _end(self, step: int) -> float:
        return self._origin + step * STEP_S

    def _until(self, end: float) -> Samples:
        """Take from what waits the samples at or before `end`."""
        early = ~(self._waiting.t > end)  # NaN is early, and dropped by the front end
        if early.all():
            taken, self._waiting = self._waiting, self._waiting[:0]
        else:
            taken, self._waiting = _picked(self._waiting, early), _picked(self._waiting, ~early)
        return taken

    def _row(self, front: FrontEnd, end: float) -> list[LiveRows]:
        """The row of the window that ends at `end`; a sample of that very moment belongs to it."""
        made = front.advance(end + _ON_TIME_S, self._until(end + _ON_TIME_S))
        if len(made) == 0:
            return []
        return [LiveRows(self._session, self._number, np.array([self.clock.tracker_s(end)]), made.values)]


def _picked(samples: Samples, which: NDArray[np.bool_]) -> Samples:
    return Samples(*(getattr(samples, name)[which] for name in ("t", "x", "y", "pupil_mm", "valid")))
