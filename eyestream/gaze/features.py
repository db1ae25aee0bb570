"""The 52 features of a window of 30 s: names, units, and their values from the window's events.

Bulling et al. 2011 and Steil et al. 2019, with these decisions: an event belongs to the window in which it is *known*,
so that a row is a function of the past; population variances; an empty set gives 0, but what the tracker did not give
at all in the window is NaN, because a constant 0 would mark a person; angles in degrees, so that trackers compare.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

WINDOW_S = 30.0
STEP_S = 0.5

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Feature:
    """One column of a row: its name, and its unit with 1 for a pure number."""

    name: str
    unit: str


_EVENTS = (
    *((f"rate_{kind}", "1/s") for kind in ("fixations", "saccades", "small_saccades", "large_saccades")),
    *((f"rate_{kind}", "1/s") for kind in ("positive_saccades", "negative_saccades")),
    ("ratio_saccades_fixations", "1"),
    *((f"ratio_{kind}_saccades", "1") for kind in ("small", "large", "positive", "negative")),
    *((f"{what}_saccade_amplitude", unit) for what, unit in (("mean", "deg"), ("var", "deg^2"), ("max", "deg"))),
    *((f"{what}_fixation_duration", unit) for what, unit in (("mean", "s"), ("var", "s^2"), ("max", "s"))),
    *((f"{what}_var_{axis}", unit) for what, unit in (("mean", "deg^2"), ("var", "deg^4")) for axis in "xy"),
    *((f"{what}_mean_diameter", unit) for what, unit in (("mean", "mm"), ("var", "mm^2"))),
    *((f"{what}_var_diameter", unit) for what, unit in (("mean", "mm^2"), ("var", "mm^4"))),
    *((f"{what}_blink_duration", unit) for what, unit in (("mean", "s"), ("var", "s^2"))),
    ("blink_rate", "1/s"),
)
_WORDS = ((f"wb{n}_{what}", "1") for n in (1, 2, 3, 4) for what in ("nonzero", "max", "min", "range", "mean", "var"))

FEATURES = tuple(Feature(name, unit) for name, unit in (*_EVENTS, *_WORDS))
"""The columns of a row, in order. Letters of the words: small saccades in 8 directions, large ones in 16."""

NAMES = tuple(feature.name for feature in FEATURES)
UNITS = tuple(feature.unit for feature in FEATURES)


@dataclass(frozen=True, slots=True, eq=False)
class WindowEvents:
    """Parts of a row.

    Attributes
    ----------
    fixations
        (f, 5): duration (s), variance of x and of y (deg^2), mean (mm) and variance (mm^2) of the pupil or NaN.
    amplitudes
        s of the saccades, in degrees.
    small, positive
        How many of them are small, and how many go to the right.
    blinks
        b durations in seconds.
    pupil
        Whether the window has any diameter.
    words
        The 24 numbers of the wordbooks.
    """

    fixations: Array
    amplitudes: list[float]
    small: int
    positive: int
    blinks: list[float]
    pupil: bool
    words: list[float]


def _moments(values: Array) -> tuple[list[float], list[float]]:
    """Mean and population variance of each column of (n, c); 0 of nothing."""
    n = len(values)
    if n == 0:
        zeros = [0.0] * values.shape[1]
        return zeros, zeros
    mean = np.add.reduce(values, axis=0) / n
    apart = values - mean
    return mean.tolist(), (np.add.reduce(apart * apart, axis=0) / n).tolist()


def _spread(values: list[float]) -> tuple[float, float]:
    """Mean and population variance; 0 of nothing."""
    if not values:
        return 0.0, 0.0
    mean = math.fsum(values) / len(values)
    return mean, math.fsum([(value - mean) ** 2 for value in values]) / len(values)


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


def row(events: WindowEvents) -> Array:
    """(52,) the features, in the order of `FEATURES`."""
    f, s, b = len(events.fixations), len(events.amplitudes), len(events.blinks)
    large, negative = s - events.small, s - events.positive
    kinds = (events.small, large, events.positive, negative)
    mean_amplitude, var_amplitude = _spread(events.amplitudes)
    mean_blink, var_blink = _spread(events.blinks)
    mean, var = _moments(events.fixations)
    if events.pupil and math.isnan(mean[3]):  # some fixation has no diameter
        sized = events.fixations[:, 3:]
        without, without_var = _moments(sized[~np.isnan(sized[:, 0])])
        mean[3:], var[3:] = without, without_var
    diameters = [mean[3], var[3], mean[4], var[4]] if events.pupil else [math.nan] * 4
    values = [count / WINDOW_S for count in (f, s, *kinds)]
    values += [_share(s, f), *(_share(kind, s) for kind in kinds)]
    longest = float(np.maximum.reduce(events.fixations[:, 0])) if f else 0.0
    values += [mean_amplitude, var_amplitude, max(events.amplitudes, default=0.0)]
    values += [mean[0], var[0], longest]
    values += [mean[1], mean[2], var[1], var[2], *diameters]
    values += [mean_blink, var_blink, b / WINDOW_S, *events.words]
    return np.array(values, dtype=np.float64)
