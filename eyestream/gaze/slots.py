"""From gaze samples to the contents of slots by the clock: fed, never asking.

Slot k of a session is [k s, (k + 1) s) after its origin on the tracker's clock. Its content is a count of its own
samples in the cells of a field, so samples of t seconds enter at most ceil(t / s) + 1 slots and nothing else reads
them. The cadence follows the clock, never the eye: a lost eye, or no samples at all, make slots too. A sample whose
time does not go forward, or lies far ahead, is dropped and counted, and so is one of a slot that is over.

What a wrong time that is not too far ahead does to the samples after it is said in `eyestream.gaze.front_end`.
"""

import hashlib
import json

import numpy as np
from numpy.typing import NDArray

from eyestream.gaze.entry import FrontEndEntry, Rows
from eyestream.gaze.profile import Profile
from eyestream.gaze.profile_text import profile_fields
from eyestream.gaze.samples import Samples
from eyestream.gaze.timeline import LONGEST_STEP_S, TimeCounters, Timeline
from eyestream.privacy.calibration import Calibration
from eyestream.privacy.mechanisms.tile.tables import tiles_of
from eyestream.privacy.tiles import Field, TileCalibration
from eyestream.streams import FrontEndMark

__all__ = ["SlotRows", "Slots", "mark_of", "slot_rows"]

_VERSION = 1
"""Goes up with every change by which the same gaze gives other counts."""

Counts = NDArray[np.int64]


class Slots:
    """One session of one tracker.

    Parameters
    ----------
    field
        Whose cells the samples are counted in.
    slot_us
        Length of a slot in microseconds.
    longest_step_s
        A sample further ahead of the last one, or of the clock, is dropped.
    origin_s
        Where the slots begin on the tracker's clock; by default at the first sample.

    Attributes
    ----------
    done : how many slots were returned.
    """

    def __init__(
        self, field: Field, slot_us: int, longest_step_s: float = LONGEST_STEP_S, origin_s: float | None = None
    ) -> None:
        self._field, self._slot = field, slot_us
        self._timeline = Timeline(longest_step_s, origin_s)
        self._open = np.zeros(field.cells + 1, dtype=np.int64)
        self.done = 0

    @property
    def counters(self) -> TimeCounters:
        """What became of the samples."""
        return self._timeline.counters

    def end_s(self, slot: int) -> float:
        """The tracker's clock at the end of a slot."""
        return self._timeline.seconds((slot + 1) * self._slot)

    def feed(self, samples: Samples) -> Counts:
        """Take samples, any number; (m, cells + 1) the slots that are over at the time of the last one."""
        ticks, which = self._timeline.take(samples.t)
        over = []
        x, y, valid = samples.x[which], samples.y[which], samples.valid[which]
        slots = ticks // self._slot
        edges = np.flatnonzero(slots[1:] != slots[:-1]) + 1
        for part in np.split(np.arange(len(slots)), edges):
            if len(part):
                over += self._until(int(slots[part[0]]))
                self._open += self._field.occupancy(x[part], y[part], valid[part])
        return self._stacked(over)

    def advance(self, now_s: float, samples: Samples | None = None) -> Counts:
        """The slots that are over when the tracker's clock shows `now_s`, whether samples came or not.

        `samples`, none after `now_s`, are taken first. Samples at or before `now_s` that come later are dropped. What
        is not a number, or goes backward, is no progress.
        """
        over = [] if samples is None else list(self.feed(samples))
        self._timeline.clock = self._timeline.tick_of(now_s)
        return self._stacked(over + self._until(self._timeline.clock // self._slot))

    def _until(self, slot: int) -> list[Counts]:
        """The open slot and empty ones after it, up to `slot`, which is open then."""
        over = []
        while self.done < slot:
            over.append(self._open)
            self._open = np.zeros_like(self._open)
            self.done += 1
        return over

    def _stacked(self, over: list[Counts]) -> Counts:
        return np.stack(over) if over else np.zeros((0, len(self._open)), dtype=np.int64)


class SlotRows:
    """Slots as a front end makes rows: one of each, its counts as numbers, at the end of the slot."""

    def __init__(self, slots: Slots) -> None:
        self._slots, self.came = slots, 0

    @property
    def counters(self) -> TimeCounters:
        """What became of the samples."""
        return self._slots.counters

    def feed(self, samples: Samples) -> Rows:
        """Take samples; the rows of the slots that are over at the time of the last one."""
        return self._rows(self._slots.feed(samples))

    def advance(self, now_s: float, samples: Samples | None = None) -> Rows:
        """Take samples, none after `now_s`; the rows of the slots that are over then."""
        return self._rows(self._slots.advance(now_s, samples))

    def _rows(self, counts: Counts) -> Rows:
        first = self._slots.done - len(counts)
        if len(counts):
            self.came = int(counts[-1].sum())
        ends = [self._slots.end_s(first + i) for i in range(len(counts))]
        return Rows(np.array(ends, dtype=np.float64), counts.astype(np.float64))


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
        make=lambda _, longest_s, origin_s: SlotRows(Slots(tiles.field, tiles.slot_us, longest_s, origin_s)),
    )


def mark_of(tiles: TileCalibration, profile: Profile) -> FrontEndMark:
    """The provenance of slots of a profile: counts depend on what degrees are, and on nothing else of the tracker."""
    told = json.dumps(profile_fields(profile), sort_keys=True)
    version = f"slots {_VERSION}, {tiles.field}, {tiles.slot_us} us"
    own, any_tracker = (hashlib.sha256(text.encode()).hexdigest()[:16] for text in (f"{version}, {told}", version))
    return FrontEndMark(profile.name, own, any_tracker)
