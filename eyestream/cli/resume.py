"""``eyestream resume``: the end of a pause."""

import argparse
from typing import Any

from eyestream.cli.pause import add_place, switch
from eyestream.errors import ConfigError


def add_parser(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "resume",
        help="release again after a pause",
        description="Release again, from the next rows on. Nothing that came before or during the pause is released.",
    )
    add_place(parser)


def main(options: argparse.Namespace) -> None:
    """Run the subcommand. Raises ConfigError and LedgerError: it may still be paused."""
    answer = switch(options, pause=False)
    if answer == "paused":
        raise ConfigError("it stays paused: the indicator does not work, or somebody has paused it again; see its log")
    print(answer)
