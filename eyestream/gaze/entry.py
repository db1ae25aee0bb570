"""The product's knowledge of a front end, which makes rows of gaze: one entry each, and those that it comes with.

Another one lives elsewhere, and is named as ``package.module:NAME``.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from eyestream.gaze.features import NAMES, STEP_S, UNITS, WINDOW_S
from eyestream.streams import FrontEndMark

if TYPE_CHECKING:
    from eyestream.gaze.profile import Profile
    from eyestream.gaze.samples import Samples, TimedRows
    from eyestream.gaze.timeline import TimeCounters


class RowMaker(Protocol):
    """Makes the rows of one session of one tracker. It is fed, and has no clock of its own.

    Row k describes the window that ends k + `window_s` / `step_s` steps after the session's origin. How samples are
    handed over does not matter: whole, one by one, or in between, every bit of every row is the same.
    """

    @property
    def counters(self) -> "TimeCounters":
        """Counters of the samples."""
        ...

    @property
    def came(self) -> int:
        """How many samples lie in the window of the last row, tracked or not."""
        ...

    def feed(self, samples: "Samples") -> "TimedRows":
        """Take samples, any number; the rows that are due at the time of the last one."""
        ...

    def advance(self, now_s: float, samples: "Samples | None" = None) -> "TimedRows":
        """Take samples, none after `now_s`; the rows that are due when the tracker's clock shows `now_s`."""
        ...


@dataclass(frozen=True)
class FrontEndEntry:
    """A front end.

    Attributes
    ----------
    name
        As in ``[[stream]] front_end``.
    names, units
        Of the F features of a row.
    step_s
        From one row to the next.
    window_s
        Seconds of gaze that a row describes, a multiple of `step_s`.
    memory_s
        Seconds outside its window that a row may depend on, for a tracker of a profile. Live, samples come out of
        order: `Profile.live_reach_s` is part of it. It must be true: the price of a second of gaze rests on it.
    mark
        The provenance of rows of a profile: calibrations are compared by it.
    make
        A maker of rows, given the profile, the longest step forward in time that a sample may make, in seconds, and
        where the grid of the rows begins on the tracker's clock; None: at the first sample.
    """

    name: str
    names: tuple[str, ...]
    units: tuple[str, ...]
    step_s: float
    window_s: float
    memory_s: "Callable[[Profile], float]"
    mark: "Callable[[Profile], FrontEndMark]"
    make: "Callable[[Profile, float, float | None], RowMaker]"

    @property
    def rate_hz(self) -> float:
        """Rows a second."""
        return 1.0 / self.step_s


def _mark(profile: "Profile") -> FrontEndMark:
    from eyestream.gaze.profile_text import front_end_mark  # noqa: PLC0415  for who has gaze

    return front_end_mark(profile)


def _make(profile: "Profile", longest_step_s: float, origin_s: float | None) -> RowMaker:
    from eyestream.gaze.front_end import FrontEnd  # noqa: PLC0415  likewise

    return FrontEnd(profile, longest_step_s, origin_s)


FEATURES_52 = FrontEndEntry(
    "features-52", NAMES, UNITS, STEP_S, WINDOW_S, lambda profile: profile.memory_s, _mark, _make
)
"""52 features of the events in the last 30 s, one row each half second."""

SHIPPED = {entry.name: entry for entry in (FEATURES_52,)}
"""Front ends that ship, by name."""

USUAL = FEATURES_52
"""The front end of gaze where nothing names one."""
