"""``eyestream forget``: a running sidecar overwrites the histories of its wearers."""

import argparse
import os
import signal
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from eyestream.errors import ConfigError
from eyestream.rim.config import load

__all__ = ["add_parser", "holder", "main"]

_LOCKS = Path("/proc/locks")


def add_parser(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "forget",
        help="let a running sidecar forget what earlier sessions revealed of wearers",
        description="Let the sidecar of a configuration overwrite the histories that it keeps in memory, where a "
        "calibration takes them off (purpose tasks). Everybody begins a new pseudonym, and the next session of each "
        "wearer is withheld. What was released and what was spent stays as it is. Run it as the sidecar's user or "
        "root; under systemd this does the same: systemctl kill --signal=SIGUSR1 --kill-whom=main UNIT.",
    )
    parser.add_argument("--config", type=Path, required=True, metavar="FILE", help="of the sidecar")


def main(options: argparse.Namespace) -> None:
    """Find the process that holds the ledger, and tell it.

    Raises
    ------
    ConfigError
        The configuration or the ledger cannot be read, or this user may not signal the sidecar.
    """
    ledger = load(options.config).sidecar.ledger
    try:
        inode, lines = ledger.stat().st_ino, _LOCKS.read_text(encoding="ascii").splitlines()
    except OSError as error:
        raise ConfigError(f"{error.filename}: cannot be read: {error.strerror}") from None
    found = holder(lines, inode)
    if found is None:
        print(f"no process holds {ledger}: nothing is remembered")
        return
    try:
        os.kill(found, signal.SIGUSR1)
    except OSError as error:
        raise ConfigError(f"process {found}, which holds {ledger}, cannot be signalled: {error.strerror}") from None
    print(f"process {found} is to forget what earlier sessions revealed of wearers. Its log says when it has")


def holder(lines: Iterable[str], inode: int) -> int | None:
    """The process that holds the file with this inode as a ledger is held, by the lines of /proc/locks.

    >>> holder(["1: FLOCK  ADVISORY  WRITE 4711 08:01:1234 0 EOF"], 1234)
    4711
    """
    for line in lines:
        words = line.split()
        if words[1:2] == ["FLOCK"] and words[5].rpartition(":")[2] == str(inode):
            return int(words[4])
    return None
