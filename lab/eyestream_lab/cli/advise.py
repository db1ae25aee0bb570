"""``eyestream advise``: which calibration and epsilon to take, and what to expect of them."""

import argparse
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from eyestream.cli.init import initialise
from eyestream.cli.options import add_profile, positive
from eyestream.cli.progress import busy, load_all
from eyestream.core.mechanisms.registry import entry_of
from eyestream.errors import ConfigError
from eyestream.ops.asked_sets import ASKED_CALIBRATION, sets_and_traits
from eyestream.ops.new_configuration import fresh_configuration, of_features
from eyestream.rim.files import calibrations
from eyestream.rim.files.profiles import load_profile
from eyestream.rim.files.recordings import Recording
from eyestream.rim.plan.words import too_little
from eyestream_lab.study.advice import Advice, Wish, advise, load_table, markdown, measured
from eyestream_lab.study.asked_advice import AskedAdvice, Followed, advise_asked, followed

USUAL, USUAL_ASKED = 18.0, 9.0
"""Epsilon a minute."""

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
        help="recommend a calibration and an epsilon, and show what to expect",
        description="Say what the application needs and what must not be found out; the answer is a shipped "
        "calibration, an epsilon, what to expect of them on people who were not in the calibration, and tables for the "
        "configuration. The figures are of one corpus, named in the answer.",
    )
    parser.add_argument(
        "--features",
        metavar="NAME[,NAME...]",
        help="what to expect of the one to three features that the application asks for, or of a named set of them: "
        f"{sets_and_traits()}. Blink habits and pupils are a trait: people may be recognised by how these change",
    )
    parser.add_argument(
        "--epsilon-per-minute",
        type=positive,
        metavar="E",
        help=f"on average (default {USUAL:g}; with --features {USUAL_ASKED:g})",
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
        help="with --recording: advise nothing, and report the signal that remains with this calibration, at "
        "--epsilon-per-minute. With --features: a calibration of asked features of your own",
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
    if options.profile and not options.recording:
        raise ConfigError("--profile goes with --recording")
    if options.features is not None:
        _asked(options)
        return
    options.epsilon_per_minute = options.epsilon_per_minute or USUAL
    if options.calibration is not None:
        _worth(options)
        return
    wish = Wish(options.epsilon_per_minute, options.delay, options.hide_identity, options.hours)
    advice, own = advise(wish, table), len(options.recording or [])
    if own:
        loaded = _loaded(options)
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
    expected, who = advice.expected, advice.identity
    lines = [*_price_lines(advice, hours), *_expected(expected)]
    lines += [
        "",
        f"who it is      at {who['epsilon_per_minute']:g} a minute the strongest of {len(table['attackers'])} "
        f"attackers ({who['attacker']}) named {who['rate']:.2f} [{who['rate_low']:.2f}, {who['rate_high']:.2f}] "
        f"right (chance {who['chance']:.2f}), area {who['area']:.2f} [{who['area_low']:.2f}, {who['area_high']:.2f}]; "
        f"{_found(who)}. Measured, not proved",
        f"corpus         {table['corpus']}; half of {table['people']} people calibrate, the others are released",
        f"holds for      {_holds(given)}",
        "instead        all 52 features share this price, which is for research. One to three that an application asks "
        "for say far more: eyestream advise --features rate_saccades",
        "",
        advice.tables.text().rstrip(),
    ]
    return "\n".join(lines)


def _expected(expected: dict[str, Any]) -> list[str]:
    """How much comes through, and of which features."""
    lines = [
        f"expected       of the variance of distinct features, median (mean): {expected['middle']:.2f} "
        f"({expected['distinct']:.2f}) against the common mean, {expected['middle_own']:.2f} "
        f"({expected['distinct_own']:.2f}) with people's own means removed; mean, of whole recordings "
        f"{expected['distinct_offline']:.2f} and {expected['distinct_own_offline']:.2f}",
        "",
        f"{'feature':<26}{'explained':>11}{'own mean off':>14}{'correlation':>13}{'given saccades':>16}",
    ]
    for name in [name for name in SHOWN if name in expected["features"]] or list(expected["features"]):
        own = expected["features"][name]
        cells = [_figure(own[key]) for key in ("explained", "own", "correlation", "partial")]
        lines.append(f"{name:<26}{cells[0]:>11}{cells[1]:>14}{cells[2]:>13}{cells[3]:>16}")
    return lines


def _loaded(options: argparse.Namespace) -> list[Recording]:
    return load_all(options.recording, load_profile(options.profile) if options.profile else None)


def _asked(options: argparse.Namespace) -> None:
    """Print what to expect of asked features, by their calibration, and on recordings where there are any."""
    name, minute = options.calibration or ASKED_CALIBRATION, options.epsilon_per_minute or USUAL_ASKED
    wish = Wish(minute, options.delay, options.hide_identity, options.hours)
    mechanism, advice, tables = advise_asked(options.features, name, calibrations.load(name), wish)
    loaded = _loaded(options) if options.recording else []
    with busy(f"released as asked, {len(loaded)} recordings"):
        own = followed(mechanism, loaded)
    asked = f"features = {json.dumps(mechanism.schema.names)}\n"
    written = tables.text().replace("epsilon = ", f"{asked}epsilon = ", 1)
    if options.json:
        measured_on = {"measured": [asdict(one) for one in own], "measured_on": len(loaded)}
        print(json.dumps(asdict(advice) | measured_on | {"configuration": written}))
        return
    warned = [f"warning        {line}" for line in too_little(mechanism)]
    print("\n".join([*_asked_lines(advice, own, len(loaded), options.hours), *warned, "", written.rstrip()]))
    if options.out is not None:
        print()
        initialise(options.out, tables.into(of_features(options.features, fresh_configuration())))


def _asked_lines(advice: AskedAdvice, own: Sequence[Followed], given: int, hours: float) -> Iterator[str]:
    """The answer, but for the tables; `given` recordings were released."""
    yield f"features       {', '.join(one.name for one in advice.expected)}, and no other. Fix them before a session"
    yield f"who it is      {advice.trait}"
    yield f"               {_recognised(advice)} (docs/figures.md)"
    yield from _price_lines(advice, hours)
    yield ""
    measured_head = f"{'measured error':>16}{'correlation':>13}" if own else ""
    yield f"{'change of':<26}{'unit':>6}{'error +-':>11}{'correlation':>13}{measured_head}"
    for i, one in enumerate(advice.expected):
        found = f"{own[i].error:>16.2g}{own[i].correlation:>13.2f}" if own else ""
        yield f"{one.name:<26}{'' if one.unit == '1' else one.unit:>6}{one.error:>11.2g}{one.correlation:>13.2f}{found}"
    yield ""
    yield (
        f"holds for      the {given} recordings given, live, each one's own mean subtracted; error and correlation "
        "before that: as the calibration expects"
        if given
        else "holds for      what the calibration expects of people like its own. Others: up to 0.13 less correlation "
        "(docs/figures.md). For another tracker, measure with --recording, and adapt: eyestream calibrate --adapt"
    )


def _recognised(advice: AskedAdvice) -> str:
    """What attackers found, in words; where others were attacked than these features, what they found of those."""
    found = advice.recognised
    if not found:
        return f"No attack was measured at {advice.price['minute']:g} a minute or more"
    one, areas = found[0], sorted(each.area for each in found)
    attacked = (
        f"at {one.minute:g} a minute the strongest of {one.attackers} attackers, given two parts of each of "
        f"{one.people} people's recordings, had an area under the ROC curve of"
    )
    if len(found) > 1:
        return f"Not measured of these features. Of {len(found)} others, {attacked} {areas[0]:.2f} to {areas[-1]:.2f}"
    within = f"{one.area:.2f} [{one.area_low:.2f}, {one.area_high:.2f}]"
    return f"Measured: {attacked} {within}. With the people exchanged it was {one.control:.2f}, by chance 0.5"


def _price_lines(advice: Advice | AskedAdvice, hours: float) -> Iterator[str]:
    """Calibration, price and baseline."""
    price = advice.price
    yield f"calibration    {advice.calibration}"
    yield (
        f"epsilon        {advice.epsilon:g} a chunk of {advice.chunk} rows ({advice.delay_s:g} s), which is "
        f"{price['minute']:g} a minute on average. At most {price['worst_minute']:g} for any minute of gaze, and "
        f"{price['second']:g} for any second. {hours:g} hours of use add up to {price['day']:g}, the ceiling of a day"
    )
    yield (
        "guessing       a chunk raises the chance of guessing something about it at most "
        f"{advice.guess_factor:.3g} times on average (e^epsilon: {math.exp(min(advice.epsilon, 700)):.3g})"
    )
    if advice.withheld_s:
        yield (
            f"baseline       the first {advice.withheld_s:g} s of each session are withheld, and their mean is "
            "subtracted from all later rows: what is constant in a wearer cancels. A change in the withheld rows costs "
            "up to the sum over the session. The figures above are for gaze after them"
        )


def _worth(options: argparse.Namespace) -> None:
    """Worth of a calibration on recordings of people who are not in it."""
    if not options.recording or options.out is not None:
        raise ConfigError("--calibration: expected --recording FILES of people who are not in it, and no --out")
    calibration = calibrations.load(options.calibration)
    if "features" in entry_of(calibration.mechanism).options.__struct_fields__:
        raise ConfigError(f"--calibration {options.calibration}: releases what is asked for: expected --features too")
    if calibration.takes_off is not None and calibration.anchor is None:
        raise ConfigError(f"--calibration: is not for one of {calibration.mechanism}")
    epsilon = options.epsilon_per_minute * calibration.n / calibration.rate_hz / 60.0
    loaded = _loaded(options)
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
    """Words on the area; one split of so many people would have shown `least_area`."""
    if who["area_low"] > 0.5:
        return "people are found more often than by chance"
    return f"by chance it is 0.5, and with {who['people']} people an area of {who['least_area']:.2f} would have shown"


def _figure(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"
