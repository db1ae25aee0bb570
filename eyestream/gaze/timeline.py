"""The time of one session: whole microseconds since its first sample, which only go forward."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eyestream.gaze.profile import TICKS_PER_S, ticks

LONGEST_STEP_S = 60.0
"""A sample further ahead of the time reached is not believed: a unit of time was mistaken, or a clock set. Those after
one that is believed are late, so this is also how long a single wrong time can do harm."""


@dataclass(slots=True)
class TimeCounters:
    """Samples by what became of them.

    Attributes
    ----------
    accepted
        Those whose time went forward.
    no_time
        The time was not a number.
    late
        At or before the time that was reached: repeated, going backward, or behind the clock.
    jumped
        More than the longest step ahead of it. If nothing else comes, the tracker's clock was set: begin a new session.
    """

    accepted: int = 0
    no_time: int = 0
    late: int = 0
    jumped: int = 0


class Timeline:
    """Turns seconds into ticks, and says which samples go forward.

    Parameters
    ----------
    longest_step_s
        A sample further ahead of the time reached is dropped.
    origin_s
        Where the session begins on the tracker's clock; by default at its first sample.

    Attributes
    ----------
    origin_s
        The tracker's clock where the session begins; None before that is known.
    clock
        The tick that was reached, by samples or by the clock; -1 before the session.
    """

    def __init__(self, longest_step_s: float = LONGEST_STEP_S, origin_s: float | None = None) -> None:
        self._longest = ticks(longest_step_s)
        self.origin_s = origin_s
        self.clock = -1
        self.counters = TimeCounters()

    def take(self, t: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.intp]]:
        """Ticks of the samples at (n,) seconds that go forward, and their indices. Moves the clock."""
        finite = np.isfinite(t)
        which = np.arange(len(t)) if finite.all() else np.flatnonzero(finite)
        self.counters.no_time += len(t) - len(which)
        if len(which) == 0:
            return np.zeros(0, dtype=np.int64), which
        if self.origin_s is None:
            self.origin_s = float(t[which[0]])
        with np.errstate(over="ignore"):
            since = (t[which] - self.origin_s) * TICKS_PER_S
        elapsed = np.rint(np.clip(since, -1e15, 1e15)).astype(np.int64)  # 30 years, exact in a float
        steps = elapsed[1:] - elapsed[:-1]
        first = int(elapsed[0]) - self.clock
        least, most = (min(first, int(steps.min())), max(first, int(steps.max()))) if len(steps) else (first, first)
        if least <= 0 or most > self._longest:
            forward = self._forward(elapsed)
            elapsed, which = elapsed[forward], which[forward]
        if len(elapsed):
            self.clock = int(elapsed[-1])
        self.counters.accepted += len(elapsed)
        return elapsed, which

    def _forward(self, elapsed: NDArray[np.int64]) -> list[int]:
        """Indices of the samples that go forward, one after the other."""
        clock, forward = self.clock, []
        for i, tick in enumerate(elapsed.tolist()):
            if tick <= clock:
                self.counters.late += 1
            elif tick - clock > self._longest:
                self.counters.jumped += 1
            else:
                clock = tick
                forward.append(i)
        return forward

    def tick_of(self, now_s: float) -> int:
        """The tick of a reading of the tracker's clock, at most the longest step ahead; the clock itself otherwise."""
        if self.origin_s is None or not np.isfinite(now_s):
            return self.clock
        since = min(max((now_s - self.origin_s) * TICKS_PER_S, -1e15), 1e15)
        return min(max(int(np.floor(since)), self.clock), self.clock + self._longest)

    def seconds(self, tick: int) -> float:
        """The tracker's clock at a tick."""
        return (self.origin_s or 0.0) + tick / TICKS_PER_S
