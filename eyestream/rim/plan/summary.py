"""A stream in ten lines, for who has a minute: what comes out and when, how much of it can be used, who is recognised.

What was measured comes from the saved figures that `eyestream advise` answers with. Half of the people of a corpus were
calibrated on, and the others released, so the figures are of strangers. Nothing is said of a calibration or a price
that was not measured.
"""

from collections.abc import Mapping
from typing import Any

from eyestream.privacy.purposes import measured
from eyestream.privacy.scopes import duration
from eyestream.rim.config.purposes import load_table
from eyestream.rim.plan.stream import StreamPlan

__all__ = ["COMES_THROUGH", "correlations", "recognised_words", "signal_words", "summary"]

COMES_THROUGH = {
    "rate_saccades": "saccades",
    "blink_rate": "blinks",
    "mean_fixation_duration": "fixation duration",
    "mean_saccade_amplitude": "amplitude",
    "mean_mean_diameter": "pupil",
}
"""Features that a summary names, and what it calls them."""


def summary(stream: StreamPlan) -> list[tuple[str, str]]:
    """(topic, sentence) pairs, each of a line or two."""
    spec, mechanism, first_s = stream.spec, stream.mechanism, stream.withheld_s + stream.chunk_s
    second, minute = stream.touched * mechanism.epsilon, mechanism.epsilon * 60.0 / stream.chunk_s
    described = f", which describes {spec.window_s:g} s of gaze" if spec.window_s else ""
    lines = [
        (
            "comes out",
            f"{spec.features} features at {spec.rate_hz:g} rows a second, {duration(stream.chunk_s)} at once",
        ),
        (
            "first chunk",
            f"{duration(first_s)} after the first row{described}; then one every {duration(stream.chunk_s)}",
        ),
        ("lasts", stream.lasting),
        ("protects", f"each chunk with epsilon {mechanism.epsilon:g}: {minute:g} a minute, added up without an end"),
    ]
    if stream.withheld_s:
        lines.append(
            ("a blink", f"epsilon {second:g} at most, outside of the first {stream.withheld_s:g} s of a session")
        )
        lines.append(("levels", "none: how someone differs from other people is subtracted. Changes over time remain"))
    else:
        lines.append(("a blink", f"epsilon {second:g} at most, and any other second of gaze"))
    table = load_table()
    found = measured(table["rows"], stream.settings.privacy.calibration, round(minute, 6))
    if found is None:
        lines.append(("signal", "not measured for this calibration at this epsilon: `eyestream study` measures it"))
    else:
        expected, above = found
        lines += [
            ("signal", signal_words(expected)),
            ("correlations", ", ".join(f"{label} {of:.2f}" for label, of in correlations(expected).items())),
            ("recognised", recognised_words(above, table)),
        ]
    lines.append(("not protected", "that the device is in use, when, and for how long; all else is in the full text"))
    return lines


def correlations(expected: Mapping[str, Any]) -> dict[str, float]:
    """Between what was released of a stranger and the truth, of chunk means, by what a summary calls each feature."""
    return {label: float(expected["features"][name]["correlation"]) for name, label in COMES_THROUGH.items()}


def signal_words(expected: Mapping[str, Any]) -> str:
    """How much comes through."""
    return f"{expected['distinct_own']:.2f} of how a stranger's features change over time (1: all, 0: nothing)"


def recognised_words(above: Mapping[str, Any], table: Mapping[str, Any]) -> str:
    """How many people were named right."""
    return (
        f"{above['rate']:.0%} of strangers by the strongest of {len(table['attackers'])} attackers; guessing names "
        f"{above['chance']:.0%}"
    )
