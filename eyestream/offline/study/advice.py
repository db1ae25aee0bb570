"""Which shipped calibration and which epsilon an application should take, and what it may then expect.

The figures are saved ones (`eyestream/data/advice.json`, made by `tools/make/advice.py` from the corpus that the
shipped calibrations come from): calibrations made anew from a random half of the people, the other half released.
Between the epsilons that were measured, utility is interpolated in the logarithm of epsilon a minute; identity is that
of the next larger one. Nothing is said outside of what was measured.
"""

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from eyestream.errors import ConfigError
from eyestream.offline.study.prices import price
from eyestream.privacy.mechanisms import build
from eyestream.rim.files import calibrations
from eyestream.rim.files.package_data import DATA

__all__ = ["ANCHORED", "PURPOSES", "Advice", "Wish", "advise", "load_table", "markdown"]

Row = dict[str, Any]

ANCHORED = "anchored"
"""In the names of calibrations that take a baseline off each session."""

UTILITY = ("distinct", "distinct_own", "distinct_offline", "distinct_own_offline")
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


_NO_CLASS = "# without `correlation`: a class of processes says nothing of a session's baseline\n"


@dataclass(frozen=True)
class Wish:
    """What an application needs, and what must not be found out.

    Attributes
    ----------
    epsilon_per_minute : of the stream, on average.
    delay_s : at most so long from a row to the release of its chunk.
    hide_identity : whether it must be hard to find out who it is.
    hours_a_day : for the ceilings.
    """

    epsilon_per_minute: float
    delay_s: float
    hide_identity: bool = False
    hours_a_day: float = 8.0


PURPOSES = {
    "adapt": Wish(18.0, 20.0),
    "trends": Wish(18.0, 70.0),
    "unrecognised": Wish(18.0, 40.0, hide_identity=True),
}
"""What applications are for: to adapt to what the wearer does now; to follow behaviour over minutes, of people who are
known anyway; the same of people whom the application must not recognise."""


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
    price : epsilon of a chunk, of a minute on average and at worst, of a second of gaze, and of a day; where a baseline
        is taken off, of gaze that lies behind its reach.
    withheld_s : of each session, for its baseline; what lies in there costs up to the sum over the session.
    guess_factor : by which a chunk raises the chance of a right guess about it, at most, on average.
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

    def configuration(self) -> str:
        """The tables of a sidecar's configuration that do what is advised."""
        touched = round(self.price["second"] / self.epsilon)
        day = self.price["day"]
        return (
            "[stream.privacy]\n"
            f'calibration = "{self.calibration}"\n'
            f"epsilon = {self.epsilon:g}\n"
            f"{_NO_CLASS if self.withheld_s else ''}\n"
            "[budget]\n"
            f"window_chunks = {touched}\n"
            f"window_epsilon = {touched * self.epsilon:g}\n"
            f"session_epsilon = {day:g}\n"
            f"day_epsilon = {day:g}\n"
        )

    def into(self, text: str) -> str:
        """The configuration `text` of one stream with what is advised in the place of its values; its comments stay."""
        for line in self.configuration().splitlines():
            key, found, value = line.partition(" = ")
            if found and not line.startswith("#"):
                text, count = re.subn(rf"(?m)^{key} = \S+", f"{key} = {value}", text, count=1)
                if not count:
                    raise ConfigError(f"the configuration to change has no {key}")
        there, wanted = (r"", r"# ") if self.withheld_s else (r"# ", r"")
        return re.sub(rf"(?m)^{there}(correlation = )", rf"{wanted}\1", text, count=1)


def load_table() -> dict[str, Any]:
    """The saved figures."""
    text = (DATA / "advice.json").read_text(encoding="utf-8")
    table: dict[str, Any] = json.loads(text)
    return table


def advise(wish: Wish, table: dict[str, Any]) -> Advice:
    """What to take of what ships.

    Of the calibrations whose chunks are no longer than the delay, the one of which most is expected: against the common
    mean, or, where identity is hidden, within people. Then those are left out in which the strongest attacker reached
    an area that so many people would have shown, at the next larger epsilon that was measured.

    Raises
    ------
    ConfigError
        No calibration is quick enough, nothing was measured at such an epsilon, or people were found in all of them.
    """
    rows = [row for row in table["rows"] if (ANCHORED in row["calibration"]) == wish.hide_identity]
    minutes = sorted({row["minute"] for row in rows})
    if not minutes[0] <= wish.epsilon_per_minute <= minutes[-1]:
        raise ConfigError(
            f"--epsilon-per-minute: expected {minutes[0]:g} to {minutes[-1]:g}, where figures were measured, not "
            f"{wish.epsilon_per_minute:g}"
        )
    if not (math.isfinite(wish.hours_a_day) and 0 < wish.hours_a_day <= 24):
        raise ConfigError(f"--hours: expected more than 0 and at most 24, not {wish.hours_a_day:g}")
    rate = {row["calibration"]: row["minute"] * row["n"] / row["epsilon"] / 60 for row in rows}
    quick = [row for row in rows if row["n"] / rate[row["calibration"]] <= wish.delay_s]
    if not quick:
        shortest = min(row["n"] / rate[row["calibration"]] for row in rows)
        raise ConfigError(f"--delay: expected {shortest:g} s or more, the length of the shortest chunk that ships")
    key = "distinct_own" if wish.hide_identity else "distinct"
    names = {row["calibration"] for row in quick}
    between = {name: _between(rows, name, wish.epsilon_per_minute) for name in names}
    if wish.hide_identity:
        names = {name for name in names if between[name][1]["area"] < between[name][1]["least_area"]}
    if not names:
        raise ConfigError(
            f"--hide-identity: at {wish.epsilon_per_minute:g} a minute people were found in whatever is quick enough; "
            "expected a smaller --epsilon-per-minute, or a longer --delay"
        )
    chosen = max(sorted(names), key=lambda name: float(between[name][0][key]))
    return _answer(wish, chosen, *between[chosen], rate[chosen])


def _answer(wish: Wish, name: str, expected: Row, above: Row, rate_hz: float) -> Advice:
    n = int(above["n"])
    exact = wish.epsilon_per_minute * n / (60 * rate_hz)
    epsilon = math.floor(round(exact * 1e6, 3)) / 1e6  # as people write it, and not above what was asked
    mechanism = build(calibrations.load(name), epsilon)
    anchor = mechanism.calibration.anchor
    costs = price(epsilon, n, rate_hz)
    assert mechanism.gain is not None
    return Advice(
        calibration=name,
        epsilon=epsilon,
        chunk=n,
        delay_s=n / rate_hz,
        expected=expected,
        identity={key: above[key] for key in IDENTITY} | {"epsilon_per_minute": above["minute"]},
        price={
            "chunk": costs.chunk,
            "minute": costs.minute,
            "worst_minute": costs.worst_minute,
            "second": costs.second,
            "day": costs.minute * 60 * wish.hours_a_day,
        },
        guess_factor=float(mechanism.gain),
        withheld_s=0.0 if anchor is None else anchor.chunks * n / rate_hz,
    )


def _between(rows: Sequence[Row], name: str, minute: float) -> tuple[Row, Row]:
    """Utility at `minute`, and the row of the next larger epsilon that was measured, or of this one."""
    own = sorted((row for row in rows if row["calibration"] == name), key=lambda row: float(row["minute"]))
    above = next(row for row in own if row["minute"] >= minute)
    below = next(row for row in reversed(own) if row["minute"] <= minute)
    share = 0.0 if above is below else math.log(minute / below["minute"]) / math.log(above["minute"] / below["minute"])

    def mix(low: float | None, high: float | None) -> float | None:
        return None if low is None or high is None else (1 - share) * low + share * high

    expected: Row = {key: mix(below[key], above[key]) for key in UTILITY}
    expected["coverage"] = min(below["coverage"], above["coverage"])
    expected["features"] = {
        feature: {key: mix(below["features"][feature][key], figure) for key, figure in figures.items()}
        for feature, figures in above["features"].items()
    }
    return expected, above


def markdown(table: dict[str, Any]) -> str:
    """Every row of the figures, for the documentation."""
    head = (
        "| calibration | delay | epsilon a minute | of a chunk | explained, live / recording | offsets removed, live / "
        "recording | strongest attacker | right names (chance) | area under ROC |"
    )
    lines = [head, "|" + "---|" * 9]
    for row in sorted(table["rows"], key=lambda r: (r["calibration"].rsplit("-", 1)[0], r["n"], r["minute"])):
        cells = [
            f"`{row['calibration']}`",
            f"{row['epsilon'] * 60 / row['minute']:g} s",
            f"{row['minute']:g}",
            f"{row['epsilon']:g}",
            f"{row['distinct']:.2f} / {row['distinct_offline']:.2f}",
            f"{row['distinct_own']:.2f} / {row['distinct_own_offline']:.2f}",
            str(row["attacker"]),
            f"{row['rate']:.2f} [{row['rate_low']:.2f}, {row['rate_high']:.2f}] ({row['chance']:.2f})",
            f"{row['area']:.2f} [{row['area_low']:.2f}, {row['area_high']:.2f}]",
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)
