"""The command line: one subcommand, one module, loaded when it is asked for.

The laboratory and a fleet add their commands as anybody can: docs/adding-a-command.md.
"""

import argparse
import importlib
import os
import re
import sys
from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import NoReturn

from eyestream.cli.log import hide_messages
from eyestream.doors import installed, loaded
from eyestream.errors import LinkError, OperatorError, meant
from eyestream.version import VERSION

COMMANDS = {
    "init": ("eyestream.cli.init", "write a configuration and a new ledger"),
    "deploy": (
        "eyestream.cli.deploy",
        "lay out a hardened deployment on a Linux host: users, units, brokers, logins, certificates",
    ),
    "check": ("eyestream.cli.check", "test a deployment before data flows: brokers, secrets, ledger, machine"),
    "run": ("eyestream.cli.run", "run the sidecar: raw rows in, private chunks out"),
    "pause": ("eyestream.cli.pause", "stop releases from now on, also after a restart"),
    "resume": ("eyestream.cli.resume", "release again after a pause"),
    "forget": ("eyestream.cli.forget", "erase a wearer's diary and histories; what was spent still counts"),
    "grant": ("eyestream.cli.grant", "let an application receive a stream"),
    "revoke": ("eyestream.cli.revoke", "stop an application from receiving a stream, or all streams"),
    "grants": ("eyestream.cli.grants", "list which applications receive which streams, and since when"),
    "explain": ("eyestream.cli.explain", "for the wearer: what leaves the device, who gets it, how to stop it"),
    "sources": ("eyestream.cli.sources", "list the trackers on this network, and the configuration for each"),
    "replay": ("eyestream.cli.replay", "publish a recording as a live tracker would"),
    "devices": ("eyestream.cli.devices", "list the devices served on a broker, their state and their last chunk"),
    "listen": ("eyestream.cli.listen", "receive private chunks as an application does"),
    "monitor": ("eyestream.cli.monitor", "show in a browser what an application receives"),
    "budget": ("eyestream.cli.budget", "show what was spent, and what is left"),
    "guarantee": ("eyestream.cli.guarantee", "explain what a configuration guarantees, or a released recording"),
}
"""Module and help text of each command, by its name, in the order of the help."""

_GROUP = "eyestream.commands"
_OTHERS = ("eyestream-lab", "eyestream-fleet")
"""Our distributions that add commands: who calls a command that is not there is told which of them is not installed."""

_ABOUT = "Differentially private release of eye-movement feature streams over MQTT."
_FIRST = "Begin with: eyestream init DIR, then eyestream run --config DIR/sidecar.toml."


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line."""

    def error(self, message: str) -> NoReturn:
        wrong = re.match(r"argument COMMAND: invalid choice: '(.*?)'", message)
        if wrong is not None:
            message = f"there is no command {wrong[1]}{meant(wrong[1], commands()) or _missing()}"
        unknown = re.match(r"unrecognized arguments: (--[\w-]+)", message)
        if unknown is not None:
            options = [word for action in self._options() for word in action.option_strings]
            message += meant(unknown[1], options)
        self.exit(2, f"{self.prog}: {message} ({self.prog} --help says more)\n")

    def _options(self) -> Iterator[argparse.Action]:
        """Options of this command and of those below it."""
        for action in self._actions:
            yield action
            if isinstance(action, argparse._SubParsersAction):
                for parser in action.choices.values():
                    yield from parser._actions


def commands() -> dict[str, tuple[str, str]]:
    """Module and help text of each command: ours, then those that other distributions add, by name.

    An entry point of the group ``eyestream.commands`` refers to a dictionary like `COMMANDS`. The module of a command
    has ``add_parser(subparsers)`` and ``main(options)``, as those here. A name that is taken stays with whoever has it.

    Raises
    ------
    ConfigError
        An entry point refers to nothing that can be imported, or to no dictionary.
    """
    found = dict(COMMANDS)
    for point in installed(_GROUP):
        for name, place_and_help in loaded(point, dict).items():
            found.setdefault(name, place_and_help)
    return found


def _missing() -> str:
    """Distributions with commands that are not installed, for the end of a message."""
    there = {point.dist.name for point in installed(_GROUP) if point.dist is not None}
    missing = [name for name in _OTHERS if name not in there]
    return f"; more commands come with {' and '.join(missing)}: pip install {' '.join(missing)}" if missing else ""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one subcommand; what a person must change is said in one line on stderr, with exit code 2."""
    hide_messages()
    words = sys.argv[1:] if arguments is None else list(arguments)
    asked = next((word for word in words if not word.startswith("-")), None)
    try:
        parser, module = _parser(asked)
        options = parser.parse_args(words)
        assert module is not None, "argparse ends where no command is named"
        module.main(options)
    except (OperatorError, LinkError, KeyboardInterrupt, BrokenPipeError, BaseExceptionGroup) as error:
        sys.exit(_exit_code(asked, error))


def _parser(asked: str | None) -> tuple[_Parser, ModuleType | None]:
    """The parser, and the module of the command that is asked for: no other one is imported, for its help text."""
    parser, module = _Parser(prog="eyestream", description=_ABOUT, epilog=_FIRST), None
    parser.add_argument("--version", action="version", version=f"eyestream {VERSION}")
    subparsers = parser.add_subparsers(title="commands", dest="command", metavar="COMMAND", required=True)
    for name, (place, text) in (COMMANDS if asked in COMMANDS else commands()).items():
        if name == asked:
            module = importlib.import_module(place)
            module.add_parser(subparsers)
        else:
            subparsers.add_parser(name, help=text)
    return parser, module


def _exit_code(command: str | None, error: BaseException) -> int:
    """How a command ends that was stopped by `error`, alone or in one of its tasks."""
    cause = error
    while isinstance(cause, BaseExceptionGroup):
        cause = cause.exceptions[0]
    if isinstance(cause, (OperatorError, LinkError)):
        print(f"{f'eyestream {command}' if command else 'eyestream'}: {cause}", file=sys.stderr)
        return 2
    if isinstance(cause, KeyboardInterrupt):
        return 130
    if isinstance(cause, BrokenPipeError):  # `eyestream listen ... | head`: nobody reads on
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    raise error
