"""``eyestream explain``: what leaves the device, who gets it and how to stop it, for the person who wears it."""

import argparse
import asyncio
import shutil
import time
from typing import Any

from eyestream.cli.grant import add_place, broker_of, heard
from eyestream.errors import ConfigError
from eyestream.ops.check_deployment import root_of
from eyestream.ops.explanation import Situation, as_html, as_markdown, as_text, explanation
from eyestream.rim.ledger.reading import read_ledger
from eyestream.rim.ledger.seal import seal_by
from eyestream.rim.plan import Plan, load
from eyestream.rim.sidecar.off import is_paused


def add_parser(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "explain",
        help="for the wearer: what leaves the device, who gets it, how to stop it",
        description="One page in plain words for the person who wears the device, made of the configuration, the "
        "ledger and the grants: what leaves, what stays, who gets it, what others could learn, how to stop it.",
    )
    parser.add_argument("--format", choices=("text", "markdown", "html"), default="text", help="of the page")
    add_place(parser)


def main(options: argparse.Namespace) -> None:
    """Run the subcommand. Raises ConfigError, LedgerError, LinkError."""
    plan = load(options.config)
    if plan.settings.added is not None:
        raise ConfigError(f"{options.config}: nobody wears a server: this is for a sidecar")
    own = plan.settings.sidecar
    reading = read_ledger(own.ledger, seal_by(own.ledger_key))
    state = Situation(
        _hears(plan, options), reading.odometers, reading.header.created, is_paused(own.ledger), time.time()
    )
    parts = explanation(plan, state, str(options.config))
    if options.format == "text":
        print(as_text(parts, min(shutil.get_terminal_size().columns, 90)))
    else:
        print((as_markdown if options.format == "markdown" else as_html)(parts))


def _hears(plan: Plan, options: argparse.Namespace) -> dict[str, frozenset[str]] | None:
    """By login, the streams that it hears, as the broker has it; None on a broker that no grants limit."""
    if options.admin is None and root_of(options.config) is None:
        return None
    hearing = asyncio.run(broker_of(plan, options).hearing())
    return {name: heard(plan, hears) for name, hears in hearing.items()}
