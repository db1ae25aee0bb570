"""The tables of a profile: columns, the form of the file, camera, thresholds of the detector."""

from dataclasses import dataclass
from typing import Literal

__all__ = ["NEWEST", "Algorithm", "Camera", "Columns", "Detection", "Table"]

Algorithm = Literal[1, 2]
NEWEST: Algorithm = 2


@dataclass(frozen=True, slots=True)
class Columns:
    """``[columns]``: what the columns of a table of samples are called; only time and gaze must be there.

    A name without brackets is also the column that has a unit behind it: "Gaze point X" is "Gaze point X [px]".

    Attributes
    ----------
    time, gaze
        Of the time; of x and y, or of the three components of a direction.
    pupil, openness
        One for each eye. A tracker that measures one pupil has one column here.
    valid
        Non-zero where the eye was tracked.
    lost
        Neither empty nor 0 where it was not: the number of a blink, an error code.
    confidence
        How sure the tracker is; below `confidence_min` the eye is lost.
    label
        Events by hand: F fixation, S saccade, B blink, anything else other.
    """

    time: str
    gaze: tuple[str, ...]
    pupil: tuple[str, ...] = ()
    openness: tuple[str, ...] = ()
    valid: str = ""
    lost: str = ""
    label: str = ""
    confidence: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """``[table]``: how a text table is written, where the end of its name does not say it.

    Attributes
    ----------
    delimiter
        "" is the tab of .tsv and the comma of .csv.
    decimal
        What stands before the decimals.
    only
        A column and a value: rows with another value are of other sensors, and left out. Empty: all rows.
    """

    delimiter: Literal["", "comma", "semicolon", "tab", "space"] = ""
    decimal: Literal["point", "comma"] = "point"
    only: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Camera:
    """``[camera]``: the image, or the screen, whose coordinates gaze is told in.

    Attributes
    ----------
    field_of_view_x_deg, field_of_view_y_deg
        The angle that the whole image covers.
    projection
        Of its lens; a screen looked at from its middle axis is "pinhole".
    margin_images
        How far outside of the image gaze still counts, in widths and heights of the image. Gaze beside a screen is
        gaze. What is further out is a lost eye: a closing lid moves the gaze that a tracker reports that far.
    width_px, height_px
        0 unless gaze is in pixels.
    """

    field_of_view_x_deg: float
    field_of_view_y_deg: float
    projection: Literal["pinhole", "equidistant"] = "pinhole"
    margin_images: float = 0.5
    width_px: int = 0
    height_px: int = 0


@dataclass(frozen=True, slots=True)
class Detection:
    """``[detection]``: thresholds of the event detector, in seconds and degrees.

    Attributes
    ----------
    onset_deg_per_s, offset_deg_per_s
        A saccade reaches the first and ends below the second.
    slow_tracker_hz, slow_onset_deg_per_s, slow_offset_deg_per_s
        The two thresholds of trackers with fewer samples a second than the first.
    hysteresis_s
        A sample between the thresholds is fast when one above the onset came no longer before it.
    fixation_min_s, cut_after_s, cut_grid_s
        Shortest fixation; fixations older than the second are cut on a grid of the third.
    saccade_min_s, saccade_max_s
        A movement as fast that is shorter or longer is noise or a pursuit, and no event.
    blink_min_s, blink_max_s, blink_guard_s
        A loss so long is a blink; saccades so near to a loss are the eyelid's.
    small_below_deg
        Saccades of less amplitude are small.
    frozen_s
        A value that has not changed for so long does not count as tracked; 0 for never.
    algorithm
        Which fast samples are saccades (`eyestream.gaze.runs`). The shipped calibrations were made with 1.
    """

    onset_deg_per_s: float = 40.0
    offset_deg_per_s: float = 20.0
    slow_tracker_hz: float = 100.0
    slow_onset_deg_per_s: float = 30.0
    slow_offset_deg_per_s: float = 15.0
    hysteresis_s: float = 0.04
    fixation_min_s: float = 0.06
    cut_after_s: float = 0.85
    cut_grid_s: float = 0.35
    saccade_min_s: float = 0.01
    saccade_max_s: float = 0.3
    blink_min_s: float = 0.05
    blink_max_s: float = 1.0
    blink_guard_s: float = 0.05
    small_below_deg: float = 3.0
    frozen_s: float = 0.0
    algorithm: Algorithm = 1
