"""Which front end made rows out of gaze: what rows, and calibrations made from them, are compared by."""

from dataclasses import dataclass

__all__ = ["FrontEndMark"]


@dataclass(frozen=True, slots=True)
class FrontEndMark:
    """Of one front end.

    Attributes
    ----------
    profile
        Name of the tracker's profile, for messages.
    front_end
        Hash of the profile, the features and the version of the algorithm.
    detector
        The same without what is the tracker's own: equal where rows in degrees mean the same on two trackers.
    """

    profile: str
    front_end: str
    detector: str
