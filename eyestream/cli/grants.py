"""``eyestream grants``: which application hears what, since when."""

import argparse
import asyncio
import time
from collections.abc import Iterator, Sequence
from typing import Any

from eyestream.cli.grant import add_place, broker_of, heard, kind_of, names_of
from eyestream.ops.grants.record import GrantEntry, last_grant, read_record
from eyestream.rim.plan import Plan, load


def add_parser(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "grants",
        help="list which applications receive which streams, and since when",
        description="What each login hears, as the private broker has it now, and what was revoked.",
    )
    add_place(parser)


def main(options: argparse.Namespace) -> None:
    """Run the subcommand. Raises ConfigError, LedgerError, LinkError."""
    plan = load(options.config)
    hearing = asyncio.run(broker_of(plan, options).hearing())
    hears = {name: heard(plan, hears) for name, hears in sorted(hearing.items())}
    record = read_record(plan.settings.sidecar.ledger)
    for line in [*_now(plan, hears, record), *_over(hears, record)]:
        print(line)


def _now(plan: Plan, hears: dict[str, frozenset[str]], record: Sequence[GrantEntry]) -> Iterator[str]:
    for name, streams in hears.items():
        if not streams:
            yield f"{name} hears nothing"
        for stream in sorted(streams):
            last = last_grant(record, name, stream)
            since = f"since {_when(last.at)}" if last is not None else "by the broker's own list, no grant is written"
            yield f"{name} hears {stream} {since}. {kind_of(plan.streams[stream])}"
            more = [one for one in names_of(plan.streams[stream]) if last is not None and one not in last.features]
            if more:
                yield f"    it has {len(more)} features that it had not when it was granted, as {more[0]}"


def _over(hears: dict[str, frozenset[str]], record: Sequence[GrantEntry]) -> Iterator[str]:
    for number, entry in enumerate(record):
        if entry.word == "revoked":
            first = last_grant(record[:number], entry.application, entry.stream)
            since = "" if first is None else f"from {_when(first.at)} "
            yield f"{entry.application} heard {entry.stream} {since}until {_when(entry.at)}"


def _when(seconds: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(seconds))
