"""A time that only goes forward, made of one that may not."""

import math

__all__ = ["Clock"]

_LONGEST_STEP_S = 86_400.0
_ROUNDING_S = 1e-6


class Clock:
    """Seconds since the first reading.

    A reading that is not finite, or lies before the last one, is no progress; one more than a day ahead is a day.
    Afterwards time goes on from the new reading, so that one wrong reading does not stop it.
    """

    def __init__(self) -> None:
        self.time = 0.0
        self._offset: float | None = None

    @property
    def offset(self) -> float | None:
        """What is added to the caller's readings; None before the first."""
        return self._offset

    @classmethod
    def restore(cls, time: float, offset: float | None) -> "Clock":
        """The clock that showed `time` at `offset`."""
        clock = cls()
        clock.time, clock._offset = time, offset
        return clock

    def read(self, now: float) -> float:
        """Take a reading of the caller's clock; returns the time."""
        if not math.isfinite(now):
            return self.time
        if self._offset is None:
            self._offset = -now
        ahead = now + self._offset
        latest = self.time + _LONGEST_STEP_S
        if not self.time <= ahead <= latest:
            ahead = min(max(ahead, self.time), latest)
            self._offset = ahead - now
        self.time = ahead
        return ahead

    def reached(self, deadline: float) -> bool:
        """Whether it is `deadline`, to the microsecond: what `reading` said must do, though floats round."""
        return deadline <= self.time + _ROUNDING_S

    def reading(self, deadline: float) -> float:
        """What the caller's clock shows at `deadline`; before any finite reading that is not known: at once."""
        return -math.inf if self._offset is None else deadline - self._offset
