"""The columns of a recording of gaze, whatever kind of file they come from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eyestream.gaze.intake import PER_S
from eyestream.gaze.profile import Profile

Array = NDArray[np.float64]

UNITS = {
    "deg": {"deg", "degree", "degrees"},
    "rad": {"rad", "rads", "radian", "radians"},
    "px": {"px", "pixel", "pixels"},
    "s": {"s", "second", "seconds"},
    "ms": {"ms", "millisecond", "milliseconds"},
    "us": {"us", "microsecond", "microseconds"},
    "ns": {"ns", "nanosecond", "nanoseconds"},
    "mm": {"mm", "millimeter", "millimeters", "millimetre", "millimetres"},
    "image": {"normalized", "normalised", "norm"},
    "vector": {"normalized", "normalised", "norm", "mm", "m"},
    "m": {"m", "meter", "meters", "metre", "metres"},
}
"""Names that files have for the units of a profile, in small letters."""


@dataclass(frozen=True, eq=False)
class GazeColumns:
    """n records in the units of a profile.

    Attributes
    ----------
    time
        (n,).
    gaze
        (n, 2) or (n, 3).
    pupil, openness
        (n, eyes).
    valid
        (n,) 1 where the eye was tracked, else 0.
    labels
        n texts.
    came
        Arrival time on the event loop's clock. None: the moment they are handed over.
    """

    time: Array
    gaze: Array
    pupil: Array | None = None
    openness: Array | None = None
    valid: Array | None = None
    labels: list[str] | None = None
    came: float | None = None

    @classmethod
    def of(cls, profile: Profile, table: Mapping[str, Array | list[str]]) -> "GazeColumns":
        """Build records from the columns that `wanted_columns` lists, and from the label column if present."""
        columns = profile.columns

        def array(name: str) -> Array:
            return np.asarray(table[name], dtype=np.float64)

        def stacked(names: Sequence[str]) -> Array | None:
            there = [array(name) for name in names if name in table]
            return np.column_stack(there) if there else None

        gaze = np.column_stack([array(name) for name in columns.gaze])
        valid = None
        if columns.valid or columns.lost or columns.confidence:
            validity = array(columns.valid) if columns.valid else np.ones(len(gaze))
            lost = np.nan_to_num(array(columns.lost)) if columns.lost else np.zeros(len(gaze))
            confident = array(columns.confidence) >= profile.confidence_min if columns.confidence else True
            valid = ((np.nan_to_num(validity) != 0.0) & (lost == 0.0) & confident).astype(np.float64)
        if columns.time:
            time = array(columns.time)
        else:
            time = np.arange(len(gaze)) / profile.fixed_rate_hz * PER_S[profile.time_unit]
        labels = table.get(columns.label)
        return cls(
            time, gaze, stacked(columns.pupil), stacked(columns.openness), valid,
            labels if isinstance(labels, list) else None,
        )  # fmt: skip


def wanted_columns(profile: Profile, names: Sequence[str]) -> list[str]:
    """The columns of numbers that a profile declares. Pupil columns are listed only if one exists.

    Diameters are optional. The rest is required: without the tracker's report of losses, noise looks like gaze.
    """
    columns = profile.columns
    pupils = columns.pupil if any(name in names for name in columns.pupil) else ()
    extra = [name for name in (columns.time, columns.valid, columns.lost, columns.confidence) if name]
    return list(dict.fromkeys([*columns.gaze, *pupils, *columns.openness, *extra]))
