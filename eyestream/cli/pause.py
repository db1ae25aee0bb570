"""``eyestream pause``: nothing is released from now on."""

import argparse
import contextlib
import socket
import time
from pathlib import Path
from typing import Any

from eyestream.errors import ConfigError, LedgerError
from eyestream.rim.config import load
from eyestream.rim.ledger.file import is_held
from eyestream.rim.sidecar.control import MOST_BYTES, control_socket
from eyestream.rim.sidecar.off import forget_pause, is_paused, remember_pause

_STARTING_S = 5.0
"""Seconds in which a sidecar that holds its ledger listens at its socket."""

_ANSWER_S = 20.0
"""Seconds for which a command waits for its answer."""


def add_parser(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "pause",
        help="stop releases from now on, also after a restart",
        description="From the answer on nothing is released and nothing is spent, until `eyestream resume`, also after "
        "a restart or a crash. Works without a running sidecar too: then the next start is paused.",
    )
    add_place(parser)


def add_place(parser: argparse.ArgumentParser) -> None:
    """The options that say of which sidecar."""
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--config", type=Path, metavar="FILE", help="the sidecar of this configuration")
    which.add_argument("--socket", type=Path, metavar="PATH", help="the sidecar that listens at this control socket")


def main(options: argparse.Namespace) -> None:
    """Run the subcommand. Raises ConfigError and LedgerError: it is not sure that nothing is released."""
    print(switch(options, pause=True))


def switch(options: argparse.Namespace, *, pause: bool) -> str:
    """Pause or resume, and what to print."""
    word = "pause" if pause else "resume"
    if options.config is None:
        answer = ask(options.socket, word)
        if answer is None:
            raise ConfigError(f"{options.socket}: nobody listens there")
        return answer
    settings = load(options.config)
    if settings.added is not None:
        raise ConfigError(f"{options.config}: nobody wears a server: only a sidecar can be paused")
    path, ledger = control_socket(settings), settings.sidecar.ledger
    answer = ask(path, word)
    if answer is None:
        (remember_pause if pause else forget_pause)(ledger)
        # After the mark: who starts now holds the ledger first and looks for the mark then.
        until = time.monotonic() + _STARTING_S
        while is_held(ledger) and (answer := ask(path, word)) is None:
            if time.monotonic() > until:
                raise LedgerError(f"{ledger}: a sidecar is at work and does not listen at {path}; restart it")
            time.sleep(0.1)
    if answer is None:
        return f"no sidecar runs; the next start is {'paused' if is_paused(ledger) else 'not paused'}"
    return answer


def ask(path: Path, line: str) -> str | None:
    """The answer to one line at a control socket; None: nobody listens at `path`, or any more. Raises ConfigError."""
    if not hasattr(socket, "SO_PEERCRED"):
        raise ConfigError("this system does not say who writes to a socket, so a sidecar here has no control socket")
    with socket.socket(socket.AF_UNIX) as asking:
        asking.settimeout(_ANSWER_S)
        try:
            asking.connect(str(path))
            with contextlib.suppress(BrokenPipeError):  # who may not was answered before
                asking.sendall(f"{line}\n".encode())
            answer = asking.makefile("rb").readline(MOST_BYTES).decode("ascii", "replace").strip()
        except (FileNotFoundError, ConnectionRefusedError, ConnectionResetError):  # the last: it ended meanwhile
            return None
        except OSError as error:
            raise ConfigError(f"{path}: {error.strerror or 'no answer'}") from None
    if answer.startswith("no"):
        raise ConfigError(f"{path}: {answer}")
    return answer or None
