"""``eyestream revoke APP [STREAM]``: let one application hear a stream no more, or none."""

import argparse
import asyncio
import time
from typing import Any

from eyestream.cli.grant import add_place, alone, broker_of, heard, streams_meant
from eyestream.errors import ConfigError, meant
from eyestream.ops.grants.record import GrantEntry, append, last_grant, read_record
from eyestream.rim.plan import load


def add_parser(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "revoke",
        help="stop an application from receiving a stream, or all streams",
        description="When the command ends, the application hears nothing more of it, nor what the broker has kept "
        "for it. Its connection is cut. Without another stream its login is closed, until `eyestream grant`.",
    )
    parser.add_argument("application", metavar="APP", help="its login at the private broker")
    parser.add_argument("stream", metavar="STREAM", nargs="?", help="as for `grant`; without it, all streams")
    add_place(parser)


def main(options: argparse.Namespace) -> None:
    """Run the subcommand. Raises ConfigError, LedgerError, LinkError: it may still hear."""
    print(asyncio.run(_revoked(options)))


async def _revoked(options: argparse.Namespace) -> str:
    plan, app = load(options.config), options.application
    streams = frozenset(plan.streams) if options.stream is None else streams_meant(plan, options.stream)
    broker, ledger = broker_of(plan, options), plan.settings.sidecar.ledger
    with alone(ledger):
        hearing, record = await broker.hearing(), read_record(ledger)
        if app not in hearing and app not in await broker.closed():
            raise ConfigError(f"there is no login {app} at the private broker{meant(app, hearing)}")
        before = heard(plan, hearing[app]) if app in hearing else frozenset()
        left = before - streams
        await broker.allow(app, left, cut=True)  # also where nothing is left to write: the broker may not have read it
        over = [name for name in sorted(streams) if name in before or last_grant(record, app, name) is not None]
        append(ledger, *(GrantEntry(int(time.time()), "revoked", app, name) for name in over))
    return f"{app} hears {', '.join(sorted(left))}" if left else f"{app} hears nothing, and its login is closed"
