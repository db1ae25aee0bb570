"""From gaze samples to slots of evenly spaced samples by the clock (`eyestream.gaze.by_slot`).

A slot has w places of equal length. A place has the last sample of its slot that came by the end of the place, so a
slow tracker is held inside a slot, and nothing of another slot is read. How many places a slot has follows from the
clock alone: a tracker that sends more samples, or whose clock jumps, makes no more of them. A row is one slot: w
azimuths, w elevations, and w times whether the eye was seen. What is not seen is 0.
"""

import numpy as np
from numpy.typing import NDArray

from eyestream.core.calibration import Calibration
from eyestream.gaze.by_slot import BySlot
from eyestream.gaze.entry import FrontEndEntry
from eyestream.gaze.profile import ticks
from eyestream.gaze.samples import Samples
from eyestream_lab.kaleido_live.tables import mark_of, settings_of


class Places(BySlot):
    """One session of one tracker.

    Parameters
    ----------
    w
        Places of a slot.
    slot_us, longest_step_s, origin_s
        As for `BySlot`.
    """

    def __init__(self, w: int, slot_us: int, longest_step_s: float, origin_s: float | None = None) -> None:
        super().__init__(3 * w, slot_us, longest_step_s, origin_s)
        self._w = w
        self._open = np.zeros((3, w))

    def fill(self, at_us: NDArray[np.int64], samples: Samples) -> None:
        """Each from its place on."""
        values = np.where(samples.valid, (samples.x, samples.y, samples.valid), 0.0)
        for place, value in zip((at_us * self._w // self._slot).tolist(), values.T, strict=True):
            self._open[:, place:] = value[:, None]

    def close(self) -> NDArray[np.float64]:
        """The places."""
        over, self._open = self._open.ravel(), np.zeros_like(self._open)
        return over


def place_rows(calibration: Calibration) -> FrontEndEntry:
    """The front end of a calibration of Kaleido: its samples a slot, and its length of a slot."""
    w, slot_s = settings_of(calibration).w, 1 / calibration.rate_hz
    mark = mark_of(w, w * calibration.rate_hz)
    return FrontEndEntry(
        name="places",
        names=calibration.names,
        units=calibration.units,
        step_s=slot_s,
        window_s=slot_s,
        memory_s=lambda profile: profile.live_reach_s,
        mark=lambda _: mark,
        make=lambda _, longest_s, origin_s: Places(w, ticks(slot_s), longest_s, origin_s),
    )
