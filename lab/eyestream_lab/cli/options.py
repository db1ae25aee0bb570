"""Options that several commands of the laboratory share."""

import argparse
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from eyestream.errors import ConfigError


def add_workers(parser: argparse.ArgumentParser, jobs: str = "work on N recordings at once, in processes") -> None:
    """``--jobs`` and ``--cluster``."""
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--jobs", type=_count, metavar="N", help=jobs)
    which.add_argument(
        "--cluster",
        metavar="URL",
        help="work on a Dask cluster (extra 'cluster'): its scheduler, tcp://host:8786; its workers see the same files",
    )


def _count(text: str) -> int:
    """A number from 1 on, for argparse."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a number from 1 on, found {text!r}")
    return int(text)


def add_own_options(parser: argparse.ArgumentParser) -> None:
    """``--option NAME=VALUE``, for options of a mechanism that have no name of their own here."""
    parser.add_argument(
        "--option",
        action="append",
        metavar="NAME=VALUE",
        help="an option of the mechanism that is not listed here, VALUE as in TOML (delta=1e-6); more than once",
    )


def own_options(options: argparse.Namespace) -> dict[str, Any]:
    """The options of `add_own_options`; raises ConfigError for one that is not NAME=VALUE."""
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
