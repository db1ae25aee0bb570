"""``eyestream init DIR``: a configuration, a new ledger, a random pseudonym."""

import argparse
import sys
import time
from pathlib import Path
from typing import Any

from eyestream.core.mechanisms.registry import DEFAULT, beginnings
from eyestream.core.purposes import PURPOSES, choose, words
from eyestream.errors import ConfigError, LedgerError, meant
from eyestream.ops.asked_sets import recognised_by, sets_and_traits
from eyestream.ops.new_configuration import ChosenTables, at_broker, of_features, of_mechanism
from eyestream.rim import config
from eyestream.rim.config.purposes import load_table
from eyestream.rim.config.tables import LOCAL_BROKER
from eyestream.rim.ledger.reading import create_ledger
from eyestream.rim.plan import StreamPlan, load
from eyestream.rim.plan.summary import correlations

_USUAL = "unrecognised"
"""The purpose that the default calibration and its epsilon are the answer to."""


def add_parser(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "init",
        help="write a configuration and a new ledger",
        description="Write DIR/sidecar.toml, commented, with a random pseudonym for the device, and create the new "
        "ledger that it names. What is there already is never overwritten: the ledger is the memory of what was spent. "
        "A new ledger for a configuration that is there already comes from `eyestream budget --new`.",
    )
    parser.add_argument("directory", type=Path, metavar="DIR", help="made if it does not exist")
    chosen = parser.add_mutually_exclusive_group()
    chosen.add_argument(
        "--purpose",
        choices=sorted(PURPOSES),
        help="what it is for, answered as `eyestream advise` does: adapt (to what the wearer does now), trends (over "
        "minutes, of people who are known anyway), unrecognised (trends of people whom the application must not "
        "recognise)",
    )
    chosen.add_argument(
        "--mechanism",
        choices=sorted(beginnings()),
        help=f"how chunks are released (default: {DEFAULT}, whose calibration takes what is constant in a wearer off "
        "each session; docs/attacks.md). cfpa and dcfpa come with their post-processing on, which costs no privacy, "
        "and with the class of processes that a whole session is judged by",
    )
    chosen.add_argument(
        "--features",
        metavar="NAME[,NAME...]",
        help="the one to three features that the application needs: a chunk's whole epsilon is spent on them, and no "
        f"other is released. Or a set of them: {sets_and_traits()} (docs/mechanisms.md). Blink habits and pupils are a "
        "trait: people may be recognised by how these change",
    )
    parser.add_argument(
        "--broker",
        metavar="URL",
        help=f"of the configuration: mqtt://host[:port], mqtts://... or unix:///path (default {LOCAL_BROKER})",
    )


def main(options: argparse.Namespace) -> None:
    """Write both.

    Raises
    ------
    ConfigError
        The directory cannot be written, or has a configuration already.
    LedgerError
        The ledger exists, or is missing beside its configuration.
    """
    _check_new(options.directory)
    fresh = at_broker(options.broker)
    if options.features is not None:
        initialise(options.directory, of_features(options.features, fresh))
        return
    if options.mechanism is None:
        print(_purposes(), end="\n\n")
        options.purpose = options.purpose or _asked()
    if options.purpose is not None:
        wish = PURPOSES[options.purpose]
        chosen = ChosenTables.of(wish, choose(wish, load_table()["rows"]))
        initialise(options.directory, chosen.for_purpose(fresh, options.purpose))
        return
    initialise(options.directory, of_mechanism(options.mechanism or DEFAULT, fresh))


def _purposes() -> str:
    """A table of what an application gets for each purpose, of the saved figures."""
    table = load_table()
    lines = [
        f"{'purpose':<13}{'first':<6}{'each':<6}{'epsilon':<8}{'minute':<7}{'changes':<8}{'saccades':<9}{'blinks':<7}"
        "recognised"
    ]
    for purpose, wish in PURPOSES.items():
        choice = choose(wish, table["rows"])
        chosen, chunk_s = ChosenTables.of(wish, choice), choice.n / choice.rate_hz
        saccades, blinks, *_ = correlations(choice.expected).values()
        cells = (
            f"{purpose:<13}{f'{chosen.withheld_s + chunk_s:g} s':<6}{f'{chunk_s:g} s':<6}"
            f"{choice.epsilon:<8g}{choice.epsilon * 60 / chunk_s:<7g}{choice.expected['middle_own']:<8.2f}"
            f"{saccades:<9.2f}{blinks:<7.2f}{choice.above['rate']:.0%}"
        )
        lines.append(cells)
    strangers, chance = table["people"] // 2, choice.above["chance"]
    return "\n".join(
        [
            "One to three features say most: --features NAME[,NAME...] spends all of epsilon on them. Sets of them:",
            f"{sets_and_traits()}. Blink habits and pupils are a trait:",
            "people may be recognised by how these change. The purposes below release all 52 features at once, for",
            "research:",
            "",
            *lines,
            "",
            *(f"{purpose:<13}{words(purpose)}" for purpose in PURPOSES),
            "",
            "first, each: from the first row to the first chunk, and from chunk to chunk. epsilon: of a chunk,",
            "minute: of all chunks of a minute; smaller protects more, and the sum of a session and of a day grows",
            "to the ceilings of the configuration.",
            "changes: R squared of a stranger's changes, in the median feature (1: all). saccades, blinks:",
            "correlation of the released rate with the true one. recognised: how many strangers the strongest of",
            f"{len(table['attackers'])} attackers identified, of {strangers}; guessing finds {chance:.0%}.",
            "The corpus and all figures: `eyestream advise`.",
        ]
    )


def _asked() -> str | None:
    """The purpose that somebody at a terminal names; None: the default."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        print(f"No --purpose was given, and there is no terminal to ask: this is the default, `{_USUAL}`.")
        return None
    print(f"purpose ({', '.join(PURPOSES)}; Enter: {_USUAL}): ", end="", flush=True)
    while (said := sys.stdin.readline().strip()) not in PURPOSES:
        if not said:
            return None
        print(f"expected one of {', '.join(PURPOSES)}{meant(said, PURPOSES)}: ", end="", flush=True)
    return said


def initialise(directory: Path, text: str) -> None:
    """Write the configuration `text` into `directory`, and the new ledger that it names; say what they are.

    Raises
    ------
    ConfigError
        The directory cannot be written, or has a configuration already.
    LedgerError
        The ledger exists, or is missing beside its configuration.
    """
    _check_new(directory)
    path = directory / "sidecar.toml"
    _write(path, text)
    plan = load(path)
    ledger = plan.settings.sidecar.ledger
    create_ledger(ledger, created=int(time.time()))
    print(f"configuration  {path}")
    print(f"ledger         {ledger}  (new: nothing spent)")
    print(f"mechanism      {', '.join(mechanism.name for mechanism in plan.mechanisms.values())}")
    for stream in plan.streams.values():
        _say_purpose(stream)
    print(f"device         {', '.join(device.id for device in plan.settings.device)}")
    print(f"next           eyestream run --config {path}")


def _say_purpose(stream: StreamPlan) -> None:
    """How long it lasts, what it is for, which features and error to expect, what is withheld; where it is known."""
    print(f"lasts          {stream.lasting}")
    beginning = beginnings().get(stream.mechanism.name)
    if beginning is not None and beginning.expected:
        print(f"expect         {beginning.expected}")
    if (features := stream.settings.privacy.features) is not None:
        print(f"features       {', '.join(features)}, and no other; {recognised_by(features)}")
        print(f"expect         {stream.follows}")
    purpose = stream.settings.privacy.purpose
    if purpose is not None:
        print(f"purpose        {words(purpose)}")
    if stream.withheld_s:
        withheld = f"the first {stream.withheld_s:g} s of each session are withheld"
        print(f"baseline       {withheld}, and their mean is subtracted from all later rows")


def _check_new(directory: Path) -> None:
    """Refuse a pseudonym that was at work: it may have spent, and whoever starts it from zero must say so."""
    path = directory / "sidecar.toml"
    if not path.exists():
        return
    ledger = config.load(path).sidecar.ledger
    if ledger.exists():
        raise LedgerError(f"{path} and {ledger} exist already; neither is ever overwritten")
    raise LedgerError(
        f"{path} exists already, and its ledger {ledger} does not: put the ledger back, or, when nothing was ever "
        f"released under this configuration, make a new one with `eyestream budget --new --ledger {ledger}`"
    )


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written: {error.strerror}") from None
