"""Faults of baselines: what they cost, and where they may begin."""

import math
from typing import Any

from eyestream.core.reservation import RowMark
from tests.rigs.seams import original
from tools.verification.auditing.planting import Patch, fault


@fault("the first chunk behind a baseline leaves unpaid", "baseline")
def _() -> list[Patch]:
    count = original("chunks of a baseline")
    return [
        ("chunks of a baseline", property(lambda self: 2 * count.fget(self))),
        ("stream on its level", lambda self, granted, session: session),
    ]


@fault("a baseline is charged and not released", "baseline")
def _() -> list[Patch]:
    return [("chunks of a baseline", property(lambda self: 0))]


@fault("a second baseline of gaze that was released before", "breaks")
def _() -> list[Patch]:
    """A session that begins anew takes its first rows, as it did where no baseline is taken off."""

    def at_once(self: Any, session: int, last_row: int) -> None:
        self._refused = max(self._refused, RowMark(session, last_row))

    return [("Device._refuse", at_once)]


@fault("rows left out for the window, and not for the front end's memory", "breaks")
def _() -> list[Patch]:
    return [("rows apart", lambda spec: math.ceil(spec.rate_hz * (spec.window_s + 1.0)) - 1)]
