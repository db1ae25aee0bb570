"""A tracker's clock on the host's: where on the host's clock a sample lies, told by when samples arrive.

A sample arrives at the host some delay after it was taken, and no sample arrives earlier than the way takes. So the
offset between the two clocks, host minus tracker, is the least `arrived - t` of late: the lower envelope of the delays,
as in Cristian 1989 and Moon, Skelly and Towsley 1999. The least of the last `WINDOW_S` follows a clock that drifts:
at 100 ppm it is at most 1 ms behind. What is handed out goes towards it by at most `SLEW` of the time that passed, so
that mapped times never go backward and a velocity between two samples is right to a thousandth.

- Jitter only ever delays: it does not enter.
- A single wrong time, too far ahead or behind, is not believed: its mapped time is NaN. The clock stays.
- A clock that was set, in either direction, is one whose samples agree with each other for `STEP_AFTER_S` and with the
  old offset not at all. Then the map begins anew with them, and mapped times go on.
- A clock that does not run at a second a second (milliseconds taken for seconds, a time that stands still) never
  agrees with itself: no sample is believed.

Pure: time comes in with the samples. What it says depends on times alone, never on gaze.
"""

from collections import deque

import numpy as np
from numpy.typing import NDArray

__all__ = ["ClockMap"]

Array = NDArray[np.float64]

BAND_S = 0.02
"""Samples nearer to the offset than this say that the clock was not set."""

LATEST_S = 5.0
"""A sample that arrives later than this after its time, by the offset, is not believed."""

STEP_AFTER_S = 1.0
AGREEING_S = 0.2
"""A new offset is believed when all samples of the time before it agree with it to this."""

SLEW = 1e-3
SETTLING_S = 1.0
"""In its first second a map follows at once: what came first may have waited on its way."""

WINDOW_S = 10
_PART_S = 0.25
_LEAST_SAMPLES = 5
_DRIFT_AFTER_S = 20.0


class ClockMap:
    """One tracker's clock.

    Attributes
    ----------
    steps
        How often the tracker's clock was set.
    unbelieved
        Samples whose time was not believed.
    """

    def __init__(self) -> None:
        self.steps = self.unbelieved = 0
        self._offset: float | None = None
        self._began = self._last = 0.0
        self._least: deque[tuple[int, float]] = deque()  # (second of the host's clock, least delay in it)
        self._first: tuple[float, float] | None = None  # host's time and least delay, when the first window was full
        self._other: tuple[float, float, float, int] | None = None  # since when, least, largest, samples that disagree

    @property
    def offset_s(self) -> float | None:
        """Host's clock minus tracker's; None before the first sample."""
        return self._offset

    @property
    def drift_ppm(self) -> float | None:
        """How much faster the host's clock runs than the tracker's, in millionths; None until that can be told."""
        if self._first is None or not self._least or self._last - self._first[0] < _DRIFT_AFTER_S:
            return None
        return 1e6 * (self._envelope() - self._first[1]) / (self._last - self._first[0])

    def take(self, t: Array, arrived: Array) -> Array:
        """Where samples lie on the host's clock.

        Parameters
        ----------
        t
            (n,) seconds on the tracker's clock, in the order of arrival.
        arrived
            (n,) seconds on a clock of the host's that is never set, not decreasing.

        Returns
        -------
        numpy.ndarray
            (n,) seconds on the host's clock; NaN where a sample's time is not believed.
        """
        with np.errstate(invalid="ignore", over="ignore"):
            delay = arrived - t
        delay[~np.isfinite(delay)] = np.nan
        parts, begin = [], 0
        while begin < len(t):  # a part for each second or so: what waited for long comes at once
            last = len(t) if arrived[-1] <= arrived[begin] + _PART_S else 0
            end = max(last or int(np.searchsorted(arrived, arrived[begin] + _PART_S, side="right")), begin + 1)
            parts.append(self._part(t[begin:end], delay[begin:end], float(arrived[end - 1])))
            begin = end
        mapped = parts[0] if len(parts) == 1 else np.concatenate([np.zeros(0), *parts])
        self.unbelieved += int(np.count_nonzero(np.isnan(mapped)))
        return mapped

    def tracker_s(self, host_s: float) -> float:
        """What the tracker's clock shows when the host's shows `host_s`; the same before the first sample."""
        return host_s - (self._offset or 0.0)

    def _part(self, t: Array, delay: Array, now: float) -> Array:
        if self._offset is None:
            finite = delay[np.isfinite(delay)]
            if len(finite) == 0:
                return np.full(len(t), np.nan)
            self._begin(float(finite[0]), now)
        assert self._offset is not None
        near = np.abs(delay - self._offset) <= BAND_S  # NaN compares false
        if now - self._began < SETTLING_S:
            near |= (delay < self._offset) & (delay > self._offset - LATEST_S)
        if near.any():
            self._note(float(delay[near].min()), now)
            self._other = None
        elif self._stepped(delay, now):
            near = np.abs(delay - self._offset) <= BAND_S
        elapsed, self._last = max(now - self._last, 0.0), now
        self._follow(elapsed)
        believed = near | ((delay > self._offset) & (delay <= self._offset + LATEST_S))
        return np.where(believed, t + self._offset, np.nan)

    def _begin(self, delay: float, now: float) -> None:
        self._offset, self._began, self._last = delay, now, now
        self._least.clear()
        self._first = self._other = None

    def _note(self, least: float, now: float) -> None:
        second = int(now // 1.0)
        if self._least and self._least[-1][0] == second:
            least = min(least, self._least.pop()[1])
        self._least.append((second, least))
        while self._least[0][0] <= second - WINDOW_S:
            self._least.popleft()
        if self._first is None and now - self._began >= WINDOW_S:
            self._first = (now, self._envelope())

    def _envelope(self) -> float:
        return min(least for _, least in self._least)

    def _follow(self, elapsed: float) -> None:
        assert self._offset is not None
        if not self._least:
            return
        wanted = self._envelope() - self._offset
        if self._last - self._began < SETTLING_S:
            self._offset += min(wanted, 0.0)
        else:
            self._offset += min(max(wanted, -SLEW * elapsed), SLEW * elapsed)

    def _stepped(self, delay: Array, now: float) -> bool:
        """Note samples that disagree with the offset; True when they are a clock that was set, which now holds."""
        finite = delay[np.isfinite(delay)]
        if len(finite) == 0:
            return False
        low, high = float(finite.min()), float(finite.max())
        if self._other is not None:
            since, least, largest, count = self._other
            low, high, count = min(low, least), max(high, largest), count + len(finite)
        else:
            since, count = now, len(finite)
        if high - low > AGREEING_S:  # not one clock: forget them, and begin with the newest
            self._other = (now, float(finite[-1]), float(finite[-1]), 1)
            return False
        self._other = (since, low, high, count)
        if now - since < STEP_AFTER_S or count < _LEAST_SAMPLES:
            return False
        self._begin(low, now)
        self._note(low, now)
        self.steps += 1
        return True
