"""The gatekeeper as it was published: it answers from *raw* gaze (David-John, Hosfelt, Butler, Jain, TVCG 2021).

**No guarantee of privacy.** Each answer is a function of what the eye did, to the microsecond. It is here for the study
alone, beside `eyestream.gaze.gatekeeper`, which answers from released gaze.
"""

from collections.abc import Sequence

from eyestream.gaze.events import Event, Fixation, Saccade
from eyestream.gaze.questions import Rectangle

__all__ = ["CLAIM", "RawGatekeeper"]

CLAIM = "none"


class RawGatekeeper:
    """Answers from the events of raw gaze.

    Parameters
    ----------
    events
        Of the detector, in any order.
    """

    def __init__(self, events: Sequence[Event]) -> None:
        ordered = sorted(events, key=lambda event: event.start)
        self._fixations = [event for event in ordered if isinstance(event, Fixation)]
        self._saccades = [event for event in ordered if isinstance(event, Saccade)]

    def fixations(self, within: Rectangle) -> list[Fixation]:
        """`getFixations`: those whose mean direction lies inside."""
        return [one for one in self._fixations if within.holds(one.x, one.y)]

    def dwell_time_ms(self, fixation: Fixation) -> float:
        """`getDwellTime`: how long a fixation lasts."""
        return fixation.duration_s * 1000.0

    def saccades(self, within: Rectangle) -> list[tuple[float, float]]:
        """`getSaccades`: of those that land inside, duration in seconds and amplitude in degrees, and no more."""
        inside = (one for one in self._saccades if within.holds(one.x + one.dx, one.y + one.dy))
        return [((one.end - one.start) / 1e6, float((one.dx**2 + one.dy**2) ** 0.5)) for one in inside]
