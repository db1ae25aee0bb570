"""``eyestream forget``: the diary and the histories of a wearer are erased. The debt stays."""

import argparse
from pathlib import Path
from typing import Any

from eyestream.cli.pause import ask
from eyestream.core.charge import Ceilings
from eyestream.errors import ConfigError, LedgerError
from eyestream.rim.config import load
from eyestream.rim.ledger.file import is_held
from eyestream.rim.ledger.ledger import Ledger
from eyestream.rim.ledger.seal import seal_by
from eyestream.rim.sidecar.control import control_socket
from eyestream.rim.sidecar.wearing import is_handle


def add_parser(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "forget",
        help="erase a wearer's diary and histories; what was spent still counts",
        description="Erase when a wearer was here and what each chunk cost, and what earlier sessions revealed of them "
        "(purpose tasks): a new pseudonym begins. What was spent stays spent, as two sums. The diary is erased of all "
        "wearers at once. The answer does not tell whether the handle is known. Works without a running sidecar too.",
    )
    parser.add_argument("handle", nargs="?", metavar="HANDLE", help="whose histories; without it, everybody's")
    parser.add_argument("--config", type=Path, required=True, metavar="FILE", help="the sidecar of this configuration")


def main(options: argparse.Namespace) -> None:
    """Run the subcommand.

    Raises
    ------
    ConfigError, LedgerError
        The handle is none; the configuration or the ledger cannot be used, or a sidecar is at work and does not listen.
    """
    if options.handle is not None and not is_handle(options.handle):
        raise ConfigError("expected a handle of 1 to 64 letters, digits and ._:- that is not 0")
    settings = load(options.config)
    if settings.added is not None:
        raise ConfigError(f"{options.config}: nobody wears a server: only a sidecar can forget")
    path, ledger = control_socket(settings), settings.sidecar.ledger
    answer = ask(path, "forget" if options.handle is None else f"forget {options.handle}")
    if answer is None:
        if is_held(ledger):
            raise LedgerError(f"{ledger}: a sidecar is at work and does not listen at {path}; restart it")
        with Ledger(ledger, ceilings=Ceilings(), seal=seal_by(settings.sidecar.ledger_key)) as opened:
            opened.melt()
        answer = "forgotten"
    print(answer)
