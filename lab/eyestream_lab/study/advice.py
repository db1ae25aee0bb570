"""Which shipped calibration and which epsilon an application should take, and what it may then expect.

The figures are saved ones (`eyestream/data/advice.json`, made by `tools/make/advice.py` from the corpus that the
shipped calibrations come from): calibrations made anew from a random half of the people, the other half released.
Between the epsilons that were measured, utility is interpolated in the logarithm of epsilon a minute; identity is that
of the next larger one. Nothing is said outside of what was measured.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from eyestream.core.calibration import Calibration
from eyestream.core.mechanisms import build
from eyestream.core.purposes import PURPOSES, Wish, choose
from eyestream.errors import ConfigError
from eyestream.ops.new_configuration import ChosenTables
from eyestream.rim.config.purposes import load_table
from eyestream.rim.files import calibrations
from eyestream.rim.files.recordings import Recording
from eyestream_lab.recordings.worth import refuse_own_people
from eyestream_lab.study.fidelity import Fidelity, Yardstick, fidelity
from eyestream_lab.study.prices import price
from eyestream_lab.study.sessions import WITHHELD_ROWS, released_session

__all__ = ["PURPOSES", "Advice", "Wish", "advise", "check_hours", "load_table", "markdown", "measured"]

_OPTIONS = {
    "epsilon_per_minute": "--epsilon-per-minute",
    "delay_s": "--delay",
    "hide_identity": "--hide-identity",
}
IDENTITY = (
    "attacker",
    "area",
    "area_low",
    "area_high",
    "rate",
    "rate_low",
    "rate_high",
    "chance",
    "people",
    "least_area",
)


@dataclass(frozen=True)
class Advice:
    """An answer.

    Attributes
    ----------
    calibration : name of a shipped one.
    epsilon : of a chunk.
    chunk : rows.
    delay_s : length of a chunk.
    expected : utility, live and of whole recordings, by name, and of each feature.
    identity : the strongest attacker of those that were tried, and how sure.
    price : epsilon of a chunk, of a minute on average and at worst, of a second of gaze, of a session and of a day;
        where a baseline is taken off, of gaze that lies behind its reach.
    withheld_s : of each session, for its baseline; what lies in there costs up to the sum over the session.
    guess_factor : by which a chunk raises the chance of a right guess about it, at most, on average.
    tables : of a sidecar's configuration that do what is advised.
    """

    calibration: str
    epsilon: float
    chunk: int
    delay_s: float
    expected: dict[str, Any]
    identity: dict[str, Any]
    price: dict[str, float]
    guess_factor: float
    withheld_s: float
    tables: ChosenTables


def advise(wish: Wish, table: dict[str, Any]) -> Advice:
    """Choose among what ships (`eyestream.core.purposes.choose`), with its price and what to expect of it.

    Raises
    ------
    ConfigError
        No calibration is quick enough, nothing was measured at such an epsilon, or people were found in all of them.
    """
    check_hours(wish)
    try:
        choice = choose(wish, table["rows"])
    except ConfigError as error:
        attribute, _, said = str(error).partition(": ")
        raise ConfigError(f"{_OPTIONS[attribute]}: {said}") from None
    mechanism = build(calibrations.load(choice.calibration), choice.epsilon)
    tables, costs = ChosenTables.of(wish, choice), price(choice.epsilon, choice.n, choice.rate_hz)
    assert mechanism.gain is not None
    return Advice(
        calibration=choice.calibration,
        epsilon=choice.epsilon,
        chunk=choice.n,
        delay_s=choice.n / choice.rate_hz,
        expected=dict(choice.expected),
        identity={key: choice.above[key] for key in IDENTITY} | {"epsilon_per_minute": choice.above["minute"]},
        price={
            "chunk": costs.chunk,
            "minute": costs.minute,
            "worst_minute": costs.worst_minute,
            "second": costs.second,
            "session": tables.session_epsilon,
            "day": tables.day_epsilon,
        },
        guess_factor=float(mechanism.gain),
        withheld_s=tables.withheld_s,
        tables=tables,
    )


def check_hours(wish: Wish) -> None:
    """Raise ConfigError where a day has no such hours of use."""
    if not (math.isfinite(wish.hours_a_day) and 0 < wish.hours_a_day <= 24):
        raise ConfigError(f"--hours: expected more than 0 and at most 24, not {wish.hours_a_day:g}")


def measured(calibration: Calibration, epsilon: float, recordings: Sequence[Recording]) -> dict[str, Any]:
    """Utility of a release of these people by a calibration, in the place of what an `Advice` expects.

    For public or consented people, of another tracker above all. Each recording is released once, as a session; nothing
    of it is kept. Against the common mean of these people, as in the saved figures. Identity is not measured.

    Raises
    ------
    CalibrationError
        A recording has other features than the calibration, or the calibration was made from it.
    ConfigError
        There are fewer than two recordings, or one is too short.
    """
    mechanism, n = build(calibration, epsilon), calibration.n
    if len(recordings) < 2:
        raise ConfigError("--recording: expected two people or more: figures are against their common mean")
    for recording in recordings:
        calibration.check_stream(recording.names, recording.rate_hz)
        refuse_own_people(calibration, recording, recording.path)
        if len(recording.t) < WITHHELD_ROWS + 2 * n:
            least = WITHHELD_ROWS + 2 * n
            raise ConfigError(f"--recording {recording.path}: has {len(recording.t)} rows, expected {least} or more")
    yardstick = Yardstick.of(
        np.concatenate([recording.features for recording in recordings]),
        calibration.names,
        np.flatnonzero(~calibration.constant),
    )
    sessions = [released_session(mechanism, recording.features, n) for recording in recordings]
    raw = [session[0] for session in sessions]
    live = fidelity(yardstick, raw, [session[1] for session in sessions], n)
    later = fidelity(yardstick, raw, [session[1] if session[2] is None else session[2] for session in sessions], n)
    return _expected(live, later, calibration.names)


def _expected(live: Fidelity, later: Fidelity, names: Sequence[str]) -> dict[str, Any]:
    """The same figures as the saved ones: of a feature that does not vary there is none."""
    each = {
        name: {
            key: float(value) if np.isfinite(value := getattr(live, key)[i]) else None
            for key in ("explained", "own", "correlation", "partial")
        }
        for i, name in enumerate(names)
    }
    return {
        "distinct": live.distinct,
        "distinct_own": live.distinct_own,
        "middle": live.middle,
        "middle_own": live.middle_own,
        "distinct_offline": later.distinct,
        "distinct_own_offline": later.distinct_own,
        "features": each,
    }


def markdown(table: dict[str, Any]) -> str:
    """Every row of the figures, for the documentation."""
    head = (
        "| calibration | delay | epsilon a minute | of a chunk | explained, live / recording | median feature, live | "
        "offsets removed, live / recording | median feature, live | strongest attacker | right names (chance) | "
        "area under ROC |"
    )
    lines = [head, "|" + "---|" * 11]
    for row in sorted(table["rows"], key=lambda r: (r["calibration"].rsplit("-", 1)[0], r["n"], r["minute"])):
        cells = [
            f"`{row['calibration']}`",
            f"{row['epsilon'] * 60 / row['minute']:g} s",
            f"{row['minute']:g}",
            f"{row['epsilon']:g}",
            f"{row['distinct']:.2f} / {row['distinct_offline']:.2f}",
            f"{row['middle']:.2f}",
            f"{row['distinct_own']:.2f} / {row['distinct_own_offline']:.2f}",
            f"{row['middle_own']:.2f}",
            str(row["attacker"]),
            f"{row['rate']:.2f} [{row['rate_low']:.2f}, {row['rate_high']:.2f}] ({row['chance']:.2f})",
            f"{row['area']:.2f} [{row['area_low']:.2f}, {row['area_high']:.2f}]",
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)
