"""What is left of a budget: a function of what was spent, of the ceilings and of the day alone."""

from collections.abc import Sequence
from typing import NamedTuple

from eyestream.privacy.charge import Ceilings, Charge
from eyestream.privacy.fading import bounds, level_of
from eyestream.privacy.odometer import Odometer

__all__ = ["Left", "LevelLeft", "left_of", "levels_left"]


class Left(NamedTuple):
    """Chunks of one stream that a ceiling still lets through, if no other stream of the device spends."""

    scope: str
    chunks: int
    resumes: str
    """When there is more again, in words."""


class LevelLeft(NamedTuple):
    """What a level of a lifetime that fades still lets through of one stream, if no other stream spends."""

    level: int
    charge: Charge
    """Of a chunk."""
    chunks: int


def levels_left(odometer: Odometer | None, ceilings: Ceilings, charges: Sequence[Charge]) -> list[LevelLeft]:
    """The present level of a stream and those behind it; where the lifetime has no ceiling there is none.

    Parameters
    ----------
    odometer, ceilings
        Of the device; None: it has spent nothing.
    charges
        Of one chunk, on each level.
    """
    if ceilings.lifetime is None:
        return []
    limits, spent = bounds(ceilings.lifetime, ceilings.levels), 0 if odometer is None else odometer.epsilon
    found = []
    for level in range(level_of(spent, charges, limits), min(len(charges), len(limits))):
        chunks = max(limits[level] - spent, 0) // charges[level].epsilon
        spent += chunks * charges[level].epsilon
        found.append(LevelLeft(level, charges[level], chunks))
    return found


def left_of(odometer: Odometer | None, ceilings: Ceilings, charge: Charge | Sequence[Charge], today: int) -> list[Left]:
    """What each ceiling on the sums of a device leaves, the one that is spent first in front.

    Parameters
    ----------
    odometer
        Of the device; None: it has spent nothing.
    ceilings
        Of the device.
    charge
        Of one chunk; or on each level of a lifetime that fades. Session and day are counted at the present level.
    today
        Days since 1970, UTC. What damaged records may have cost counts on the next day too, which is not seen here.
    """
    o = odometer
    levels = levels_left(odometer, ceilings, (charge,) if isinstance(charge, Charge) else charge)
    if not isinstance(charge, Charge):
        charge = levels[0].charge if levels else charge[0]
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
        if scope == "lifetime" and len(levels) > 1:
            chunks = [sum(level.chunks for level in levels)]
        if chunks:
            found.append(Left(scope, min(chunks), resumes))
    return sorted(found, key=lambda left: left.chunks)
