"""Checks of live gaze: what an event leaves in rows, and when rows come.

`memory`: rows further from an event than the stated memory do not know it, and no row comes earlier or later by it.
"""

from collections.abc import Iterator

from tests.rigs.gaze_memory import degrees, hunt, lived, trace
from tests.rigs.gaze_streams import Event, Sent, more_data, ordinary, shorter_way
from tools.verification.auditing.findings import Finding, first_failure

__all__ = ["memory"]

_HUNTED = 15
_RATES_HZ = (30.0, 60.0, 120.0)


def memory() -> Finding:
    """A way that is shorter while the eye is shut; more data than the rate; events, streams and ways at random."""
    for what, before, after, event, rate_hz in _known():
        profile = degrees(rate_hz)
        escape = trace(lived(profile, before), lived(profile, after), event, profile).escape
        if escape:
            return Finding(False, f"{what}: {escape}")
    found = hunt(_HUNTED, 3, _RATES_HZ)
    escaped, moved = [one.escape for one in found if one.escape], sum(one.rows > 0 for one in found)
    first = "".join(f": {one}" for one in escaped[:1])
    return first_failure(
        (not escaped, f"{len(escaped)} of {_HUNTED} events are left in rows that they may not enter{first}"),
        (moved > _HUNTED / 2, f"only {moved} of {_HUNTED} events changed a row"),
    )


def _known() -> Iterator[tuple[str, Sent, Sent, Event, float]]:
    """What was found in 0.1.0's successor, and a flood: pairs of streams, their event, their rate."""
    blink, second = Event(4.0, 4.3), Event(36.3, 37.3)
    quick, slow = ordinary(200.0, 45.0), ordinary(60.0, 73.0)
    yield "after a blink on a shorter way", *shorter_way(quick, blink), blink, 200.0
    yield "after two data a frame", quick, more_data(quick, blink, 1), blink, 200.0
    yield "after a flood", slow, more_data(slow, second, 30), second, 60.0
