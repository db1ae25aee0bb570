"""Fixations, saccades and blinks. Times are ticks since the session's first sample."""

from typing import NamedTuple

from eyestream.gaze.profile import TICKS_PER_S


class Fixation(NamedTuple):
    """The eye at rest, or following something: [start, end).

    Attributes
    ----------
    start, end, confirmed
        Ticks; it is known at `confirmed`.
    x, y, var_x, var_y
        Mean direction (deg) and population variance (deg^2).
    pupil, var_pupil
        Mean diameter (mm) and population variance (mm^2) of the samples that have one; NaN where none has.
    """

    start: int
    end: int
    confirmed: int
    x: float
    y: float
    var_x: float
    var_y: float
    pupil: float
    var_pupil: float

    @property
    def duration_s(self) -> float:
        """Duration in seconds."""
        return (self.end - self.start) / TICKS_PER_S


class Saccade(NamedTuple):
    """A jump of the eye: [start, end), from (x, y) by (dx, dy) degrees between its first and its last sample."""

    start: int
    end: int
    confirmed: int
    x: float
    y: float
    dx: float
    dy: float


class Blink(NamedTuple):
    """A loss that a lid makes: [start, end)."""

    start: int
    end: int
    confirmed: int

    @property
    def duration_s(self) -> float:
        """Duration in seconds."""
        return (self.end - self.start) / TICKS_PER_S


Event = Fixation | Saccade | Blink
