"""From gaze samples to the contents of slots by the clock (`eyestream.gaze.by_slot`), as counts.

The content of a slot is a count of its own samples in the cells of a field, and of those in which the eye was lost.
"""

import hashlib
import json

import numpy as np
from numpy.typing import NDArray

from eyestream.core.calibration import Calibration
from eyestream.core.mechanisms.tile.tables import tiles_of
from eyestream.core.tiles import Field, TileCalibration
from eyestream.gaze.by_slot import BySlot
from eyestream.gaze.entry import FrontEndEntry
from eyestream.gaze.profile import Profile
from eyestream.gaze.profile_text import profile_fields
from eyestream.gaze.samples import Samples
from eyestream.gaze.timeline import LONGEST_STEP_S
from eyestream.streams import FrontEndMark

_VERSION = 1
"""Goes up with every change by which the same gaze gives other counts."""


class Slots(BySlot):
    """One session of one tracker: rows of counts, (cells + 1,) as numbers, of which the last one is of lost samples.

    Parameters
    ----------
    field
        Whose cells the samples are counted in.
    slot_us, longest_step_s, origin_s
        As for `BySlot`.
    """

    def __init__(
        self, field: Field, slot_us: int, longest_step_s: float = LONGEST_STEP_S, origin_s: float | None = None
    ) -> None:
        super().__init__(field.cells + 1, slot_us, longest_step_s, origin_s)
        self._field = field
        self._open = np.zeros(field.cells + 1)

    def fill(self, at_us: NDArray[np.int64], samples: Samples) -> None:
        """Count them."""
        self._open += self._field.occupancy(samples.x, samples.y, samples.valid)

    def close(self) -> NDArray[np.float64]:
        """The counts."""
        over, self._open = self._open, np.zeros_like(self._open)
        return over


def slot_rows(calibration: Calibration) -> FrontEndEntry:
    """The front end of a calibration of tiles: its field, and its length of a slot."""
    tiles = tiles_of(calibration)
    return FrontEndEntry(
        name="slots",
        names=calibration.names,
        units=calibration.units,
        step_s=tiles.slot_s,
        window_s=tiles.slot_s,
        memory_s=lambda profile: profile.live_reach_s,
        mark=lambda profile: mark_of(tiles, profile),
        make=lambda _, longest_s, origin_s: Slots(tiles.field, tiles.slot_us, longest_s, origin_s),
    )


def mark_of(tiles: TileCalibration, profile: Profile) -> FrontEndMark:
    """The provenance of slots of a profile: counts depend on what degrees are, and on nothing else of the tracker."""
    told = json.dumps(profile_fields(profile), sort_keys=True)
    version = f"slots {_VERSION}, {tiles.field}, {tiles.slot_us} us"
    own, any_tracker = (hashlib.sha256(text.encode()).hexdigest()[:16] for text in (f"{version}, {told}", version))
    return FrontEndMark(profile.name, own, any_tracker)
