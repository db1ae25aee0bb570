"""``eyestream init DIR``: a configuration, a new ledger, a random pseudonym."""

import argparse
import re
import secrets
import time
from importlib import resources
from pathlib import Path
from typing import Any, NoReturn

from eyestream.errors import ConfigError, LedgerError
from eyestream.rim import config
from eyestream.rim.sidecar.assembly import new_ledger

__all__ = ["add_parser", "main"]


def add_parser(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "init",
        help="write a configuration and a new ledger",
        description="Write DIR/sidecar.toml, commented, with a random pseudonym for the device, and create the new "
        "ledger that it names. What is there already is never overwritten: the ledger is the memory of what was spent. "
        "A new ledger for a configuration that is there already comes from `eyestream budget --new`.",
    )
    parser.add_argument("directory", type=Path, metavar="DIR", help="made if it does not exist")


def main(options: argparse.Namespace) -> None:
    """Write both.

    Raises
    ------
    ConfigError
        The directory cannot be written, or has a configuration already.
    LedgerError
        The ledger exists, or is missing beside its configuration.
    """
    path = options.directory / "sidecar.toml"
    if path.exists():
        _refuse(path, config.load(path).sidecar.ledger)
    _write(path)
    settings = config.load(path)
    new_ledger(settings, created=int(time.time()))
    print(f"configuration  {path}")
    print(f"ledger         {settings.sidecar.ledger}  (new: nothing spent)")
    print(f"device         {', '.join(device.id for device in settings.device)}")
    print(f"next           eyestream run --config {path}")


def _refuse(path: Path, ledger: Path) -> NoReturn:
    """A pseudonym that was at work may have spent: whoever starts it from zero must say so."""
    if ledger.exists():
        raise LedgerError(f"{path} and {ledger} exist already; neither is ever overwritten")
    raise LedgerError(
        f"{path} exists already, and its ledger {ledger} does not: put the ledger back, or, when nothing was ever "
        f"released under this configuration, make a new one with `eyestream budget --new --ledger {ledger}`"
    )


def _write(path: Path) -> None:
    template = resources.files("eyestream").joinpath("data/sidecar.toml").read_text(encoding="utf-8")
    text = re.sub(r'^id = "hmd-0+"$', f'id = "hmd-{secrets.token_hex(5)}"', template, flags=re.MULTILINE)
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written: {error.strerror}") from None
