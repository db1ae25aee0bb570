"""Whether the times of samples can be those of one tracker's clock in seconds: the reason, as a word for the log.

A clock that runs at another pace gives no row, because no sample of it is believed (`eyestream.gaze.clock_map`). Here
is said why. As in `eyestream.gaze.doubt` nothing is refused for it, and it goes into the log of the tracker's side.
"""

import numpy as np
from numpy.typing import NDArray

_NO_ROW = "Rows need times in seconds of one clock that keeps running"

CLOCK_DOUBTS: dict[str, str] = {
    "clock_ms": f"its times are in milliseconds. {_NO_ROW}: divide them by 1,000",
    "clock_us": f"its times are in microseconds. {_NO_ROW}: divide them by 1,000,000",
    "clock_ns": f"its times are in nanoseconds. {_NO_ROW}: divide them by 1,000,000,000",
    "clock_still": f"its times stand still. {_NO_ROW}: send the time of each sample, not that of the start",
    "clock_nan": f"its times are not numbers. {_NO_ROW}",
    "clock_pace": f"its times pass faster or slower than real time. {_NO_ROW}: compare them with the profile's unit",
    "clock_jumps": "its times jumped. Use a clock that nobody sets (monotonic), and send samples in order",
    "two": "two senders publish gaze of this device. Stop one of them, or give it another device's name",
}
"""Likely faults, by a word. No value is in any of them."""

LOOK_S = 8.0
"""Seconds from one judgement to the next."""

_JUMP_S = 1.0
_FEWEST = 20
_UNITS = {"clock_ms": 1e3, "clock_us": 1e6, "clock_ns": 1e9}
_PACE = 1.4
_TWICE = 1.5
_FEW = 3


class ClockDoubts:
    """Looks at the times of one tracker; a `judge` is about everything since the one before."""

    def __init__(self, rate_hz: float) -> None:
        self._rate_hz = rate_hz
        self._last: tuple[float, float] | None = None
        self._begin()

    def _begin(self) -> None:
        self._samples = self._nan = self._steps = self._still = self._ahead = self._back = self._overtaken = 0
        self._ran = self._came = self._went = self._changed = 0.0

    def take(self, t: NDArray[np.float64], arrived: NDArray[np.float64]) -> None:
        """Look at samples in the order of their arrival: (n,) seconds of the tracker, and of the host."""
        timed = np.isfinite(t)
        self._samples += len(t)
        self._nan += len(t) - int(np.count_nonzero(timed))
        t, arrived = t[timed], arrived[timed]
        if not len(t):
            return
        if self._last is not None:
            t, arrived = np.append(self._last[0], t), np.append(self._last[1], arrived)
        self._last = float(t[-1]), float(arrived[-1])
        steps, waits = np.diff(t), np.diff(arrived)
        jumps = ((steps > _JUMP_S) | (steps < 0.0)) & (np.abs(steps - waits) > _JUMP_S)  # not: what had waited
        sizes = np.abs(steps)
        self._steps += len(steps)
        self._still += int(np.count_nonzero(steps == 0.0))
        self._ahead += int(np.count_nonzero(jumps & (steps > 0.0)))
        self._back += int(np.count_nonzero(jumps & (steps < 0.0)))
        self._overtaken += int(np.count_nonzero(~jumps & (steps < 0.0)))
        self._ran += float(steps.sum())
        self._came += float(waits.sum())
        self._went += float(sizes.sum())
        self._changed += float(np.abs(np.diff(sizes)).sum())

    def judge(self, seconds: float) -> str | None:
        """A word of `CLOCK_DOUBTS` for what came in so many seconds; None: it may be the clock of one tracker."""
        found = self._word(seconds) if self._samples >= _FEWEST else None
        self._begin()
        return found

    def _word(self, seconds: float) -> str | None:
        if self._nan > 0.5 * self._samples:
            return "clock_nan"
        if self._still > 0.9 * self._steps:
            return "clock_still"
        fast = self._samples > _TWICE * self._rate_hz * seconds
        if min(self._ahead, self._back) >= _FEW or (fast and self._mixed):
            return "two"
        pace = self._ran / max(self._came, 1e-9)
        for word, factor in _UNITS.items():
            if 0.5 < pace / factor < 2.0:
                return word
        if self._ahead + self._back:
            return "clock_jumps"
        return None if 1 / _PACE < pace < _PACE else "clock_pace"

    @property
    def _mixed(self) -> bool:
        """Whether times overtake each other, or come in long and short steps by turns."""
        return self._overtaken > 0.02 * self._steps or self._changed > 0.5 * self._went
