"""Options that several subcommands share, and the form of log lines."""

import argparse
import asyncio
import json
import logging
import math
import os
import sys
import tomllib
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from eyestream.cli.tracebacks import in_one_line
from eyestream.errors import ConfigError, LinkError
from eyestream.rim.config import BrokerSettings
from eyestream.wire.topics import FEATURE_STREAM

__all__ = [
    "RECORDING",
    "JsonLines",
    "add_broker",
    "add_own_options",
    "add_profile",
    "add_stream",
    "broker_settings",
    "check_targets",
    "one_line_faults",
    "own_options",
    "positive",
    "speed",
    "start_log",
]

RECORDING = ".npz, .csv, .tsv or .parquet of rows; with --profile, gaze"


def add_profile(parser: argparse.ArgumentParser, *, required: bool = False) -> None:
    """``--profile``."""
    shipped = "name of a shipped profile (smi-glasses, degrees and so on) or a TOML file"
    said = f"what the columns of the gaze are: {shipped}" if required else f"the files hold gaze: {shipped}"
    parser.add_argument("--profile", required=required, metavar="P", help=said)


def add_broker(parser: argparse.ArgumentParser) -> None:
    """``--broker`` and what a broker may ask for."""
    group = parser.add_argument_group("broker")
    group.add_argument("--broker", metavar="URL", required=True, help="mqtt://host[:port], mqtts://... or unix:///path")
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
    number = float(text)
    if not (math.isfinite(number) and number > 0):
        raise argparse.ArgumentTypeError(f"expected a number above 0, not {text}")
    return number


def speed(text: str) -> float:
    """A factor above 0, or ``max``."""
    return math.inf if text == "max" else positive(text)


class JsonLines(logging.Formatter):
    """One JSON object a line: time (UTC), level, logger, message."""

    def format(self, record: logging.LogRecord) -> str:
        """The object; no traceback, which might hold more than a message may."""
        said = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        return json.dumps(said)


class _ForJournal(logging.Formatter):
    """Each line with its priority in front, as sd-daemon(3) has it: systemd takes it off and files the line by it."""

    def __init__(self, own: logging.Formatter) -> None:
        super().__init__()
        self._own = own

    def format(self, record: logging.LogRecord) -> str:
        """As the other formatter does it, behind the priority."""
        priority = next(number for level, number in _PRIORITIES if record.levelno >= level)
        return f"<{priority}>{self._own.format(record)}"


_PRIORITIES = ((logging.CRITICAL, 2), (logging.ERROR, 3), (logging.WARNING, 4), (logging.INFO, 6), (0, 7))


def _to_journal() -> bool:
    """Whether standard error is systemd's journal (systemd.exec(5), JOURNAL_STREAM)."""
    device, _, inode = os.environ.get("JOURNAL_STREAM", "").partition(":")
    try:
        found = os.fstat(sys.stderr.fileno())
    except (OSError, ValueError):
        return False
    return (str(found.st_dev), str(found.st_ino)) == (device, inode)


def start_log(
    level: int = logging.INFO,
    formatter: logging.Formatter = logging.Formatter("%(asctime)s %(levelname)s %(message)s"),  # noqa: B008  immutable
) -> None:
    """Log lines of eyestream on stderr, one line each."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_ForJournal(formatter) if _to_journal() else formatter)
    log = logging.getLogger("eyestream")
    log.handlers[:] = [handler]
    log.setLevel(level)
    log.propagate = False


def one_line_faults() -> "asyncio.Future[None]":
    """From now on, faults in callbacks of the running loop are one line in the log.

    What the network does is for those who look for it. What nobody foresaw is an error: its type and places are said,
    and neither its message nor the callback and what that was given, which may be a raw row.

    Returns
    -------
    asyncio.Future
        Fails with the first such error of a callback: what it had to do is not done, and who depends on it must end.
    """
    log, fault = logging.getLogger("eyestream.loop"), asyncio.get_running_loop().create_future()

    def say(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error, of_callback = context.get("exception"), "handle" in context
        if error is None or (isinstance(error, OSError | LinkError) and not of_callback):
            kind = "no exception" if error is None else type(error).__name__
            log.debug("%s (%s)", context["message"], kind)
            return
        log.error("nobody foresaw this: %s", in_one_line(error))
        if of_callback and not isinstance(error, OSError) and not fault.done():
            fault.set_exception(error)
            fault.exception()  # looked at: where nobody waits for it, the log has it

    asyncio.get_running_loop().set_exception_handler(say)
    return fault
