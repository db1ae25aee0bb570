"""Checks of live gaze: what an event leaves in rows, and when rows come.

`memory`: rows further from an event than the stated memory do not know it, and no row comes earlier or later by it.
`borders`: no sender report and no second of gaze decides where a session ends, nor does gaze decide when a tracker is
off; what comes after a border does not know an event before it.
"""

from collections.abc import Iterator

from tests.rigs.gaze_memory import border, degrees, glimpses, hunt, lived, reports, switched_off, trace
from tests.rigs.gaze_streams import Event, Sent, more_data, ordinary, shorter_way
from tools.verification.auditing.findings import Finding, Part, first_failure

__all__ = ["borders", "memory"]

_HUNTED, _GLIMPSES = 15, 8
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


def borders() -> Finding:
    """Sender reports of Neon's in a blink; late glimpses in silence; events before a border; a tracker switched off."""
    return first_failure(
        _reports,
        (switched_off(46.0) == switched_off(44.9), "the last second of gaze decides when a tracker is off"),
        _glimpses,
        _before_a_border,
    )


def _reports() -> Part:
    told = [one.escape or f"{one.rows} rows differ" for one in reports() if one.escape or one.rows]
    return not told, f"a sender report in a blink: {told[:1]}"


def _glimpses() -> Part:
    seen = [one.escape for one in glimpses(_GLIMPSES, 1) if one.escape]
    return not seen, f"{len(seen)} of {_GLIMPSES} glimpses in silence: {seen[:1]}"


def _before_a_border() -> Part:
    after = border(_GLIMPSES, 1)
    return not after, f"{len(after)} of {_GLIMPSES} events before a border: {after[:1]}"


def _known() -> Iterator[tuple[str, Sent, Sent, Event, float]]:
    """What was found in 0.1.0's successor, and a flood: pairs of streams, their event, their rate."""
    blink, second = Event(4.0, 4.3), Event(36.3, 37.3)
    quick, slow = ordinary(200.0, 45.0), ordinary(60.0, 73.0)
    yield "after a blink on a shorter way", *shorter_way(quick, blink), blink, 200.0
    yield "after two data a frame", quick, more_data(quick, blink, 1), blink, 200.0
    yield "after a flood", slow, more_data(slow, second, 30), second, 60.0
