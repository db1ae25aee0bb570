"""Purposes of applications, and the calibration and epsilon that each comes to, of what was measured.

The choice is a function of saved figures: rows with `calibration`, `n`, `epsilon` of a chunk, `minute` (epsilon a
minute), utility, and what the strongest attacker found. `eyestream advise` tells it with all its figures; a
configuration may name a purpose instead of a calibration (`eyestream.rim.config.purposes`).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Any

from eyestream.errors import ConfigError

Row = Mapping[str, Any]

TASKS = "tasks"
"""A purpose whose calibration is the operator's: nobody else knows which tasks there are."""

ANCHORED = "anchored"
"""In the names of calibrations that take a baseline off each session."""

_UTILITY = ("distinct", "distinct_own", "middle", "middle_own", "distinct_offline", "distinct_own_offline")


@dataclass(frozen=True)
class Wish:
    """The needs of an application, and what must not be found out.

    Attributes
    ----------
    epsilon_per_minute : of the stream, on average over rows without a pause.
    delay_s : at most so long from a row to the release of its chunk.
    hide_identity : whether it must be hard to find out who it is.
    hours_a_day, hours_a_session : for the ceilings; a session may last the whole day where nothing else is said.
    """

    epsilon_per_minute: float
    delay_s: float
    hide_identity: bool = False
    hours_a_day: float = 8.0
    hours_a_session: float | None = None


_USUAL_MINUTE, _SESSION_MINUTES, _DAY_MINUTES = 9.0, 128.0, 256.0
"""Epsilon a minute at which fewest people were found, 4.8 for a chunk of 64 rows; and minutes of releases at it."""

SESSION_EPSILON, DAY_EPSILON = _USUAL_MINUTE * _SESSION_MINUTES, _USUAL_MINUTE * _DAY_MINUTES
"""Ceilings of a configuration that says nothing else: 1152 and 2304."""

PURPOSES = {
    "adapt": Wish(18.0, 20.0),
    "trends": Wish(18.0, 70.0),
    "unrecognised": Wish(
        _USUAL_MINUTE,
        40.0,
        hide_identity=True,
        hours_a_day=_DAY_MINUTES / 60,
        hours_a_session=_SESSION_MINUTES / 60,
    ),
}
"""Wishes by purpose, as `words` says them. The default configuration is for the last one, and has its ceilings."""

_WORDS = {
    "adapt": "to adapt to what the wearer does now",
    "trends": "behaviour over minutes, of people who are known anyway",
    "unrecognised": "behaviour over minutes, of people whom the application should hardly recognise",
    TASKS: "which task a wearer does, without the level that tells who it is",
}


@dataclass(frozen=True)
class Choice:
    """The answer to a wish.

    Attributes
    ----------
    calibration : name of a shipped one.
    epsilon : of a chunk.
    n : rows of a chunk.
    rate_hz : rows a second.
    expected : utility at this epsilon, by name, and of each feature.
    above : the row of the next larger epsilon that was measured, or of this one.
    """

    calibration: str
    epsilon: float
    n: int
    rate_hz: float
    expected: Row
    above: Row


def words(purpose: str) -> str:
    """A purpose, for a sentence."""
    return _WORDS[purpose]


def choose(wish: Wish, rows: Sequence[Row]) -> Choice:
    """Choose among what was measured.

    Of the calibrations whose chunks are no longer than the delay, the one of which most is expected: against the common
    mean, or, where identity is hidden, within people. Then those are left out in which the strongest attacker reached
    an area that one split of so many people would have shown, at the next larger epsilon that was measured. Below it
    people may still be found more often than by chance, as more splits tell; whoever prints the answer says so.

    Raises
    ------
    ConfigError
        No calibration is quick enough, nothing was measured at such an epsilon, or people were found in all of them.
        Begins with the name of the attribute of the wish.
    """
    rows = [row for row in rows if (ANCHORED in row["calibration"]) == wish.hide_identity]
    minutes = sorted({row["minute"] for row in rows})
    if not minutes[0] <= wish.epsilon_per_minute <= minutes[-1]:
        raise ConfigError(
            f"epsilon_per_minute: expected {minutes[0]:g} to {minutes[-1]:g}, where figures were measured, not "
            f"{wish.epsilon_per_minute:g}"
        )
    rate = {row["calibration"]: row["minute"] * row["n"] / row["epsilon"] / 60 for row in rows}
    quick = [row for row in rows if row["n"] / rate[row["calibration"]] <= wish.delay_s]
    if not quick:
        shortest = min(row["n"] / rate[row["calibration"]] for row in rows)
        raise ConfigError(f"delay_s: expected {shortest:g} s or more, the length of the shortest chunk that ships")
    key = "distinct_own" if wish.hide_identity else "distinct"
    names = {row["calibration"] for row in quick}
    between = {name: _between(rows, name, wish.epsilon_per_minute) for name in names}
    if wish.hide_identity:
        names = {name for name in names if between[name][1]["area"] < between[name][1]["least_area"]}
    if not names:
        raise ConfigError(
            f"hide_identity: at {wish.epsilon_per_minute:g} a minute people were found in whatever is quick enough; "
            "expected less epsilon a minute, or longer chunks"
        )
    chosen = max(sorted(names), key=lambda name: float(between[name][0][key]))
    (expected, above), rate_hz = between[chosen], rate[chosen]
    epsilon = chunk_price(wish.epsilon_per_minute, above["n"], rate_hz)
    return Choice(chosen, epsilon, int(above["n"]), rate_hz, expected, above)


def measured(rows: Sequence[Row], calibration: str, epsilon_per_minute: float) -> tuple[Row, Row] | None:
    """Utility of a shipped calibration at a price, and the row of the next larger one; None: it was not measured."""
    minutes = [row["minute"] for row in rows if row["calibration"] == calibration]
    if not minutes or not min(minutes) <= epsilon_per_minute <= max(minutes):
        return None
    return _between(rows, calibration, epsilon_per_minute)


def chunk_price(minute: float, n: int, rate_hz: float) -> float:
    """Epsilon of a chunk of `n` rows at so much a minute: as people write it, and not above what was asked.

    >>> chunk_price(9.0, 64, 2.0)
    4.8
    """
    return math.floor(round(minute * n / (60 * rate_hz) * 1e6, 3)) / 1e6


def _log(ratio: float) -> float:
    """Rounded once, so that one wish has one answer on every machine."""
    return float(Decimal(ratio).ln(Context(prec=30)))


def _between(rows: Sequence[Row], name: str, minute: float) -> tuple[Row, Row]:
    """Utility at `minute`, and the row of the next larger epsilon that was measured, or of this one."""
    own = sorted((row for row in rows if row["calibration"] == name), key=lambda row: float(row["minute"]))
    above = next(row for row in own if row["minute"] >= minute)
    below = next(row for row in reversed(own) if row["minute"] <= minute)
    share = 0.0 if above is below else _log(minute / below["minute"]) / _log(above["minute"] / below["minute"])

    def mix(low: float | None, high: float | None) -> float | None:
        return None if low is None or high is None else (1 - share) * low + share * high

    expected: dict[str, Any] = {key: mix(below[key], above[key]) for key in _UTILITY}
    expected["coverage"] = min(below["coverage"], above["coverage"])
    expected["features"] = {
        feature: {key: mix(below["features"][feature][key], figure) for key, figure in figures.items()}
        for feature, figures in above["features"].items()
    }
    return expected, above
