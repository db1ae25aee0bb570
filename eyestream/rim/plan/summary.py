"""A stream in ten lines, for who has a minute: what comes out and when, how much of it can be used, who is recognised.

What was measured comes from the saved figures that `eyestream advise` answers with. Half of the people of a corpus were
calibrated on, and the others released, so the figures are of strangers. Nothing is said of a calibration or a price
that was not measured.
"""

from collections.abc import Mapping
from typing import Any

from eyestream.core.charge import EPSILON_UNITS
from eyestream.core.scopes import duration
from eyestream.rim.config.purposes import load_table
from eyestream.rim.plan.stream import StreamPlan
from eyestream.rim.plan.words import measured_figures

_COMES_THROUGH = {
    "rate_saccades": "saccades",
    "blink_rate": "blinks",
    "mean_fixation_duration": "fixation duration",
    "mean_saccade_amplitude": "amplitude",
    "mean_mean_diameter": "pupil",
}
"""Features that a summary names, and what it calls them."""

_NOT_PROTECTED = (
    "that the device is in use, when, and for how long; head motion, voice and scene; who somebody is: epsilon bounds "
    "one chunk, and the losses of many add up. The full text has the rest"
)
_LEVELS = "are released, and identify people"
_NO_LEVELS = "not released: how a wearer differs from other people is subtracted. Changes over time remain"


def summary(stream: StreamPlan) -> list[tuple[str, str]]:
    """(topic, sentence) pairs, each of a line or two."""
    spec, mechanism, first_s = stream.spec, stream.mechanism, stream.withheld_s + stream.chunk_s
    schema = mechanism.schema
    second, minute = stream.touched * mechanism.epsilon, mechanism.epsilon * 60.0 / stream.chunk_s
    described = f" (a row describes {spec.window_s:g} s of gaze)" if spec.window_s else ""
    chunk = duration(stream.chunk_s) if stream.chunk_s >= 1 else f"{stream.chunk_s:g} s"
    ceilings = stream.deployment.ceilings
    session, day = ((ceiling or 0) / EPSILON_UNITS for ceiling in (ceilings.session, ceilings.day))
    blink = f"a blink with {second:g}"
    if stream.withheld_s:  # it is in the baseline
        blink += (
            f", and a blink in the first {stream.withheld_s:g} s, which enters all later chunks, with up to {session:g}"
        )
    what = f"{spec.features} features" if mechanism.domain.keeps else ", ".join(schema.names)
    lines = [
        ("comes out", f"{what} at {1 / schema.step_s:g} rows a second, {chunk} at once"),
        (
            "first chunk",
            f"{duration(first_s)} after the first row{described}, then one every {chunk}",
        ),
        ("lasts", stream.lasting),
        (
            "protects",
            f"each chunk with epsilon {mechanism.epsilon:g}, {blink}. The sum grows by {minute:g} a minute, to at most "
            f"{session:g} a session and {day:g} a day",
        ),
    ]
    if mechanism.domain.keeps or mechanism.calibration.anchor is not None:
        lines.append(("levels", _LEVELS if mechanism.calibration.anchor is None else _NO_LEVELS))
    table = load_table()
    found = measured_figures(mechanism, spec.rate_hz, stream.settings.privacy.calibration)
    if stream.follows:
        lines.append(("signal", f"expected error of a change: {stream.follows}"))
    elif found is None:
        how = ": `eyestream study` measures it" if mechanism.domain.keeps else ""
        lines.append(("signal", f"not measured for this calibration at this epsilon{how}"))
    else:
        expected, above = found
        lines += [
            (
                "signal",
                f"R squared of a stranger's changes over time: {expected['middle_own']:.2f} in the median feature, "
                f"mean {expected['distinct_own']:.2f} (1: all)",
            ),
            ("correlations", ", ".join(f"{label} {of:.2f}" for label, of in correlations(expected).items())),
            ("recognised", _recognised(above, table)),
            ("measured on", f"{table['people']} people, of whom half were calibrated on: {table['corpus']}"),
        ]
    lines.append(("not protected", _NOT_PROTECTED))
    return lines


def correlations(expected: Mapping[str, Any]) -> dict[str, float]:
    """Between what was released of a stranger and the truth, of chunk means, by what a summary calls each feature."""
    return {label: float(expected["features"][name]["correlation"]) for name, label in _COMES_THROUGH.items()}


def _recognised(above: Mapping[str, Any], table: Mapping[str, Any]) -> str:
    """How many people were named right, and how often two recordings of one person were told from those of two."""
    return (
        f"{above['rate']:.0%} of {above['people'] // 2} strangers by the strongest of {len(table['attackers'])} "
        f"attackers ({above['attacker']}); guessing names {above['chance']:.0%}. One person or two: area under the ROC "
        f"curve {above['area']:.2f} [{above['area_low']:.2f}, {above['area_high']:.2f}]; chance is 0.5"
    )
