"""A session that is broken off and begins anew.

`breaks`: no second of gaze enters both a baseline and a chunk before it, whatever began the session anew.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np

from eyestream.core.charge import Ceilings
from eyestream.core.chunking.settings import DeviceSettings
from eyestream.core.release.stream import StreamRelease
from eyestream.rim.plan import resolved
from eyestream.wire.raw import RawRows
from tests.rigs.given import Given, Stretch, reached
from tests.rigs.memory_ledger import MemoryLedger
from tests.rigs.sidecar import NO_BROKER, settings_for
from tools.verification.auditing.findings import Finding, first_failure
from tools.verification.auditing.station import folder

__all__ = ["breaks"]

_N, _ROWS, _BROKEN_AT = 4, 60, 20
_IDLE_S = 20.0
_BREAKS = ("pause", "stray row", "restart", "rows left out")


def breaks() -> Finding:
    """A second of gaze at every place of a session, which is broken off after some chunks, in each of the ways."""
    with folder() as place:
        settings, rows = _configured(place)
    both, entered = 0, 0
    for way in _BREAKS:
        plain = _given(settings, way, lambda number: False)
        for first in range(_ROWS):
            other = _given(settings, way, lambda number, first=first: first <= number < first + rows)
            touched = [counts for counts in reached(plain, other) if any(counts)]
            inside = any(anchored for anchored, _ in touched)
            both, entered = both + (inside and len(touched) > 1), entered + (inside and touched[0][1] > 2)
    return first_failure(
        (both == 0, f"{both} seconds of gaze are in a baseline and in a chunk before it"),
        (entered > _ROWS // 2, f"{entered} seconds of gaze are in a baseline that chunks follow: too few"),
    )


def _configured(place: Path) -> tuple[DeviceSettings, int]:
    """A stream with baselines as a configuration sets it up, and how many rows a second of gaze enters."""
    shape: dict[str, Any] = {"names": ("a",), "window_s": 3.0, "memory_s": 1.0, "idle_s": _IDLE_S, "jump_chunks": 2}
    settings = settings_for(NO_BROKER, place, **shape)
    given: Any = Given(_N, 1)
    [(served, stream)] = resolved(settings, mechanisms={"features": given}).served.values()
    return served, stream.spec.rows_touched(1.0)


def _given(settings: DeviceSettings, way: str, change: Callable[[int], bool]) -> list[Stretch]:
    """What the mechanism is given of a session that is broken off at a row."""
    mechanism, ledger, at = Given(_N, 1), MemoryLedger(Ceilings()), 0.0
    stream = StreamRelease(settings, cast(Any, mechanism), lambda: 1)

    def send(first: int, count: int) -> None:
        values = [float(7 * number**2 + change(number) * 2**30) for number in range(first, first + count)]
        outcome = stream.feed(RawRows(1, first, np.array(values)[:, None]), at)
        stream.answer(ledger.reserve(outcome.requests, 1))

    send(0, _BROKEN_AT)
    if way == "pause":
        at += _IDLE_S
    elif way == "stray row":
        send(10**6, 1)
    elif way == "restart":
        stream = StreamRelease(settings, cast(Any, mechanism), lambda: 1, ledger.mark(settings.key))
    left_out = 3 * _N if way == "rows left out" else 0  # one chunk more than `jump_chunks` allows
    send(_BROKEN_AT + left_out, _ROWS - _BROKEN_AT - left_out)
    return mechanism.stretches
