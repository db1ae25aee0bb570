"""A tracker of gaze whose clock runs `SPEED` times as fast as the host's: a test of a minute takes a quarter of it.

No faster: rows wait a second of the tracker's clock for what comes late, and the machine may pause for a part of that.
"""

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from eyestream.gaze.profile import Profile
from eyestream.gaze.samples import Samples
from eyestream.rim.files.gaze_columns import GazeColumns
from eyestream.rim.sources.gaze import DeliverGaze, GazeKind, Place

__all__ = ["RATE_HZ", "SPEED", "fast_tracker"]

RATE_HZ, SPEED = 100.0, 4.0
"""Samples a second of the tracker's clock; `HOST_SPEED` of the registry must be the other."""


class NoOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """It takes none."""


def fast_tracker(gaze_at: Callable[[NDArray[np.float64]], Samples], made: list[Profile] | None = None) -> GazeKind:
    """A kind of source with the gaze that `gaze_at` gives for times; each tracker that is made is put into `made`."""

    class Tracker:
        def __init__(self, options: NoOptions, profile: Profile, place: Place) -> None:
            if made is not None:
                made.append(profile)

        async def run(self, deliver: DeliverGaze) -> None:
            loop, sent = asyncio.get_running_loop(), 0
            began = loop.time()
            while True:
                await asyncio.sleep(0.01)
                due = int((loop.time() - began) * SPEED * RATE_HZ)
                samples: Any = gaze_at(np.arange(sent, due) / RATE_HZ)
                deliver(GazeColumns(samples.t, np.column_stack([samples.x, samples.y])))
                sent = due

    return GazeKind("tracker", NoOptions, "degrees", Tracker)
