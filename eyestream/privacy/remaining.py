"""What is left of a budget: a function of what was spent, of the ceilings and of the day alone."""

from typing import NamedTuple

from eyestream.privacy.charge import Ceilings, Charge
from eyestream.privacy.odometer import Odometer

__all__ = ["Left", "left_of"]


class Left(NamedTuple):
    """Chunks of one stream that a ceiling still lets through, if no other stream of the device spends."""

    scope: str
    chunks: int
    resumes: str
    """When there is more again, in words."""


def left_of(odometer: Odometer | None, ceilings: Ceilings, charge: Charge, today: int) -> list[Left]:
    """What each ceiling on the sums of a device leaves, the one that is spent first in front.

    Parameters
    ----------
    odometer
        Of the device; None: it has spent nothing.
    ceilings
        Of the device.
    charge
        Of one chunk.
    today
        Days since 1970, UTC. What damaged records may have cost counts on the next day too, which is not seen here.
    """
    o = odometer
    this_day = o is not None and today <= o.day
    spent = {
        "session": (0, 0) if o is None else (o.session_epsilon, o.session_delta),
        "day": (o.day_epsilon, o.day_delta) if o is not None and this_day else (0, 0),
        "lifetime": (0, 0) if o is None else (o.epsilon, o.delta),
    }
    found = []
    for scope, resumes in (("session", "the tracker's next session"), ("day", "midnight UTC"), ("lifetime", "never")):
        limits = (
            (getattr(ceilings, scope), charge.epsilon, spent[scope][0]),
            (getattr(ceilings, f"{scope}_delta"), charge.delta, spent[scope][1]),
        )
        chunks = [max(ceiling - so_far, 0) // cost for ceiling, cost, so_far in limits if ceiling is not None and cost]
        if chunks:
            found.append(Left(scope, min(chunks), resumes))
    return sorted(found, key=lambda left: left.chunks)
