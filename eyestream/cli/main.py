"""The command line: one subcommand, one module, loaded when it is asked for."""

import argparse
import importlib
import importlib.metadata
import os
import re
import sys
from collections.abc import Iterator, Sequence
from typing import NoReturn

from eyestream.cli.log import hide_messages
from eyestream.errors import LinkError, OperatorError, meant
from eyestream.version import VERSION

__all__ = ["main"]

COMMANDS = {
    "init": ("eyestream.cli.init", "write a configuration and a new ledger"),
    "deploy": (
        "eyestream.cli.deploy",
        "lay out a hardened deployment on a Linux host: users, units, brokers, logins, certificates",
    ),
    "check": ("eyestream.cli.check", "prove a deployment before anything flows: brokers, secrets, ledger, machine"),
    "run": ("eyestream.cli.run", "the sidecar: raw rows in, private chunks out"),
    "forget": ("eyestream.cli.forget", "let a running sidecar forget what earlier sessions revealed of wearers"),
    "sources": (
        "eyestream.cli.sources",
        "which trackers are on this network, and what to write into the configuration",
    ),
    "replay": ("eyestream.cli.replay", "publish a recording as if a tracker sent it live"),
    "devices": ("eyestream.cli.devices", "which devices are served on a broker, how they are, and their last chunk"),
    "listen": ("eyestream.cli.listen", "receive private chunks as an application does"),
    "gatekeeper": ("eyestream.cli.gatekeeper", "answer questions about released gaze"),
    "monitor": ("eyestream.cli.monitor", "a page in the browser that shows what an application receives"),
    "budget": ("eyestream.cli.budget", "show what a ledger says was spent"),
    "guarantee": ("eyestream.cli.guarantee", "say in words what a configuration guarantees, or a released recording"),
}
"""Module and help text of each command, by its name, in the order of the help."""

OTHERS = {
    "eyestream-lab": "demo advise calibrate privatize inspect extract events simulate study audit",
    "eyestream-fleet": "shard",
}
"""Commands of the other distributions: who calls one that is not installed is told what to install."""

_ABOUT = "Differentially private release of eye-movement feature streams over MQTT."
_FIRST = "Begin with: eyestream demo. Then: eyestream init DIR, eyestream run --config DIR/sidecar.toml."


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line."""

    def error(self, message: str) -> NoReturn:
        wrong = re.match(r"argument COMMAND: invalid choice: '(.*?)'", message)
        if wrong is not None:
            message = f"there is no command {wrong[1]}{meant(wrong[1], commands())}"
            for distribution, names in OTHERS.items():
                if wrong[1] in names.split():
                    message = f"{wrong[1]} is a command of {distribution}, which is not installed"
        unknown = re.match(r"unrecognized arguments: (--[\w-]+)", message)
        if unknown is not None:
            options = [word for action in self._options() for word in action.option_strings]
            message += meant(unknown[1], options)
        self.exit(2, f"{self.prog}: {message} ({self.prog} --help says more)\n")

    def _options(self) -> Iterator[argparse.Action]:
        """Of this command and of those below it."""
        for action in self._actions:
            yield action
            if isinstance(action, argparse._SubParsersAction):
                for parser in action.choices.values():
                    yield from parser._actions


def commands() -> dict[str, tuple[str, str]]:
    """Module and help text of each command: those above, then those of the entry points ``eyestream.commands``.

    An entry point refers to a dictionary like `COMMANDS`. A name that is taken stays with whoever has it.
    """
    known: dict[str, tuple[str, str]] = {}
    for point in sorted(importlib.metadata.entry_points(group="eyestream.commands"), key=lambda point: point.name):
        known |= point.load()
    return COMMANDS | {name: known[name] for name in known if name not in COMMANDS}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one subcommand; what a person must change is said in one line on stderr, with exit code 2."""
    hide_messages()
    words = sys.argv[1:] if arguments is None else list(arguments)
    asked = next((word for word in words if not word.startswith("-")), None)
    parser = _Parser(prog="eyestream", description=_ABOUT, epilog=_FIRST)
    parser.add_argument("--version", action="version", version=f"eyestream {VERSION}")
    subparsers = parser.add_subparsers(title="commands", dest="command", metavar="COMMAND", required=True)
    module = None
    for name, (place, text) in (COMMANDS if asked in COMMANDS else commands()).items():
        if name == asked:
            module = importlib.import_module(place)
            module.add_parser(subparsers)
        else:
            subparsers.add_parser(name, help=text)
    options = parser.parse_args(words)
    assert module is not None
    try:
        module.main(options)
    except (OperatorError, LinkError, KeyboardInterrupt, BrokenPipeError, BaseExceptionGroup) as error:
        sys.exit(_exit_code(asked, error))


def _exit_code(command: str | None, error: BaseException) -> int:
    """How a command ends that was stopped by `error`, alone or in one of its tasks."""
    cause = error
    while isinstance(cause, BaseExceptionGroup):
        cause = cause.exceptions[0]
    if isinstance(cause, (OperatorError, LinkError)):
        print(f"eyestream {command}: {cause}", file=sys.stderr)
        return 2
    if isinstance(cause, KeyboardInterrupt):
        return 130
    if isinstance(cause, BrokenPipeError):  # `eyestream listen ... | head`: nobody reads on
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    raise error
