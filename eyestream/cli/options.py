"""Options that several subcommands share."""

import argparse
import contextlib
import math
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from eyestream.errors import ConfigError
from eyestream.rim.config import BrokerSettings
from eyestream.wire.topics import FEATURE_STREAM

__all__ = [
    "RECORDING",
    "add_broker",
    "add_own_options",
    "add_profile",
    "add_stream",
    "add_workers",
    "broker_settings",
    "check_targets",
    "count",
    "own_options",
    "positive",
    "speed",
]

_HERE = "mqtt://localhost:1883"

RECORDING = ".npz, .csv, .tsv or .parquet of rows; with --profile, gaze"


def add_profile(parser: argparse.ArgumentParser, *, required: bool = False) -> None:
    """``--profile``."""
    shipped = "name of a shipped profile (smi-glasses, degrees and so on) or a TOML file"
    said = f"what the columns of the gaze are: {shipped}" if required else f"the files hold gaze: {shipped}"
    parser.add_argument("--profile", required=required, metavar="P", help=said)


def add_workers(parser: argparse.ArgumentParser, jobs: str = "work on N recordings at once, in processes") -> None:
    """``--jobs`` and ``--cluster``."""
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--jobs", type=count, metavar="N", help=jobs)
    which.add_argument(
        "--cluster",
        metavar="URL",
        help="work on a Dask cluster (extra 'cluster'): its scheduler, tcp://host:8786; its workers see the same files",
    )


def count(text: str) -> int:
    """A number from 1 on, for argparse."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a number from 1 on, found {text!r}")
    return int(text)


def add_broker(parser: argparse.ArgumentParser) -> None:
    """``--broker`` and what a broker may ask for."""
    group = parser.add_argument_group("broker")
    group.add_argument(
        "--broker",
        metavar="URL",
        default=_HERE,
        help=f"mqtt://host[:port], mqtts://... or unix:///path (default {_HERE}, as `eyestream init` writes it)",
    )
    group.add_argument("--username", help="name to log in with")
    group.add_argument("--password-file", type=Path, metavar="FILE", help="file with the password on its first line")
    group.add_argument("--ca-file", type=Path, metavar="FILE", help="mqtts: certificates to trust, not the system's")
    group.add_argument("--cert-file", type=Path, metavar="FILE", help="mqtts: certificate to show")
    group.add_argument("--key-file", type=Path, metavar="FILE", help="mqtts: its key")
    group.add_argument(
        "--wait", type=positive, default=5.0, metavar="S", help="try for S seconds to reach it (default 5)"
    )


def broker_settings(options: argparse.Namespace) -> BrokerSettings:
    """What `add_broker` collected."""
    return BrokerSettings(
        url=options.broker,
        username=options.username,
        password_file=options.password_file,
        ca_file=options.ca_file,
        cert_file=options.cert_file,
        key_file=options.key_file,
    )


def add_stream(parser: argparse.ArgumentParser) -> None:
    """``--stream``."""
    parser.add_argument(
        "--stream",
        default=FEATURE_STREAM,
        metavar="NAME",
        help=f"name of the stream in the sidecar's configuration (default {FEATURE_STREAM})",
    )


def add_own_options(parser: argparse.ArgumentParser) -> None:
    """``--option NAME=VALUE``, for options of a mechanism that have no name of their own here."""
    parser.add_argument(
        "--option",
        action="append",
        metavar="NAME=VALUE",
        help="an option of the mechanism that is not listed here, VALUE as in TOML (delta=1e-6); more than once",
    )


def own_options(options: argparse.Namespace) -> dict[str, Any]:
    """What `add_own_options` collected; raises ConfigError for one that is not NAME=VALUE."""
    given: dict[str, Any] = {}
    for text in options.option or ():
        try:
            given |= tomllib.loads(text)
        except tomllib.TOMLDecodeError:
            raise ConfigError(f"--option {text}: expected NAME=VALUE, VALUE as in TOML") from None
    return given


def check_targets(sources: Sequence[Path], targets: Sequence[Path], *, what: str, plural: str) -> None:
    """Raise ConfigError unless each source has a target of its own that is not its own file, nor a directory.

    `what` goes there.
    """
    twice = next((target for target in targets if targets.count(target) > 1), None)
    if twice is not None:
        raise ConfigError(f"two recordings are called {twice.name}: their {plural} would overwrite each other")
    for path, target in zip(sources, targets, strict=True):
        if target.resolve() == path.resolve():
            raise ConfigError(f"--out {target.parent}: {path.name} would be overwritten by its own {what}")
        if target.is_dir():
            raise ConfigError(f"{target}: is a directory; expected a place for the {what} of {path.name}")


def positive(text: str) -> float:
    """A finite number above 0."""
    with contextlib.suppress(ValueError):
        if 0 < (number := float(text)) < math.inf:
            return number
    raise argparse.ArgumentTypeError(f"expected a number above 0, not {text}")


def speed(text: str) -> float:
    """A factor above 0, or ``max``."""
    return math.inf if text == "max" else positive(text)
