"""The front ends that come with the product. Another one lives elsewhere, and is named as ``package.module:NAME``."""

from typing import TYPE_CHECKING

from eyestream.gaze.entry import FrontEndEntry, RowMaker
from eyestream.gaze.features import NAMES, STEP_S, UNITS, WINDOW_S
from eyestream.streams.front_end import FrontEndMark

if TYPE_CHECKING:
    from eyestream.gaze.profile import Profile

__all__ = ["FEATURES_52", "SHIPPED", "USUAL"]


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
"""By name."""

USUAL = FEATURES_52
"""What makes rows of gaze where nothing names a front end."""
