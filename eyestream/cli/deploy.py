"""``eyestream deploy DIR``: everything that a Linux host needs to run a sidecar and its two brokers."""

import argparse
import os
import re
import shutil
import socket
import stat
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from eyestream.errors import ConfigError
from eyestream.ops.deployment.layout import APPLICATION, MANIFEST, PORTS, SETTINGS, TRACKER, UNITS, Item, Manifest, at
from eyestream.ops.deployment.writing import check_free, deploy, renew
from eyestream.version import VERSION

_HIDDEN = ("/home", "/root", "/run/user", "/tmp", "/var/tmp")
"""Folders that the units' ProtectHome and PrivateTmp hide."""


def add_parser(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "deploy",
        help="lay out a hardened deployment on a Linux host: users, units, brokers, logins, certificates",
        description="Write everything that a Linux host with systemd and mosquitto needs: units for the sidecar and "
        "for a raw and a private broker, users and groups, their files with owners and rights, logins, certificates, "
        "configuration and ledger. All of it or nothing; what is there already is never overwritten. "
        "docs/deployment.md goes through it.",
    )
    parser.add_argument(
        "directory",
        type=Path,
        metavar="DIR",
        help="/ for this machine; else a folder that is, or will be, the root of a host, with a directory etc in it",
    )
    parser.add_argument(
        "--host", metavar="NAME",
        help="applications on other machines reach the private broker under this name or address: with TLS and a "
        "certificate for it. Without it nothing listens on a network",
    )  # fmt: skip
    parser.add_argument("--port", type=int, metavar="N", help=f"and at this port (default {PORTS['private']})")
    parser.add_argument(
        "--tracker-host", metavar="NAME",
        help="trackers on other machines reach the raw broker under this name or address, likewise",
    )  # fmt: skip
    parser.add_argument("--tracker-port", type=int, metavar="N", help=f"and at this port (default {PORTS['raw']})")
    parser.add_argument(
        "--program", type=Path, metavar="PATH",
        help="where the host has eyestream: an absolute path (default: this one, or /usr/bin/eyestream elsewhere)",
    )  # fmt: skip
    parser.add_argument(
        "--upgrade", action="store_true",
        help="renew a deployment that is there: units, broker files and a certificate that ends soon are written "
        "again. Configuration, logins and ledger stay. What was edited is kept, with the new one beside it. With "
        "hosts: other machines reach the brokers so from now on",
    )  # fmt: skip


def main(options: argparse.Namespace) -> None:
    """Write, and explain.

    Raises
    ------
    ConfigError
        It cannot be done here; then nothing is left of it.
    LedgerError
        A ledger that is there already cannot be read.
    """
    root, here = options.directory, options.directory.resolve() == Path("/")
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        raise ConfigError(
            "expected to be run as root (sudo): the files belong to several users. To look at them first: "
            "mkdir -p DIR/etc && fakeroot eyestream deploy DIR"
        )
    now = datetime.now(UTC)
    if options.upgrade:
        program = None if options.program is None else _program(options.program, root)
        outside = _outside(options, probe=False)  # what is taken may be ours
        _say_renewed(root, here, renew(root, version=VERSION, program=program, now=now, outside=outside))
        return
    if here:
        check_free(root)  # before a port: a deployment at work has it
    outside = _outside(options, probe=here)
    program = _program(options.program or (_own() if here else Path("/usr/bin/eyestream")), root)
    if here and not any(Path(folder, "mosquitto").exists() for folder in ("/usr/sbin", "/usr/local/sbin")):
        raise ConfigError("mosquitto is not installed: apt install mosquitto")
    made = deploy(root, version=VERSION, program=program, outside=outside, now=now)
    _say_made(root, here, made)


_OPTIONS = {"raw": ("--tracker-host", "--tracker-port"), "private": ("--host", "--port")}


def _outside(options: argparse.Namespace, *, probe: bool) -> dict[str, tuple[str, int]]:
    """How other machines shall reach which broker."""
    found: dict[str, tuple[str, int]] = {}
    asked = ("raw", options.tracker_host, options.tracker_port), ("private", options.host, options.port)
    for side, host, number in asked:
        named, numbered = _OPTIONS[side]
        if host is None and number is not None:
            raise ConfigError(f"{numbered} goes with {named} NAME")
        if host is None:
            continue
        if not re.fullmatch(r"[A-Za-z0-9.:-]{1,253}", host):
            raise ConfigError(f"{named} {host}: expected a name or an address, without a port")
        port = _port(PORTS[side] if number is None else number, numbered, probe)
        if any(port == other for _, other in found.values()):
            raise ConfigError(f"{numbered} {port}: expected another port than that of {_OPTIONS['raw'][1]}")
        found[side] = (host, port)
    return found


def _own() -> Path:
    """Where this program is, as long as every user can reach it."""
    own = Path(sys.executable).with_name("eyestream")
    found = own if own.exists() else Path(shutil.which("eyestream") or own)
    for needed in (found, Path(sys.executable).resolve(), Path(__file__).resolve()):
        hidden = next((folder for folder in _HIDDEN if needed.is_relative_to(folder)), None)
        closed = next((p for p in needed.parents if not p.stat().st_mode & stat.S_IXOTH), None)
        if not found.exists() or hidden is not None or closed is not None:
            raise ConfigError(
                f"{needed}: the sidecar's user cannot reach it; install eyestream where it can: "
                "python3 -m venv /opt/eyestream && /opt/eyestream/bin/pip install ..., then /opt/eyestream/bin/"
                "eyestream deploy"
            )
    return found


def _program(path: Path, root: Path) -> str:
    if not re.fullmatch(r"/[\w./+-]+", str(path)):
        raise ConfigError(f"--program {path}: expected an absolute path, without spaces")
    return str(path)


def _port(port: int, option: str, probe: bool) -> int:
    if not 1 <= port <= 65535:
        raise ConfigError(f"{option} {port}: expected a port between 1 and 65535")
    if probe:
        with socket.socket() as own:
            own.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                own.bind(("", port))
            except OSError as error:
                raise ConfigError(f"port {port} cannot be opened: {error.strerror}; {option} gives another") from None
    return port


_LISTED = Item(MANIFEST, "root", "root", 0o644, "what was written, for --upgrade and for check")


def _say_made(root: Path, here: bool, made: Manifest) -> None:
    for place in (*made.places, _LISTED):
        print(f"{at(root, place.path)!s:<48}  {place.mode:04o}  {place.user}:{place.group}  {place.what}")
    print()
    print("\n".join(_next_steps(root, here, made)))


def _next_steps(root: Path, here: bool, made: Manifest) -> Iterator[str]:
    if not here:
        yield f"{root} is the root of a host: the steps below are for that host, when it runs."
    logins = "/etc/eyestream/logins"
    yield "Look at the configuration (which tracker, which ceilings), then start, and check:"
    yield f"  ${{EDITOR:-nano}} {SETTINGS}"
    yield f"  systemctl daemon-reload && systemctl enable --now {' '.join(UNITS)}"
    yield f"  {made.program} check --config {SETTINGS} \\"
    yield f"      --tracker {logins}/tracker.toml --application {logins}/application.toml"
    yield "A tracker on this machine, and an application: the group lets a user in, the login says who it is:"
    yield f"  usermod -aG {TRACKER} USER      unix:///run/eyestream-raw/raw.sock, {logins}/tracker.password"
    yield f"  usermod -aG {APPLICATION} USER  unix:///run/eyestream-private/private.sock, {logins}/application.password"
    who = {"raw": "A tracker", "private": "An application"}
    for side, (host, port) in made.outside.items():
        yield f"{who[side]} on another machine, with a copy of /etc/eyestream/certificates/ca.pem and the same login:"
        yield f"  mqtts://{f'[{host}]' if ':' in host else host}:{port}"


def _say_renewed(root: Path, here: bool, lines: list[str]) -> None:
    print("\n".join(lines) if lines else f"{root}: everything is of this version already")
    if lines and here:
        print(f"next     systemctl daemon-reload && systemctl restart {' '.join(UNITS)}")
