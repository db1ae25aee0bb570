"""``eyestream devices``: what a private broker says is served."""

import argparse
import asyncio
import json
import time
from pathlib import Path
from typing import Any

import msgspec

from eyestream.cli.ledger_words import budget_words
from eyestream.cli.log import one_line_faults
from eyestream.cli.options import add_broker, broker_settings, positive
from eyestream.cli.progress import busy
from eyestream.core.scopes import duration
from eyestream.errors import ConfigError
from eyestream.sdk.discovery import Found, discover
from eyestream.sdk.odometer import OdometerWatch
from eyestream.wire.status import Reading


def add_parser(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "devices",
        help="list the devices served on a broker, their state and their last chunk",
        description="Listen to a private broker as an application does, and print a line for each stream of each "
        "device: how it is, its mechanism, what is left of its budget, and the last chunk that came while we listened. "
        "Chunks are not kept by the broker: one comes each 16 to 64 s with the shipped calibrations. What a stream "
        "says stays when its sidecar is gone: the line of the sidecar is then `offline, lost`, and a broker says that "
        "5 s after a sidecar was killed. So the usual time tells the state of now. Behind each state stands how old "
        "it is, where it changed while we listened; `kept` is what the broker had before.",
    )
    parser.add_argument(
        "--seconds", type=positive, default=SECONDS, metavar="S", help="listen for S seconds (default %(default)g)"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    parser.add_argument(
        "--remember", type=Path, metavar="FILE",
        help="know from FILE what was spent before, and keep it there: a ledger that went back since is shown",
    )  # fmt: skip
    add_broker(parser)


SECONDS = 6.5
"""So long after a sidecar was killed its broker has said that it is lost (`WILL_DELAY_SECONDS`), with a second to
spare."""


def main(options: argparse.Namespace) -> None:
    """Print what is there.

    Raises
    ------
    ConfigError
        The broker's settings or the remembered file cannot be used.
    LinkError
        It cannot be reached.
    """
    odometers = {} if options.remember is None else _remembered(options.remember)
    with busy("listening to the broker"):
        found = asyncio.run(_found(options, odometers))
    if options.remember is not None:
        _remember(options.remember, odometers | {(one.device, one.stream): one.odometer for one in found})
    now = time.monotonic()
    for one in found:
        print(_as_json(one, now) if options.json else _as_words(one, now))
    if all(one.is_sidecar for one in found) and not options.json:
        print("no device is served here: no sidecar has described one to this broker")


_Odometers = dict[tuple[str, str], OdometerWatch]


async def _found(options: argparse.Namespace, odometers: _Odometers) -> list[Found]:
    one_line_faults()
    settings = broker_settings(options)
    return await discover(settings, seconds=options.seconds, wait_s=options.wait, odometers=odometers)


def _remembered(path: Path) -> _Odometers:
    try:
        said = msgspec.json.decode(path.read_bytes(), type=dict[str, list[Reading]])
    except FileNotFoundError:
        return {}
    except (OSError, msgspec.MsgspecError) as error:
        raise ConfigError(f"--remember {path}: cannot be read: {error}") from None
    return {(place.partition("/")[0], place.partition("/")[2]): OdometerWatch(own) for place, own in said.items()}


def _remember(path: Path, odometers: _Odometers) -> None:
    """Keep what was heard; the file is the old one or the new one, whole."""
    said = {f"{device}/{stream}": one.known for (device, stream), one in sorted(odometers.items()) if one.known}
    beside = path.with_name(path.name + ".new")
    try:
        beside.write_bytes(msgspec.json.encode(said))
        beside.replace(path)
    except OSError as error:
        raise ConfigError(f"--remember {path}: cannot be written: {error.strerror}") from None


def _warning(one: Found) -> str:
    """Whether its ledger went back, or another one has come, as far as is known."""
    watch = one.odometer
    if watch.fault is not None:
        return str(watch.fault)
    return "" if watch.doubt is None else f"perhaps {watch.doubt} (if not, the broker has kept an old message)"


def _state(one: Found) -> tuple[str, str]:
    """State and reason in words."""
    if one.unreadable:
        return "not readable", ""
    return ("silent", "") if one.status is None else (one.status.state, one.status.reason)


def _as_words(one: Found, now: float) -> str:
    state, reason = _state(one)
    if one.is_sidecar:
        return f"{one.device:<20}  sidecar     {state}, {reason} ({_age(one, now)})"
    parts = [f"{one.device:<20}  {one.stream:<10}  {state}, {reason or 'no word'} ({_age(one, now)})"]
    if one.meta is None:
        parts.append("not described")
    else:
        parts.append(f"{one.meta.mechanism}, epsilon {one.meta.epsilon:g} a chunk")
        if one.budget is not None:
            parts.append("left: " + budget_words(one.budget, one.meta.n / one.meta.rate_hz, time.time()))
    rhythm = f": one comes every {duration(one.meta.n / one.meta.rate_hz)}" if one.meta is not None else ""
    last = f"no chunk while we listened{rhythm}"
    parts.append(last if one.chunk is None else f"chunk {one.chunk} {duration(now - one.at)} ago")
    if warning := _warning(one):
        parts.append("LEDGER: " + warning)
    return "  ".join(parts)


def _age(one: Found, now: float) -> str:
    """How old its state is."""
    return "kept" if one.said_at is None else f"{duration(now - one.said_at)} ago"


def _as_json(one: Found, now: float) -> str:
    state, reason = _state(one)
    told: dict[str, Any] = {"device": one.device, "stream": one.stream, "state": state, "reason": reason}
    told |= {"mechanism": one.meta.mechanism if one.meta else "", "epsilon": one.meta.epsilon if one.meta else None}
    told["state_seconds_ago"] = None if one.said_at is None else round(now - one.said_at, 1)
    told |= {"ledger": _warning(one)}
    told |= {"chunk": one.chunk, "seconds_ago": None if one.chunk is None else round(now - one.at, 1)}
    told["left"] = one.budget and {
        "chunks": one.budget.chunks,
        "ceiling": one.budget.ceiling,
        "resumes_at": None if one.budget.resumes_at is msgspec.UNSET else one.budget.resumes_at,
    }
    return json.dumps(told)
