"""`eyestream budget`: what was spent, device by device; or a new ledger."""

import argparse
import datetime
import time
from pathlib import Path

from eyestream.errors import ConfigError
from eyestream.privacy.accountant import LAST_ROW, Odometer
from eyestream.privacy.charge import DELTA_UNITS, EPSILON_UNITS
from eyestream.rim.ledger.ledger import create_ledger, look

__all__ = ["add_parser", "main"]

_LIMIT = 2**32


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "budget",
        help="show what was spent, or make a new ledger",
        description="Show what was spent since the ledger began, device by device. With --new, make an empty ledger; "
        "one that is there already is never overwritten.",
    )
    parser.add_argument("--ledger", type=Path, required=True, metavar="FILE", help="the ledger")
    parser.add_argument("--new", action="store_true", help="make an empty ledger")
    parser.add_argument("--chunk", type=int, metavar="N", help="with --new: rows of a chunk")
    parser.add_argument("--window", type=int, metavar="W", help="with --new: chunks of a window, 0 for none")
    parser.set_defaults(run=main)


def main(args: argparse.Namespace) -> None:
    """Run the subcommand.

    Raises
    ------
    ConfigError
        Arguments that do not go together, or out of range.
    LedgerError
        The ledger is missing or unreadable; with `--new`: it is there, or cannot be written.
    """
    if args.new:
        _create(args.ledger, args.chunk, args.window)
    elif args.chunk is not None or args.window is not None:
        raise ConfigError("--chunk and --window go with --new only; a ledger keeps the ones it was made with")
    else:
        _show(args.ledger)


def _create(path: Path, chunk: int | None, window: int | None) -> None:
    if chunk is None or window is None:
        raise ConfigError("--new needs --chunk and --window, the rows of a chunk and the chunks of a window")
    if not (0 < chunk < _LIMIT and 0 <= window < _LIMIT):
        raise ConfigError("expected --chunk of at least 1 and --window of at least 0, both below 2^32")
    create_ledger(path, chunk=chunk, window=window, created=int(time.time()))
    print(f"{path}: a new ledger for chunks of {chunk} rows and windows of {window} chunks")


def _show(path: Path) -> None:
    header, odometers = look(path)
    created = datetime.datetime.fromtimestamp(header.created, datetime.UTC)
    print(
        f"{path}: begun {created:%Y-%m-%d %H:%M} UTC, chunks of {header.chunk} rows, windows of {header.window} chunks"
    )
    if not odometers:
        print("nothing spent")
    for name, odometer in sorted(odometers.items()):
        print(f"\n{name}")
        for label, text in _lines(odometer):
            print(f"  {label:<22}{text}")


def _lines(odometer: Odometer) -> list[tuple[str, str]]:
    day = datetime.date(1970, 1, 1) + datetime.timedelta(days=odometer.day)
    lines = [
        ("since its beginning", f"epsilon {_plain(odometer.epsilon)}, delta {_plain(odometer.delta, DELTA_UNITS)}"),
        ("last session", f"epsilon {_plain(odometer.session_epsilon)}"),
        (f"last {odometer.window} chunks", f"epsilon {_plain(odometer.window_epsilon)}"),
        (f"day {day}", f"epsilon {_plain(odometer.day_epsilon)}"),
        ("slots", f"{odometer.released} released, {odometer.withheld} withheld"),
    ]
    if odometer.unreadable:
        lines.append(("torn records", f"{odometer.unreadable}, counted as spent"))
    if odometer.wait:
        lines.append(("to be withheld", f"{odometer.wait} chunks, as the chunk length or the window changed"))
    if odometer.mark is not None:
        session, row = odometer.mark
        lines.append(("last row", f"session {session}, " + ("closed" if row == LAST_ROW else f"row {row}")))
    return lines


def _plain(units: int, scale: int = EPSILON_UNITS) -> str:
    """The exact decimal, without an exponent and trailing zeros."""
    text = f"{units // scale}.{units % scale:0{len(str(scale)) - 1}d}"
    return text.rstrip("0").rstrip(".")
