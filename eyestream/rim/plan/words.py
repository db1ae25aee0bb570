"""Words of a plan: how long ceilings last, what a purpose came to, how the error grows, what a wearer costs."""

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from eyestream.core.charge import Ceilings
from eyestream.core.mechanism import Mechanism
from eyestream.core.purposes import PURPOSES, measured, words
from eyestream.core.scopes import Deployment, Scope, allowed_chunks, duration, level_seconds, limited, scopes_of
from eyestream.rim.config import AddedTable, PrivacySettings, SidecarSettings
from eyestream.rim.config.purposes import load_table

if TYPE_CHECKING:
    from eyestream.claims.borders import SessionBorders
    from eyestream.claims.facts import TrustModel

MOST_IN_SHORT = 200
"""Bytes."""

_DAY_S = 86_400.0
_YEAR_S = 365.25 * _DAY_S
_LEAST_FOLLOWS = 0.5
"""Below this correlation less than a quarter of a feature's changes is left, and an application sees noise."""
_HARDLY = 10.0
"""Above this epsilon of a chunk its bound on the odds, e^10 = 22,026, says next to nothing."""


def borders_of(answers: bool | None) -> "SessionBorders | None":
    """The rule for the borders of sessions of live gaze; `answers` as in `StreamParts`."""
    if answers is None:
        return None
    from eyestream.claims.borders import SessionBorders  # noqa: PLC0415
    from eyestream.gaze.clock_map import LEAST, PERIOD_S  # noqa: PLC0415  for who has gaze
    from eyestream.gaze.live import SILENCE_S  # noqa: PLC0415

    return SessionBorders(PERIOD_S, LEAST, SILENCE_S, answers)


def trust_model_of(sidecar: SidecarSettings, added: AddedTable | None) -> "TrustModel":
    """The trust model, by where the ledger is, or by the table that another distribution adds."""
    from eyestream.claims.facts import TrustModel  # noqa: PLC0415  for who asks

    if added is not None and (model := added.trust_model) is not None:
        return model
    return TrustModel() if sidecar.second_place is None else TrustModel.guarded()


def lasting_words(mechanism: Mechanism, deployment: Deployment) -> str:
    """``a session 2 h 08 min of releases, a day 4 h 16 min``: how long ceilings last, rows without a pause.

    What the window withholds, and a baseline, comes after it.
    """
    found = [
        f"a {scope.unit} {duration(scope.seconds)}"
        for scope in scopes_of(mechanism.loss, mechanism.n, deployment)
        if scope.seconds is not None
    ]
    text = ", ".join(found) + " of releases"
    levels = level_seconds(mechanism.loss, mechanism.n, deployment)
    if len(levels) > 1:
        text += f"; the lifetime fades on {len(levels)} levels, each at half the epsilon of the one before: "
        text += ", ".join(map(duration, levels))
    allowed, chunks = allowed_chunks(mechanism.loss, deployment), deployment.ceilings.window_chunks
    if not deployment.beside and allowed < chunks and len(levels) < 2:
        text += f"; of {chunks} chunks in a row the window withholds {chunks - allowed}"
    if mechanism.sessions:
        text += f"; of every {mechanism.sessions} sessions of a wearer the first is withheld"
    if mechanism.baseline_chunks:
        text += f"; of each session the first {withheld_seconds(mechanism, deployment.stream.rate_hz):g} s are withheld"
    return text


def epsilon_warnings(mechanism: Mechanism, deployment: Deployment) -> tuple[str, ...]:
    """That it hardly bounds anything, lasts for years, or leaves nothing to see; nothing where it is usable."""
    found, epsilon = [], f"epsilon {mechanism.epsilon:g} of a chunk"
    if mechanism.epsilon > _HARDLY:
        found.append(
            f"{epsilon} hardly protects the chunk: the odds between two contents of it may change by a factor of "
            f"{_factor(mechanism.epsilon)}. At epsilon {_HARDLY:g} the factor is {_factor(_HARDLY)} already"
        )
    for scope in scopes_of(mechanism.loss, mechanism.n, deployment):
        if scope.unit in {"session", "day"} and scope.seconds is not None and scope.seconds > _YEAR_S:
            lasting = duration(scope.seconds)
            found.append(f"{epsilon} is so small that the ceiling of a {scope.unit} lasts {lasting} of releases")
    return (*found, *too_little(mechanism))


def too_little(mechanism: Mechanism) -> Iterator[str]:
    """That its epsilon leaves next to nothing of what is asked for, or takes years of averaging.

    The average of m chunks has an error of `noise_sd` / sqrt(m). Usable is a tenth of a feature's range.
    """
    epsilon = f"epsilon {mechanism.epsilon:g} of a chunk"
    if mechanism.follows is not None and mechanism.follows.min() < _LEAST_FOLLOWS:
        yield (
            f"{epsilon} is too little for what is asked for: {follows_words(mechanism)}. Ask for fewer features, or "
            "raise epsilon"
        )
    width = np.asarray(mechanism.calibration.hi) - np.asarray(mechanism.calibration.lo)
    noise = np.asarray(mechanism.noise_sd)
    if mechanism.domain.keeps and (released := (width > 0) & (noise > 0)).any():
        chunks = float(np.median(noise[released] / width[released]) * 10.0) ** 2
        seconds = chunks * mechanism.n / mechanism.calibration.rate_hz
        if seconds > _YEAR_S:
            yield (
                f"{epsilon} adds so much noise that {duration(seconds)} of chunks must be averaged before the error of "
                "the median feature is a tenth of its range"
            )


def follows_words(mechanism: Mechanism) -> str:
    """``blink_rate +-0.06 1/s (correlation with the truth .84)``, for each asked feature; empty where none is asked."""
    if mechanism.follows is None:
        return ""
    schema = mechanism.schema
    each = zip(schema.names, mechanism.noise_sd, schema.units, mechanism.follows, strict=True)
    return ", ".join(
        f"{name} +-{error:.2g}{'' if unit == '1' else f' {unit}'} (correlation with the truth {follows:.2f})"
        for name, error, unit, follows in each
    )


def _factor(epsilon: float) -> str:
    """``e^48``, with its value as long as that is a number to read."""
    return f"e^{epsilon:g}" + (f" = {math.exp(epsilon):,.0f}" if epsilon < 30 else "")


def withheld_seconds(mechanism: Mechanism, rate_hz: float) -> float:
    """Seconds of each session that its baseline takes; 0 where none is subtracted."""
    return mechanism.baseline_chunks * mechanism.n / rate_hz


def wearer_scopes(ceilings: Ceilings | None) -> tuple[Scope, ...]:
    """Most that a wearer whom the tracker names costs, and what that rests on; nothing without ceilings."""
    if ceilings is None:
        return ()
    of = "the sum over the chunks of this device whose sessions name one wearer"
    why = (
        f"{of}: a person, by a handle that the tracker gives. The handles are believed: a person under several handles "
        "has as many budgets, and only the ceilings of the device bound their sum. Chunks without a handle count for "
        "no wearer. The same handle on another device is another wearer. What is withheld for a ceiling of a wearer "
        "can be seen: it tells that the person who wears the device has spent that much, and after the end of a "
        "lifetime each later session of that person can be known by it"
    )
    return (
        Scope("wearer", None, None, None, why),
        limited("wearer, day", ceilings.on("day"), f"{of}, on a day in UTC by the host's clock"),
        limited("wearer, lifetime", ceilings.on("lifetime"), f"{of}, since the ledger began; it does not fade"),
    )


def error_words(mechanism: Mechanism, levels: int) -> str | None:
    """How much larger than `noise_sd` of `meta` the error is on later levels; None where the lifetime does not fade."""
    if levels == 1:
        return None
    said, first = [], np.asarray(mechanism.noise_sd)
    for level in range(1, levels):
        other = mechanism.faded(level)
        factor = (
            float(np.median(np.asarray(other.noise_sd)[first > 0] / first[first > 0])) if (first > 0).any() else 1.0
        )
        said.append(f"{factor:.3g} at epsilon {other.epsilon:g}")
    return (
        f"`noise_sd` of `meta` is the error to expect on the first level, epsilon {mechanism.epsilon:g} a chunk. On "
        "later ones, which `epsilon` of a chunk tells, it is larger, by this factor for the median feature: "
        f"{', '.join(said)}"
    )


def purpose_words(privacy: PrivacySettings, mechanism: Mechanism) -> str | None:
    """The purpose that the configuration names, and what it came to; None where it names none."""
    if privacy.purpose is None:
        return None
    if privacy.purpose not in PURPOSES:  # the calibration is the operator's
        return (
            f"{privacy.purpose}: {words(privacy.purpose)}, at epsilon {privacy.epsilon_per_minute:g} a minute, which "
            f"is epsilon {mechanism.epsilon:g} for a chunk of {mechanism.n} rows. "
            f"The words: {', '.join(mechanism.schema.names)}"
        )
    return (
        f"{privacy.purpose}: {words(privacy.purpose)}, at epsilon {privacy.epsilon_per_minute:g} a minute. By the "
        f"figures that come with this version: {privacy.calibration}, epsilon {mechanism.epsilon:g} for a chunk of "
        f"{mechanism.n} rows. A newer version may take another calibration, at no higher price for "
        "rows without a pause"
    )


def in_short(mechanism: Mechanism, deployment: Deployment, calibration: str) -> str | None:
    """The stream as an application gets it, in at most `MOST_IN_SHORT` bytes; None where no rows are released.

    `meta` has it among the words of `guarantee`, so that every reader of version 1 can show it.
    """
    if not mechanism.domain.keeps and mechanism.follows is None:
        return None
    day = next(scope.seconds for scope in scopes_of(mechanism.loss, mechanism.n, deployment) if scope.unit == "day")
    lasting = "" if day is None or day >= _DAY_S else f", {duration(day)} a day"
    if mechanism.follows is not None:
        each = zip(mechanism.schema.names, mechanism.follows, strict=True)
        said = ", ".join(f"{name} {follows:.2f}" for name, follows in each)
        return f"changes, no levels. Correlation with the truth that is expected: {said}{lasting}"
    found = measured_figures(mechanism, deployment.stream.rate_hz, calibration)
    if found is None:
        return f"the signal was not measured for this calibration at this epsilon{lasting}"
    expected, above = found
    levels = "no levels" if mechanism.baseline_chunks else "levels too"
    return (
        f"measured, not promised: {expected['middle_own']:.2f} of the variance of a stranger's changes in the middle "
        f"feature (mean {expected['distinct_own']:.2f}, 1: all), "
        f"{levels}; {above['rate']:.0%} of strangers named right (guessing: {above['chance']:.0%}){lasting}"
    )


def measured_figures(
    mechanism: Mechanism, rate_hz: float, calibration: str
) -> tuple[Mapping[str, Any], Mapping[str, Any]] | None:
    """The saved figures of a calibration at the price of a mechanism, and of the next larger price."""
    minute = mechanism.epsilon * 60.0 * rate_hz / mechanism.n
    return measured(load_table()["rows"], calibration, round(minute, 6))
