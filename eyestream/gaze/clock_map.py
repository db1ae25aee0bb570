"""A tracker's clock beside the host's: one difference for a whole session, found before the session and never moved.

The map decides one thing of a sample: whether its time can be true. It places no sample, because rows stand on the
tracker's own times. So a latency, which may depend on the eye, has no way into a row.

- **How it is found.** The delays ``arrived - t`` of samples tell the difference between the clocks (host minus
  tracker). When their medians in two parts in succession, each of `PART_S`, agree to `AGREEING_S`, and most delays lie
  near to theirs, the clock runs, and the later median is the map. Single wrong times, jitter, portions, and what had
  waited before have no say.
- **What is believed.** A sample whose delay lies within `BAND_S` of the map. Each sample is judged by its own time and
  arrival. What arrives later, or has a time too far ahead, is lost.
- **Another clock.** When no sample was believed for two such parts, and these agree, the tracker's clock was set, or
  has drifted away. The sample after them is the first one of another session, with a map of its own.
- **A clock that does not run** at a second a second (milliseconds taken for seconds, a time that stands still, one that
  doubles or halves) does not agree with itself. Its samples are lost.

**Drift.** `BAND_S` is what drift, jitter, portions and the eye may use up together. At 100 ppm drift takes 0.36 s an
hour, so a session lasts 2 hours and 0.28 s are left for the rest. A sample is late from then on, and the session ends
when all of them are.

**Why the map does not follow the clock.** What follows latencies carries what they depend on, for as long as it
follows. The least delay of ten seconds, handed out slowly, carried one blink for more than ten seconds. Any other rule
that adapts has a threshold, and near the threshold one event decides.

Pure: time comes in with the samples.
"""

import math
from dataclasses import dataclass
from statistics import median

import numpy as np
from numpy.typing import NDArray

__all__ = ["BAND_S", "ClockMap"]

Array = NDArray[np.float64]

BAND_S = 1.0
"""A sample is believed when its delay differs by less than this from that of the map."""

PART_S = 0.5
AGREEING_S = 0.2
"""Less than a clock at half its pace moves away in `PART_S`."""

_LARGEST_S = 2.0**33
"""Of a larger number a float does not hold the microseconds, so that a clock which stands still there seems to run."""

_LEAST_SAMPLES, _MOST_SAMPLES = 3, 4096  # of a part, that have a say
_TOGETHER = 0.75
_ROUNDING_S = 2e-6  # what is believed has come before the row of its moment is made, whatever floats do


@dataclass(slots=True)
class _Part:
    """A while without a sample that is believed: since when, the delays in it, and the median of the while before."""

    began: float
    delays: list[float]
    before: float | None

    def runs(self) -> bool:
        """Whether these are delays of a clock that runs, as it did in the while before."""
        middle = median(self.delays)
        near = sum(abs(delay - middle) <= PART_S for delay in self.delays)
        together = near >= _TOGETHER * len(self.delays)  # not so where times are any
        return together and self.before is not None and abs(self.before - middle) <= AGREEING_S


class ClockMap:
    """One tracker's clock.

    Attributes
    ----------
    offset_s
        Host's clock minus tracker's; None before it was found.
    unbelieved
        Samples whose time was not believed.
    """

    def __init__(self) -> None:
        self.unbelieved = 0
        self.offset_s: float | None = None
        self._part: _Part | None = None

    def take(self, t: Array, arrived: Array) -> NDArray[np.bool_]:
        """Which samples are believed, up to the one from which on another clock holds.

        Parameters
        ----------
        t
            (n,) seconds on the tracker's clock, in the order of arrival.
        arrived
            (n,) seconds on a clock of the host's that is never set, not decreasing.

        Returns
        -------
        numpy.ndarray
            (m,) of the first m samples. Where m < n, sample m has begun another clock, `offset_s` is that clock's, and
            the samples from m on are to be taken again.
        """
        with np.errstate(invalid="ignore", over="ignore"):
            delay = np.where(np.abs(t) < _LARGEST_S, arrived - t, np.nan)
            believed = np.abs(delay - (math.nan if self.offset_s is None else self.offset_s)) < BAND_S - _ROUNDING_S
        if believed.all():
            self._part = None
            return believed
        count = self._before_another(delay, arrived, believed)
        self.unbelieved += count - int(np.count_nonzero(believed[:count]))
        return believed[:count]

    def _before_another(self, delay: Array, arrived: Array, believed: NDArray[np.bool_]) -> int:
        """How many samples come before one that begins another clock."""
        told = zip(delay.tolist(), arrived.tolist(), believed.tolist(), strict=True)
        for index, (late, now, known) in enumerate(told):
            if known:
                self._part = None
            elif math.isfinite(late) and self._begins(late, now):
                return index
        return len(delay)

    def _begins(self, delay: float, now: float) -> bool:
        """Note a sample that is not believed; True when it begins another clock, which now holds."""
        part = self._part
        if part is None:
            self._part = _Part(now, [delay], None)
            return False
        if now - part.began < PART_S or len(part.delays) < _LEAST_SAMPLES:
            if len(part.delays) < _MOST_SAMPLES:
                part.delays.append(delay)
            return False
        offset = median(part.delays)
        if not part.runs() or abs(delay - offset) >= BAND_S:  # a single wrong time begins nothing
            self._part = _Part(now, [delay], offset)
            return False
        self.offset_s, self._part = offset, None
        return True
