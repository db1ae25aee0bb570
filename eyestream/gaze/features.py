"""The 52 features of a window of 30 s, with names and units; `window` computes them.

Bulling et al. 2011 and Steil et al. 2019, with these decisions: an event belongs to the window in which it is *known*,
so that a row is a function of the past; population variances; an empty set gives 0, but what the tracker did not give
at all in the window is NaN, because a constant 0 would mark a person; angles in degrees, so that trackers compare.
"""

from dataclasses import dataclass

WINDOW_S = 30.0
STEP_S = 0.5


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
