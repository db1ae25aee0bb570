"""`eyestream budget`: what was spent and what is left, device by device; or a new ledger."""

import argparse
import datetime
import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec

from eyestream.cli.ledger_words import plural, print_accepted, print_comparison
from eyestream.core.charge import DELTA_UNITS, Ceilings, decimal
from eyestream.core.meter import Odometer, StreamOdometer, WearerOdometer
from eyestream.core.remaining import Left, LevelLeft, left_of, levels_left
from eyestream.core.reservation import LAST_ROW
from eyestream.core.scopes import duration
from eyestream.errors import ConfigError, LedgerError
from eyestream.rim.config import SidecarSettings, load
from eyestream.rim.ledger.guarded import accept, guarded, ledger_copy
from eyestream.rim.ledger.identity import ledger_name
from eyestream.rim.ledger.operating import OperatedLedger, read_export, write_export
from eyestream.rim.ledger.reading import LedgerReading, create_ledger, read_ledger
from eyestream.rim.ledger.records import VERSION
from eyestream.rim.ledger.seal import seal_by
from eyestream.rim.ledger.second_place import FilePlace, lives_beside
from eyestream.rim.ledger.snapshot import StreamFacts
from eyestream.rim.plan import Plan
from eyestream.rim.plan import load as load_plan
from eyestream.streams import StreamKey

_T = TypeVar("_T")

_SECONDS_A_DAY = 86_400
_LAST_DATE = (datetime.date.max - datetime.date(1970, 1, 1)).days


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "budget",
        help="show what was spent, or make a new ledger",
        description="Show what was spent since the ledger began, device by device, with its streams beneath; with "
        "--config also what is left, in chunks and hours, and when there is more again. With "
        "--new, make an empty ledger; one that is there already is never overwritten.",
    )
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--ledger", type=Path, metavar="FILE", help="the ledger")
    which.add_argument("--config", type=Path, metavar="FILE", help="that of this configuration; says what is left, too")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--new", action="store_true", help="make an empty ledger: nothing counts as spent")
    what.add_argument("--json", action="store_true", help="show it as JSON, amounts as exact decimals")
    what.add_argument(
        "--today",
        action="store_true",
        help="say that this machine's date is right, after days with a wrong one; what was spent on later days counts "
        "for today, and where that is not known, all that was ever spent; stop the sidecar first",
    )
    what.add_argument(
        "--accept",
        action="store_true",
        help="let [sidecar] second_place remember the ledger as it is: for a new second place, and after an older "
        "ledger was put back on purpose; stop the sidecar first",
    )
    what.add_argument(
        "--compare",
        type=Path,
        nargs="*",
        metavar="LEDGER",
        help="say which of these copies of the ledger [sidecar] second_place names, by default whether the ledger is "
        "it; changes nothing, and the sidecar may be at work",
    )
    what.add_argument(
        "--export",
        nargs=2,
        metavar=("DEVICE", "NEW_FILE"),
        help="move a device to the ledger of --to, for ever, and write what that one needs; stop the sidecar first",
    )
    parser.add_argument(
        "--to", metavar="NAME", help="with --export: the other ledger's name, as `budget` shows it there"
    )
    what.add_argument(
        "--import",
        dest="taken",
        type=Path,
        metavar="FILE",
        help="move a device that was exported into the ledger, and remove the file; stop the sidecar first",
    )
    parser.set_defaults(run=main)


def main(args: argparse.Namespace) -> None:
    """Run the subcommand.

    Raises
    ------
    ConfigError, CalibrationError
        The configuration cannot be used; its streams matter only where it says what is left.
    LedgerError
        The ledger is missing or unreadable; with `--new`: it is there, or cannot be written; otherwise: in use; with
        `--export` and `--import`: the device cannot be moved; with `--accept`: the second place is another ledger's.
    ConfigError
        `--accept` or `--compare` without a second place; `--ledger` for a change, where there is one.
    """
    shows = not (args.new or args.today or args.export or args.taken or args.accept or args.compare is not None)
    plan = load_plan(args.config) if args.config is not None and shows else None
    settings = None if args.config is None else load(args.config) if plan is None else plan.settings
    own = SidecarSettings(ledger=args.ledger) if settings is None else settings.sidecar
    args.ledger, seal = own.ledger, seal_by(own.ledger_key)
    if settings is not None and settings.added is not None:
        if plan is None:
            raise ConfigError(f"{args.config}: has a ledger for each shard: {settings.added.instead} changes one")
        _show_all(plan, as_json=args.json)
        return
    if (args.to is None) != (args.export is None):
        raise ConfigError("--export DEVICE FILE and --to NAME: expected both or none")
    if args.new:
        create_ledger(args.ledger, created=int(time.time()), seal=seal)
        print(f"{args.ledger}: a new ledger")
    elif args.accept:
        _accept(own)
    elif args.compare is not None:
        _compare(args.compare or [args.ledger], own)
    elif not shows:
        if settings is None and lives_beside(args.ledger).exists():
            raise ConfigError(f"{args.ledger}: has a second place, which must know of this: use --config FILE")
        _change(args, own)
    else:
        reading = read_ledger(args.ledger, seal)
        left = {} if plan is None else _left(plan, reading, int(time.time()) // _SECONDS_A_DAY)
        if args.json:
            print(json.dumps(_as_json(reading, left), indent=1))
        else:
            _show(args.ledger, reading, left)


def _show_all(plan: Plan, *, as_json: bool) -> None:
    """Show every ledger that an added table has on this host."""
    paths = [] if plan.settings.added is None else plan.settings.added.ledgers
    found = {path: read_ledger(path) for path in paths}
    left = {path: _left(plan, one, int(time.time()) // _SECONDS_A_DAY) for path, one in found.items()}
    if as_json:
        print(json.dumps({str(path): _as_json(one, left[path]) for path, one in found.items()}, indent=1))
        return
    for path, one in found.items():
        _show(path, one, left[path])
    if not found:
        print("no ledger of this configuration is on this host")


class _Rest(NamedTuple):
    """The rest of one stream's budget, by ceiling and by level of a lifetime that fades; a chunk's seconds."""

    lefts: list[Left]
    levels: list[LevelLeft]
    chunk_s: float


def _left(plan: Plan, reading: LedgerReading, today: int) -> dict[StreamKey, _Rest]:
    """The rest of the budget of every configured stream."""
    ceilings, found = plan.ceilings, {}
    served = {key: stream for key, (_, stream) in plan.served.items()}
    if plan.settings.added is not None:  # the ledger has some of the devices, which the file may not name
        here = sorted(reading.odometers.keys() - reading.exported)
        every = {StreamKey(device, name): stream for device in here for name, stream in plan.streams.items()}
        served = {key: stream for key, stream in every.items() if not served or key in served}
    for key, stream in served.items():
        odometer = reading.odometers.get(key.device)
        levels = levels_left(odometer, ceilings, stream.charges) if ceilings.levels > 1 else []
        lefts = left_of(odometer, ceilings, stream.charges, today, stream=key.stream)
        found[key] = _Rest(lefts, levels, stream.chunk_s)
    return found


def _change(args: argparse.Namespace, own: SidecarSettings) -> None:
    if args.today:
        _vouch(own)
    elif args.export:
        _export(own, args.export[0], Path(args.export[1]), args.to)
    else:
        _import(own, args.taken)


def _changed(own: SidecarSettings, change: Callable[[OperatedLedger], _T]) -> _T:
    """The result of `change` of the ledger. With a second place, no copy from before it goes on any more.

    The change takes no slot, so a copy from before is as long as the ledger. Two lives tell them apart: the first one
    refuses a ledger that is itself such a copy, and the second one overtakes what was copied until the change was made.
    """
    path, place = own.ledger, own.second_place
    with OperatedLedger(path, ceilings=Ceilings(), seal=seal_by(own.ledger_key)) as ledger:
        if place is None:
            return change(ledger)
        with guarded(ledger, path, place):
            given = change(ledger)
        with guarded(ledger, path, place):
            return given


def _vouch(own: SidecarSettings) -> None:
    day = int(time.time()) // _SECONDS_A_DAY
    _changed(own, lambda ledger: ledger.begin_day_at(day))
    print(f"{own.ledger}: days go on from {_date(day)}")


def _accept(own: SidecarSettings) -> None:
    path, place = own.ledger, own.second_place
    if place is None:
        raise ConfigError("--accept: expected --config FILE with a second_place in [sidecar]")
    with OperatedLedger(path, ceilings=Ceilings(), seal=seal_by(own.ledger_key)) as ledger:
        had, has = accept(ledger, path, place)
    print_accepted(place, path, had, has)


def _compare(paths: list[Path], own: SidecarSettings) -> None:
    place, seal = own.second_place, seal_by(own.ledger_key)
    if place is None:
        raise ConfigError("--compare: expected --config FILE with a second_place in [sidecar]")
    copies = [ledger_copy(path, read_ledger(path, seal)) for path in paths]
    if len({one.name for one in copies}) > 1:
        raise LedgerError(f"{', '.join(map(str, paths))}: are different ledgers, not copies of one")
    remembered = FilePlace.look(place, copies[0].name) if place.exists() else None
    print_comparison(copies, remembered, "eyestream budget --config FILE --accept")


def _export(own: SidecarSettings, device: str, target: Path, to: str) -> None:
    if target.exists():  # before the device is gone
        raise LedgerError(f"{target} exists already")
    write_export(target, _changed(own, lambda ledger: ledger.export_device(device, to)))
    print(f"{own.ledger}: {device} is gone from here; `eyestream budget --ledger OTHER --import {target}` moves it in")


def _import(own: SidecarSettings, source: Path) -> None:
    moved = read_export(source)
    _changed(own, lambda ledger: ledger.import_device(moved))
    source.unlink()
    print(f"{own.ledger}: {moved.line.device} is here, with everything that it has spent; {source} is removed")


def _show(path: Path, reading: LedgerReading, left: Mapping[StreamKey, _Rest]) -> None:
    header, odometers, streams, exported, _, days = reading
    created = datetime.datetime.fromtimestamp(header.created, datetime.UTC)
    print(f"{path}: begun {created:%Y-%m-%d %H:%M} UTC, name {ledger_name(header.ledger_id)}")
    if (latest := days.latest) > int(time.time()) // _SECONDS_A_DAY:
        print(f"days are open up to {_date(latest)}, after this machine's date: a clock was wrong, here or before")
    if not odometers:
        print("nothing spent")
    for device, odometer in sorted(odometers.items()):
        print(f"\n{device}" + (": moved to another ledger; what it had spent until then" if device in exported else ""))
        _print_lines(_device_lines(odometer), "  ")
        for name, stream in sorted(odometer.streams.items()):
            print(f"  {device}/{name}")
            _print_lines(_stream_lines(stream, streams[StreamKey(device, name)]), "    ")
    for key, rest in left.items():
        print(f"\n{key}: left, while no other stream of the device spends")
        _print_lines([(f"this {one.scope}", _left_words(one, rest.chunk_s)) for one in rest.lefts], "  ")
        _print_lines([_level_line(one, rest.chunk_s) for one in rest.levels], "  ")


def _level_line(left: LevelLeft, chunk_s: float) -> tuple[str, str]:
    """Name and words of a level; the first is the present one, and each begins where the one above it ends."""
    lasting = f"{plural(left.chunks)}, {duration(left.chunks * chunk_s)}"
    return f"level {left.level}", f"epsilon {decimal(left.charge.epsilon)} a chunk: {lasting}"


def _left_words(left: Left, chunk_s: float) -> str:
    if left.chunks == 0:
        return "nothing; resumes: " + left.resumes
    word = "at" if left.scope == "day" else "with"
    then = "then never" if left.resumes == "never" else f"more {word} {left.resumes}"
    return f"{plural(left.chunks)}, {duration(left.chunks * chunk_s)}; {then}"


def _print_lines(lines: list[tuple[str, str]], indent: str) -> None:
    for label, text in lines:
        print(f"{indent}{label:<24}{text}")


def _device_lines(odometer: Odometer) -> list[tuple[str, str]]:
    o = odometer
    lines = [
        ("since its beginning", _spent(o.epsilon, o.delta)),
        ("current sessions", _spent(o.session_epsilon, o.session_delta)),
        (f"day {_date(o.day)}", _spent(o.day_epsilon, o.day_delta)),
        ("chunks of all streams", f"{o.released} released, {o.withheld} withheld"),
    ]
    if o.window:
        lines.insert(2, (f"last {o.window} chunks", _spent(o.window_epsilon, o.window_delta)))
    if o.unreadable:
        lines.append(("damaged records", f"{o.unreadable}, counted as spent"))
    if o.wait:
        lines.append(("to be withheld", f"{o.wait} chunks, as the window changed"))
    for wearer, spent in sorted(o.wearers.items()):
        lines.append((f"wearer {wearer}", _spent(spent.epsilon, spent.delta)))
        lines.append(("  on that day", _spent(spent.day_epsilon, spent.day_delta)))
    return lines


def _stream_lines(stream: StreamOdometer, facts: StreamFacts) -> list[tuple[str, str]]:
    s = stream
    lines = [
        ("since its beginning", _spent(s.epsilon, s.delta)),
        ("last session", _spent(s.session_epsilon, s.session_delta)),
        ("chunks", f"of {s.chunk} rows: {s.released} released, {s.withheld} withheld"),
    ]
    if s.own_window:
        lines.append((f"last {s.own_window} chunks", _spent(s.window_epsilon, s.window_delta)))
    if s.wait:
        lines.append(("to be withheld", f"{s.wait} chunks, as the chunk length or a window changed"))
    if s.mark is not None:
        session, row = s.mark
        lines.append(("last row", f"session {session}, " + ("closed" if row == LAST_ROW else f"row {row}")))
    if facts.unsettled:
        lines.append(("not settled", f"{len(facts.unsettled)} chunks"))
    return lines


def _as_json(reading: LedgerReading, left: Mapping[StreamKey, _Rest]) -> dict[str, Any]:
    """All that is known, with the amounts as decimals in text, so that no reader rounds them."""
    devices = {}
    for device, odometer in sorted(reading.odometers.items()):
        table = _amounts(odometer)
        table["wearers"] = {str(wearer): _amounts(spent) for wearer, spent in sorted(odometer.wearers.items())}
        table["streams"] = {
            name: _amounts(stream) | {"unsettled": len(reading.streams[StreamKey(device, name)].unsettled)}
            for name, stream in sorted(odometer.streams.items())
        }
        table["gone"] = device in reading.exported
        devices[device] = table
    told = {"format": VERSION, "created": reading.header.created, "devices": devices}
    if left:
        told["left"] = {
            str(key): [one._asdict() | {"seconds": one.chunks * rest.chunk_s} for one in rest.lefts]
            for key, rest in left.items()
        }
    if any(rest.levels for rest in left.values()):
        told["levels"] = {
            str(key): [
                {
                    "level": one.level,
                    "epsilon": decimal(one.charge.epsilon),
                    "chunks": one.chunks,
                    "seconds": one.chunks * rest.chunk_s,
                }
                for one in rest.levels
            ]
            for key, rest in left.items()
        }
    return told


def _amounts(odometer: Odometer | StreamOdometer | WearerOdometer) -> dict[str, Any]:
    table: dict[str, Any] = {}
    for field in msgspec.structs.fields(odometer):
        value = getattr(odometer, field.name)
        if field.name.endswith("epsilon"):
            value = decimal(value)
        elif field.name.endswith("delta"):
            value = decimal(value, DELTA_UNITS)
        table[field.name] = value
    return table


def _spent(epsilon: int, delta: int) -> str:
    return f"epsilon {decimal(epsilon)}, delta {decimal(delta, DELTA_UNITS)}"


def _date(day: int) -> str:
    if day > _LAST_DATE:
        return f"{day} days after 1970-01-01"
    return str(datetime.date(1970, 1, 1) + datetime.timedelta(days=day))
