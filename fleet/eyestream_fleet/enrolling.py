"""``eyestream enrol``: which devices a fleet serves, while it runs."""

import argparse
import asyncio
import sys
import time
from pathlib import Path
from typing import Any

from eyestream.errors import ConfigError
from eyestream.rim.config import load


def add_parser(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "enrol",
        help="add devices to a fleet that runs, or remove them",
        description="Write into the log of [fleet] which devices are served: each in the roll of its partition, which "
        "the partition's worker follows. For a fleet whose file has no [[device]]. A device that is removed keeps what "
        "it has spent. Without a name, say how many there are.",
    )
    parser.add_argument("--config", type=Path, required=True, metavar="FILE", help="with [fleet]; that of all workers")
    parser.add_argument("--remove", action="store_true", help="take them out: their rows are refused from then on")
    parser.add_argument("--file", type=Path, metavar="FILE", help="names of devices, one a line; -: from stdin")
    parser.add_argument("device", nargs="*", metavar="NAME", help="a device")


def main(options: argparse.Namespace) -> None:
    """Change the rolls.

    Raises
    ------
    ConfigError, ShardError
        What must be mended before it can.
    LinkError
        The log cannot be reached, or somebody else has changed a roll meanwhile: the same command goes on.
    """
    from eyestream_fleet.fleet import enrol  # noqa: PLC0415  NATS is for who comes so far

    devices = [*options.device, *(() if options.file is None else _names(options.file))]
    try:
        changed, count = asyncio.run(enrol(load(options.config), devices, remove=options.remove, now=int(time.time())))
    except ConfigError as error:
        raise ConfigError(f"{options.config}: {error}") from None
    print(f"{len(changed)} rolls have changed; {count} devices are enrolled")


def _names(path: Path) -> list[str]:
    try:
        text = sys.stdin.read() if str(path) == "-" else path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}") from None
    return text.split()
