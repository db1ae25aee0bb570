"""The rest of a budget: a function of what was spent, of the ceilings and of the day alone."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeVar

import msgspec

from eyestream.core.charge import Ceilings, Charge, bounds, level_of
from eyestream.core.meter import Odometer, StreamOdometer

_Known = TypeVar("_Known", Odometer, StreamOdometer)
_SECONDS_A_DAY = 86_400
_RESUMES = {"session": "the tracker's next session", "day": "midnight UTC", "lifetime": "never"}
"""By scope, the one that lasts longest last."""


class Left(NamedTuple):
    """Chunks of one stream that a ceiling still lets through, if no other stream of the device spends."""

    scope: str
    chunks: int
    resumes: str
    """When there is more again, in words."""
    resumes_at: int | None = None
    """Seconds since 1970; None where no clock brings more."""


class LevelLeft(NamedTuple):
    """Chunks of one stream that a level of a lifetime that fades still lets through, if no other stream spends."""

    level: int
    charge: Charge
    """Charge of a chunk."""
    chunks: int


def levels_left(odometer: Odometer | None, ceilings: Ceilings, charges: Sequence[Charge]) -> list[LevelLeft]:
    """The present level of a stream and those after it; where the lifetime has no ceiling there is none.

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


def left_of(
    odometer: Odometer | None,
    ceilings: Ceilings,
    charge: Charge | Sequence[Charge],
    today: int,
    *,
    stream: str = "",
) -> list[Left]:
    """Chunks that each ceiling leaves a stream, the one that is spent first in front; of several, the longest-lasting.

    Parameters
    ----------
    odometer
        Of the device; None: it has spent nothing.
    ceilings
        Of the device, and of the stream beneath: where both are set, the lower figure is said.
    charge
        Of one chunk; or on each level of a lifetime that fades. Session and day are counted at the present level.
    today
        Days since 1970, UTC. What damaged records may have cost counts on the next day too, which is not seen here.
    stream
        Its name.
    """
    own = ceilings.beneath(stream)
    levels = levels_left(odometer, ceilings, (charge,) if isinstance(charge, Charge) else charge)
    if not isinstance(charge, Charge):
        charge = levels[0].charge if levels else charge[0]
    day = today if odometer is None else max(today, odometer.day)
    spent = _spent(odometer, odometer is not None and odometer.day == day)
    beneath = None if odometer is None else odometer.streams.get(stream)
    own_spent = _spent(beneath, odometer is not None and odometer.day == day)
    found = []
    for scope, resumes in reversed(_RESUMES.items()):
        fades = scope == "lifetime" and len(levels) > 1
        counted = [(own, own_spent)] if fades else [(ceilings, spent), (own, own_spent)]
        chunks = [
            max(ceiling - so_far, 0) // cost
            for limits, sums in counted
            for ceiling, cost, so_far in zip(limits.on(scope), (charge.epsilon, charge.delta), sums[scope], strict=True)
            if ceiling is not None and cost
        ]
        if fades:
            chunks.append(sum(level.chunks for level in levels))
        if chunks:
            found.append(Left(scope, min(chunks), resumes, (day + 1) * _SECONDS_A_DAY if scope == "day" else None))
    return sorted(found, key=lambda left: left.chunks)


def _spent(known: Odometer | StreamOdometer | None, this_day: bool) -> dict[str, tuple[int, int]]:
    """Epsilon and delta so far, by scope."""
    if known is None:
        return dict.fromkeys(_RESUMES, (0, 0))
    return {
        "session": (known.session_epsilon, known.session_delta),
        "day": (known.day_epsilon, known.day_delta) if this_day else (0, 0),
        "lifetime": (known.epsilon, known.delta),
    }


def without(odometer: Odometer, held: Mapping[str, tuple[int, int]]) -> Odometer:
    """The odometer of a device without some of its charges.

    Parameters
    ----------
    odometer
        Of the device.
    held
        Epsilon and delta of these charges, by stream. They count as of the current session and day; where those have
        begun since, what is left of their sums is zero at least.
    """
    less = {name: _less(odometer.streams[name], *charges) for name, charges in held.items()}
    epsilon, delta = (sum(charge[kind] for charge in held.values()) for kind in (0, 1))
    return msgspec.structs.replace(_less(odometer, epsilon, delta), streams={**odometer.streams, **less})


def _less(known: _Known, epsilon: int, delta: int) -> _Known:
    less = {
        f"{scope}{kind}": max(getattr(known, f"{scope}{kind}") - amount, 0)
        for scope in ("", "session_", "day_")
        for kind, amount in (("epsilon", epsilon), ("delta", delta))
    }
    return msgspec.structs.replace(known, **less)
