"""Output of one kind of eye tracker, and how its gaze is turned into events: a frozen value, read from TOML.

A profile fixes the detector, so it fixes the detector's memory M: MEMORY.md derives it.
"""

import dataclasses
import math
from dataclasses import dataclass
from typing import Literal

from eyestream.errors import ConfigError

TICKS_PER_S = 1_000_000
"""All times inside the front end are whole microseconds since the session's first sample: comparisons are exact."""

PLACES_PER_PERIOD = 8
"""Live samples that are closer to each other than such a part of a period may count as one."""

LID_S = 0.4
"""From where the lid begins to come down to where it is up again, where the tracker reports gaze in between."""

VELOCITY_HALF_S = 0.012
LONGEST_RATE_HZ, SHORTEST_RATE_HZ = 5_000.0, 20.0


def ticks(seconds: float) -> int:
    """Seconds as whole microseconds."""
    return round(seconds * TICKS_PER_S)


Algorithm = Literal[1, 2]
NEWEST: Algorithm = 2


@dataclass(frozen=True, slots=True)
class Columns:
    """``[columns]``: what the columns of a table of samples are called; only time and gaze must be there.

    A name without brackets is also the column that has a unit behind it: "Gaze point X" is "Gaze point X [px]".

    Attributes
    ----------
    time, gaze
        Of the time, "" where samples follow each other at `rate_hz`; of x and y, or of the components of a direction.
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
    names
        Of all columns of a file without a header, or of a matrix.
    """

    delimiter: Literal["", "comma", "semicolon", "tab", "space"] = ""
    decimal: Literal["point", "comma"] = "point"
    only: tuple[str, ...] = ()
    names: tuple[str, ...] = ()


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


@dataclass(frozen=True, slots=True)
class Profile:
    """A kind of eye tracker.

    Attributes
    ----------
    name
        As in messages.
    rate_hz
        Nominal samples a second; None where each recording tells its own (`at_rate`).
    time_unit, gaze_unit
        Of the incoming numbers; "image" is normalised to the camera's image, "vector" three components.
    y_axis
        Where incoming y grows to.
    columns, camera, detection, table
        The tables of the file. Only "image" and "px" have a camera.
    limit_deg
        A direction further than this from straight ahead, in azimuth or elevation, is a lost eye.
    zero_is_lost
        Whether incoming (0, 0) says that the eye was lost.
    pupil_unit, pupil_min_mm, pupil_max_mm
        "none" where the tracker has no diameter; diameters outside are missing. With "px" diameters and bounds are in
        pixels, and so are the features of the pupil: no shipped calibration fits them.
    confidence_min
        Below it the eye is lost; 0 where the tracker does not say how sure it is.
    openness_min
        Of the eyelids, in the tracker's own unit: below, the eye is closed, which is a loss. 0 where not told.
    """

    name: str
    rate_hz: float | None
    time_unit: Literal["s", "ms", "us", "ns"]
    gaze_unit: Literal["deg", "rad", "image", "px", "vector"]
    y_axis: Literal["up", "down"]
    columns: Columns
    camera: Camera | None = None
    detection: Detection = dataclasses.field(default_factory=Detection)
    limit_deg: float = 90.0
    zero_is_lost: bool = False
    pupil_unit: Literal["none", "mm", "m", "px"] = "none"
    pupil_min_mm: float = 1.0
    pupil_max_mm: float = 10.0
    openness_min: float = 0.0
    confidence_min: float = 0.0
    table: Table = dataclasses.field(default_factory=Table)

    def __post_init__(self) -> None:
        _check(self)

    def at_rate(self, rate_hz: float) -> "Profile":
        """The same profile for samples at this rate; it must be the profile's own, to 20 %, where it has one.

        Raises
        ------
        ConfigError
            when it is another.
        """
        if self.rate_hz is None:
            return dataclasses.replace(self, rate_hz=rate_hz)
        if not 0.8 <= rate_hz / self.rate_hz <= 1.25:
            raise ConfigError(f"profile {self.name}: made for {self.rate_hz:g} samples a second, not {rate_hz:.4g}")
        return self

    @property
    def fixed_rate_hz(self) -> float:
        """The rate; ConfigError where it is open."""
        if self.rate_hz is None:
            raise ConfigError(f"profile {self.name}: rate_hz: missing, and the source does not tell it")
        return self.rate_hz

    @property
    def period_ticks(self) -> int:
        """Between two samples."""
        return ticks(1.0 / self.fixed_rate_hz)

    @property
    def gap_ticks(self) -> int:
        """Samples further apart are not joined."""
        return max(self.velocity_ticks, 5 * self.period_ticks // 2)

    @property
    def velocity_ticks(self) -> int:
        """How far a velocity reads, the next sample on both sides excepted: half a period stands for jitter."""
        return ticks(VELOCITY_HALF_S) + self.period_ticks // 2

    @property
    def velocity_samples(self) -> int:
        """Samples on each side that a velocity reads at most: those within 12 ms, to a tenth of a period."""
        return max(1, math.floor(VELOCITY_HALF_S * self.fixed_rate_hz + 0.1))

    @property
    def thresholds_deg_per_s(self) -> tuple[float, float]:
        """Onset and offset at this rate."""
        d = self.detection
        if self.fixed_rate_hz < d.slow_tracker_hz:
            return d.slow_onset_deg_per_s, d.slow_offset_deg_per_s
        return d.onset_deg_per_s, d.offset_deg_per_s

    @property
    def flicker_deg(self) -> float:
        """Two slow samples in succession that are further apart belong to two fixations.

        A slope through three samples does not see a tracker that flickers between two places, one sample here and one
        there; nothing that is slower than the onset moves so far from one sample to the next.
        """
        return 4.0 * self.thresholds_deg_per_s[0] * max(VELOCITY_HALF_S, 1.0 / self.fixed_rate_hz)

    @property
    def delay_ticks(self) -> int:
        """How long after a sample it is known whether it is fast."""
        return self.gap_ticks

    @property
    def reach_ticks(self) -> int:
        """How far before a sample lies what decides whether it is fast."""
        return self.gap_ticks + ticks(self.detection.hysteresis_s)

    @property
    def loss_ticks(self) -> int:
        """How long after its beginning a loss is known, which is a period after the last sample before it."""
        return max(ticks(self.detection.blink_min_s), self.gap_ticks - self.period_ticks)

    @property
    def judged_ticks(self) -> int:
        """How long after its end it is known whether a fast run is a saccade, beside `delay_ticks`."""
        beside = ticks(self.detection.blink_guard_s) + self.loss_ticks
        return max(beside, self.nearby_ticks + self.gap_ticks) if self.nearby_ticks else beside

    @property
    def nearby_ticks(self) -> int:
        """How far before and after a saccade other fast runs bear on it; 0 with algorithm 1."""
        d = self.detection
        return 0 if d.algorithm == 1 else max(ticks(LID_S), ticks(d.fixation_min_s) + ticks(d.saccade_max_s))

    @property
    def overtaken_ticks(self) -> int:
        """A live sample that comes after one of a time up to so much later is dropped: its time went backward."""
        return 3 * self.period_ticks // 2

    @property
    def ahead_ticks(self) -> int:
        """How far after a row's window live samples may lie that bear on the row."""
        return self.overtaken_ticks + math.ceil(TICKS_PER_S / (PLACES_PER_PERIOD * self.fixed_rate_hz))

    @property
    def live_reach_ticks(self) -> int:
        """How far a live sample reaches, back and forward, by deciding which others are taken."""
        return 2 * self.ahead_ticks - self.overtaken_ticks

    @property
    def memory_ticks(self) -> int:
        """M, as MEMORY.md derives it."""
        d, gap = self.detection, self.gap_ticks
        judged = self.reach_ticks + self.delay_ticks
        fixation = ticks(d.cut_after_s) + ticks(d.cut_grid_s) + ticks(d.fixation_min_s) + 2 * gap + judged
        blink = ticks(d.blink_max_s) + self.period_ticks + self.delay_ticks
        beside = ticks(d.blink_guard_s) + self.loss_ticks + self.period_ticks
        saccade = ticks(d.saccade_max_s) + 2 * max(beside, self.nearby_ticks) + gap + judged
        return max(fixation, blink, saccade, ticks(d.frozen_s) + gap) + self.live_reach_ticks

    @property
    def memory_s(self) -> float:
        """M in seconds: samples that are further from a row's window have no influence on the row."""
        return self.memory_ticks / TICKS_PER_S

    @property
    def live_reach_s(self) -> float:
        """Likewise, of what lies around the window itself: the least memory that a front end has on live gaze."""
        return self.live_reach_ticks / TICKS_PER_S

    @property
    def ahead_s(self) -> float:
        """In seconds, the part of the memory that lies after a row's window: live gaze alone has it."""
        return self.ahead_ticks / TICKS_PER_S

    @property
    def lag_s(self) -> float:
        """How long after its end a fixation, a saccade or a blink is counted at the latest."""
        d = self.detection
        beside = max(self.judged_ticks, ticks(d.fixation_min_s) + self.gap_ticks)
        return (beside + self.delay_ticks) / TICKS_PER_S


def _check(profile: Profile) -> None:
    """Check what the type of one key cannot say."""
    d, camera, rate = profile.detection, profile.camera, profile.rate_hz

    def need(holds: bool, key: str, wanted: str) -> None:
        if not holds:
            raise ConfigError(f"profile {profile.name}: {key}: expected {wanted}")

    low, high = SHORTEST_RATE_HZ, LONGEST_RATE_HZ
    need(rate is None or low <= rate <= high, "rate_hz", f"{low:g} to {high:g}")
    for field in dataclasses.fields(d):
        value = getattr(d, field.name)
        above = value >= 0.0 if field.name == "frozen_s" else value > 0.0
        need(math.isfinite(value) and above and value <= 1e6, f"[detection] {field.name}", "a finite number above 0")
    need(d.onset_deg_per_s > d.offset_deg_per_s, "[detection] onset_deg_per_s", "more than offset_deg_per_s")
    need(d.slow_onset_deg_per_s > d.slow_offset_deg_per_s, "[detection] slow_onset_deg_per_s", "more than the offset")
    for shorter, longer in (("saccade_min_s", "saccade_max_s"), ("blink_min_s", "blink_max_s")):
        need(getattr(d, shorter) < getattr(d, longer), f"[detection] {longer}", f"more than {shorter}")
    need(max(d.fixation_min_s, 0.2) <= d.cut_grid_s <= 10.0, "[detection] cut_grid_s", "0.2 to 10, a fixation at least")
    need(d.cut_after_s <= 10.0, "[detection] cut_after_s", "at most 10")
    need(0.0 < profile.limit_deg <= 180.0, "limit_deg", "more than 0, at most 180")
    need(0.0 < profile.pupil_min_mm < profile.pupil_max_mm, "[pupil] min_mm", "more than 0 and less than max_mm")
    in_image = profile.gaze_unit in {"image", "px"}
    need(in_image == (camera is not None), "[camera]", f"{'a' if in_image else 'no'} table: unit {profile.gaze_unit!r}")
    need(bool(profile.columns.time) or rate is not None, "[columns] time", "a name, or rate_hz")
    wide = 3 if profile.gaze_unit == "vector" else 2
    need(len(profile.columns.gaze) == wide, "[columns] gaze", f"{wide} names: unit {profile.gaze_unit!r}")
    need((profile.pupil_unit == "none") == (not profile.columns.pupil), "[pupil] unit", "one, beside [columns] pupil")
    need(profile.openness_min == 0.0 or bool(profile.columns.openness), "[columns] openness", "names, beside the limit")
    need(
        (profile.confidence_min > 0.0) == bool(profile.columns.confidence),
        "confidence_min",
        "one above 0, beside [columns] confidence",
    )
    need(len(profile.table.only) in {0, 2}, "[table] only", "a column and a value")
    if camera is not None:
        most = 180.0 if camera.projection == "pinhole" else 360.0
        for key in ("field_of_view_x_deg", "field_of_view_y_deg"):
            need(0.0 < getattr(camera, key) < most, f"[camera] {key}", f"more than 0, less than {most:g}")
        need(0.0 <= camera.margin_images <= 10.0, "[camera] margin_images", "0 to 10")
        in_px = profile.gaze_unit == "px"
        need((camera.width_px > 0) == in_px, "[camera] width_px", "pixels, if gaze is in px")
        need((camera.height_px > 0) == in_px, "[camera] height_px", "pixels, if gaze is in px")
