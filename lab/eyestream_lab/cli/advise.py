"""``eyestream advise``: which calibration and epsilon to take, and what to expect of them."""

import argparse
import json
import math
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from eyestream.cli.init import initialise
from eyestream.cli.options import add_profile, positive
from eyestream.cli.progress import busy, load_all
from eyestream.errors import ConfigError
from eyestream.rim.files import calibrations
from eyestream.rim.files.package_data import fresh_configuration
from eyestream.rim.files.profiles import load_profile
from eyestream_lab.study.advice import Advice, Wish, advise, load_table, markdown, measured

__all__ = ["add_parser", "main"]

SHOWN = (
    "rate_saccades",
    "blink_rate",
    "mean_fixation_duration",
    "mean_saccade_amplitude",
    "mean_mean_diameter",
)


def add_parser(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "advise",
        help="which calibration and epsilon to take, and what to expect of them",
        description="Say what the application needs and what must not be found out; the answer is a shipped "
        "calibration, an epsilon, what to expect of them on people who were not in the calibration, and tables for the "
        "configuration. The figures are of one corpus, named in the answer.",
    )
    parser.add_argument(
        "--epsilon-per-minute", type=positive, default=18.0, metavar="E", help="on average (default %(default)g)"
    )
    parser.add_argument(
        "--delay",
        type=positive,
        default=40.0,
        metavar="SECONDS",
        help="from a row to its release (default %(default)g)",
    )
    parser.add_argument("--hours", type=positive, default=8.0, metavar="H", help="of use a day (default %(default)g)")
    parser.add_argument("--hide-identity", action="store_true", help="it must be hard to find out who it is")
    parser.add_argument(
        "--recording",
        type=Path,
        nargs="+",
        metavar="FILE",
        help="public or consented recordings of your tracker, one a person: what to expect is then measured on them. "
        "The saved figures are of one tracker and do not hold for another",
    )
    parser.add_argument(
        "--calibration",
        metavar="FILE",
        help="with --recording: advise nothing, and say what comes through with this file, or shipped calibration, at "
        "--epsilon-per-minute",
    )
    add_profile(parser)
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="one line of JSON")
    form.add_argument("--table", action="store_true", help="all figures that the answers come from, as Markdown")
    form.add_argument(
        "--out", type=Path, metavar="DIR", help="write DIR/sidecar.toml that does it, and its ledger, as init does"
    )


def main(options: argparse.Namespace) -> None:
    """Print the advice; with --out, also do as it says.

    Raises
    ------
    ConfigError
        No calibration is quick enough, nothing was measured at such an epsilon, recordings cannot be measured on, or
        DIR has a configuration already.
    RecordingError, CalibrationError
        A recording is not what it should be, or has other features.
    LedgerError
        The ledger of DIR exists, or is missing beside its configuration.
    """
    table = load_table()
    if options.table:
        print(markdown(table))
        return
    if options.calibration is not None:
        _worth(options)
        return
    wish = Wish(options.epsilon_per_minute, options.delay, options.hide_identity, options.hours)
    advice, own = advise(wish, table), len(options.recording or [])
    if options.profile and not own:
        raise ConfigError("--profile goes with --recording")
    if own:
        profile = load_profile(options.profile) if options.profile else None
        loaded = load_all(options.recording, profile)
        with busy(f"released as advised, {own} recordings"):
            expected = measured(calibrations.load(advice.calibration), advice.epsilon, loaded)
            advice = replace(advice, expected=expected)
    if options.json:
        told = {key: value for key, value in asdict(advice).items() if key != "tables"} | {
            "corpus": table["corpus"],
            "people": table["people"],
            "measured_on": own,
        }
        print(json.dumps(told | {"configuration": advice.tables.text()}))
        return
    print(_text(advice, table, own, options.hours))
    if options.out is not None:
        print()
        initialise(options.out, advice.tables.into(fresh_configuration()))


def _text(advice: Advice, table: dict[str, Any], given: int, hours: float) -> str:
    """`given`: of how many recordings the expected figures are; 0: they are the saved ones. `hours` of use a day."""
    price, expected, who = advice.price, advice.expected, advice.identity
    lines = [
        f"calibration    {advice.calibration}",
        f"epsilon        {advice.epsilon:g} a chunk of {advice.chunk} rows ({advice.delay_s:g} s), which is "
        f"{price['minute']:g} a minute on average. At most {price['worst_minute']:g} for any minute of gaze, and "
        f"{price['second']:g} for any second. {hours:g} hours of use add up to {price['day']:g}, the ceiling of a day",
        "guessing       a chunk raises the chance of guessing something about it at most "
        f"{advice.guess_factor:.3g} times on average (e^epsilon: {math.exp(min(advice.epsilon, 700)):.3g})",
    ]
    if advice.withheld_s:
        lines.append(
            f"baseline       the first {advice.withheld_s:g} s of each session are withheld, and their mean is "
            "subtracted from all later rows: what is constant in a wearer cancels. A change in the withheld rows costs "
            "up to the sum over the session. The figures above are for gaze after them"
        )
    lines += _expected(expected)
    lines += [
        "",
        f"who it is      at {who['epsilon_per_minute']:g} a minute the strongest of {len(table['attackers'])} "
        f"attackers ({who['attacker']}) named {who['rate']:.2f} [{who['rate_low']:.2f}, {who['rate_high']:.2f}] "
        f"right (chance {who['chance']:.2f}), area {who['area']:.2f} [{who['area_low']:.2f}, {who['area_high']:.2f}]; "
        f"{_found(who)}. Measured, not proved",
        f"corpus         {table['corpus']}; half of {table['people']} people calibrate, the others are released",
        f"holds for      {_holds(given)}",
        "",
        advice.tables.text().rstrip(),
    ]
    return "\n".join(lines)


def _expected(expected: dict[str, Any]) -> list[str]:
    """How much comes through, and of which features."""
    lines = [
        f"expected       of the variance of distinct features, mean (median): {expected['distinct']:.2f} "
        f"({expected['middle']:.2f}) against the common mean, {expected['distinct_own']:.2f} "
        f"({expected['middle_own']:.2f}) with people's own means removed; mean, of whole recordings "
        f"{expected['distinct_offline']:.2f} and {expected['distinct_own_offline']:.2f}",
        "",
        f"{'feature':<26}{'explained':>11}{'own mean off':>14}{'correlation':>13}{'given saccades':>16}",
    ]
    for name in [name for name in SHOWN if name in expected["features"]] or list(expected["features"]):
        own = expected["features"][name]
        cells = [_figure(own[key]) for key in ("explained", "own", "correlation", "partial")]
        lines.append(f"{name:<26}{cells[0]:>11}{cells[1]:>14}{cells[2]:>13}{cells[3]:>16}")
    return lines


def _worth(options: argparse.Namespace) -> None:
    """What a calibration is worth on recordings of people who are not in it."""
    if not options.recording or options.out is not None:
        raise ConfigError("--calibration: expected --recording FILES of people who are not in it, and no --out")
    calibration = calibrations.load(options.calibration)
    if calibration.takes_off is not None and calibration.anchor is None:
        raise ConfigError(f"--calibration: is not for one of {calibration.mechanism}")
    epsilon = options.epsilon_per_minute * calibration.n / calibration.rate_hz / 60.0
    loaded = load_all(options.recording, load_profile(options.profile) if options.profile else None)
    with busy(f"released with {options.calibration}, {len(loaded)} recordings"):
        expected = measured(calibration, epsilon, loaded)
    if options.json:
        print(json.dumps({"calibration": options.calibration, "epsilon": epsilon, "expected": expected}))
        return
    price = f"epsilon {epsilon:g} a chunk of {calibration.n} rows, {options.epsilon_per_minute:g} a minute"
    print(f"calibration    {options.calibration} ({calibration.mechanism}): {price}")
    print("\n".join(_expected(expected)))
    print(f"\nholds for      the {len(loaded)} recordings given. A part of the variance is 0.2 or more, most is 0.5")
    print(
        "who it is      eyestream study FILES --out DIR --attack likelihood --calibration FILE, of five people or more"
    )


def _holds(given: int) -> str:
    if given:
        return (
            f"what is expected was measured on the {given} recordings given. Who it is was not: that is of the corpus"
        )
    return (
        "people outside the calibration, on the tracker of the corpus. The program was built on the same people: nine "
        "others had 0.44 to 0.45 where everyday-klt-mapped-64 has 0.47 at 18 a minute. For another tracker no figure "
        "holds: measure with --recording"
    )


def _found(who: dict[str, Any]) -> str:
    """What the area says; one split of so many people would have shown `least_area`."""
    if who["area_low"] > 0.5:
        return "people are found more often than by chance"
    return f"by chance it is 0.5, and with {who['people']} people an area of {who['least_area']:.2f} would have shown"


def _figure(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"
