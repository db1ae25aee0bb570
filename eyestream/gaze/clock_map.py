"""A tracker's clock beside the host's: one difference for a whole session; votes at fixed moments keep or drop it.

The map decides one thing of a sample: whether its time can be true. It places no sample, because rows stand on the
tracker's own times. So a latency, which may depend on the eye, has no way into a row.

- **The map is the delay** ``arrived - t`` of one sample: the first one that has a time, where there is no map.
- **What is believed.** A sample whose delay lies within `BAND_S` of the map. Each sample is judged by its own time and
  arrival. What arrives later, or has a time too far ahead, is lost.
- **The vote.** The host's clock is divided into periods of `PERIOD_S`. At the end of each one, seconds vote: those that
  have a believed sample, and those that have one that is not believed, by the tracker's clock and by the host's,
  whichever are fewer. A new map stands when `LEAST` seconds had believed samples. An old one falls when fewer than
  `LEAST` had, and at least `LEAST` had others. After a fall everything is forgotten.
- **A clock that was set, or has drifted away**, is lost until the vote, and then has a map of its own.
- **A clock that does not run** at a second a second (milliseconds taken for seconds, a time that stands still, one that
  doubles or halves) leaves its map's band, and so has none for long enough to make a row. Its samples are lost.
- **What had waited** comes at once, so that it is in one or two seconds of the host's clock: it ends nothing.

`MEMORY.md` says what one second of gaze can decide, and why the map does not follow the clock.

Pure: time comes in with the samples.
"""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

BAND_S = 1.0
"""A sample is believed when its delay differs by less than this from that of the map."""

PERIOD_S = 5.0
"""From vote to vote."""

LEAST = 3
"""So many seconds decide: more than one second of gaze can be in, and more than half of a period."""

_SECOND_S = 1.0
_LARGEST_S = 2.0**33
"""Largest time of a clock. A float of more holds no microseconds: a clock that stands still there seems to run."""

_ROUNDING_S = 2e-6  # what is believed has come before the row of its moment is made, whatever floats do


class ClockMap:
    """One tracker's clock.

    Attributes
    ----------
    offset_s
        Host's clock minus tracker's; None where there is no map.
    unbelieved
        Samples whose time was not believed.
    """

    def __init__(self) -> None:
        self.unbelieved = 0
        self.forget()

    def forget(self) -> None:
        """The next sample makes another map."""
        self.offset_s: float | None = None
        self._new = True
        self._begin_period()

    def take(self, t: Array, arrived: Array) -> NDArray[np.bool_]:
        """Which samples are believed; they arrived in one period.

        Parameters
        ----------
        t
            (n,) seconds on the tracker's clock, in the order of arrival.
        arrived
            (n,) seconds on a clock of the host's that is never set, not decreasing.
        """
        with np.errstate(invalid="ignore", over="ignore"):
            delay = np.where(np.abs(t) < _LARGEST_S, arrived - t, np.nan)
        timed = np.isfinite(delay)
        if self.offset_s is None and timed.any():
            self.offset_s = float(delay[np.argmax(timed)])
        offset_s = np.nan if self.offset_s is None else self.offset_s
        believed = np.abs(delay - offset_s) < BAND_S - _ROUNDING_S  # NaN compares false
        self._believed |= _seconds(t[believed])
        if not believed.all():
            self.unbelieved += len(believed) - int(np.count_nonzero(believed))
            other = timed & ~believed
            self._others |= _seconds(t[other])
            self._others_came |= _seconds(arrived[other])
        return believed

    def vote(self) -> bool:
        """At the end of a period: whether the map stands for the next one. One that falls is forgotten."""
        others = min(len(self._others), len(self._others_came))
        stands = len(self._believed) >= LEAST or not (self._new or others >= LEAST)
        if stands:
            self._new = False
            self._begin_period()
        else:
            self.forget()
        return stands

    def _begin_period(self) -> None:
        self._believed: set[float] = set()
        self._others: set[float] = set()
        self._others_came: set[float] = set()


def _seconds(t: Array) -> set[float]:
    """The seconds that times lie in; of nonsense in any number as many as can decide."""
    return set(np.unique(np.floor(t / _SECOND_S))[:LEAST].tolist())
