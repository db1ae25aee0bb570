"""Parts of a deployment: every file and directory, with its owner, its readers and its purpose.

Three programs run under three users, each with nothing but what it needs. Two groups say who may talk to the brokers:
`eyestream-tracker` may enter the directory of the raw broker's socket, `eyestream-application` that of the private
one's. The sockets and their directories are made by the units at every start; everything that stays is listed here.
Directories below `/etc` are root's: in those of others systemd-tmpfiles mends nothing. A `Manifest` lies beside a
deployment. It says which version wrote which files, so that a newer version can renew them.
"""

import hashlib
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from eyestream.errors import ConfigError
from eyestream.ops.new_configuration import fresh_configuration
from eyestream.rim.config.tables import LOCAL_BROKER
from eyestream.rim.files import DATA

SIDECAR, RAW, PRIVATE = "eyestream", "eyestream-raw", "eyestream-private"
TRACKER, APPLICATION = "eyestream-tracker", "eyestream-application"
UNITS = (RAW, PRIVATE, SIDECAR)
"""Units in the order in which they start."""

SETTINGS = "/etc/eyestream/sidecar.toml"
MANIFEST = "/etc/eyestream/deployment.json"
LEDGER = "/var/lib/eyestream/ledger"

_BROKERS = (("raw", RAW, TRACKER), ("private", PRIVATE, APPLICATION))
PORTS = {"raw": 8884, "private": 8883}
"""Ports for other machines, unless others are asked for."""

CERTIFICATES = {
    side: f"/etc/eyestream/certificates/{name}.pem" for side, name in (("raw", "raw"), ("private", "broker"))
}
_NO_NETWORK = (
    "# No network at all: trackers come through the socket.\nPrivateNetwork=yes\nRestrictAddressFamilies=AF_UNIX\n"
)
_NETWORK = "RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6\n"

Kind = Literal["directory", "program", "kept"]

Outside = Mapping[str, tuple[str, int]]
"""Name, or address, and port under which other machines reach a broker, by side: ``raw`` or ``private``."""


@dataclass(frozen=True, slots=True)
class Item:
    """A directory or file of a deployment.

    Attributes
    ----------
    path : absolute, on the host.
    user, group, mode : who owns it, and who may do what.
    what : what it is for, in a few words.
    kind : ``program``: written by this version, renewed by the next; ``kept``: never written twice.
    """

    path: str
    user: str
    group: str
    mode: int
    what: str
    kind: Kind = "kept"


def places(outside: Collection[str]) -> tuple[Item, ...]:
    """All files and directories, each directory before its files; `outside` are the sides that other machines reach."""
    found = [
        Item("/etc/eyestream", "root", "root", 0o755, "all that is configured", "directory"),
        Item("/etc/eyestream/README", "root", "root", 0o644, "this list", "program"),
        Item(SETTINGS, "root", SIDECAR, 0o640, "the sidecar's configuration: trackers, epsilon, ceilings"),
        Item("/etc/eyestream/sidecar", "root", SIDECAR, 0o710, "the sidecar's logins", "directory"),
    ]
    for side in ("raw", "private"):
        found.append(Item(f"/etc/eyestream/sidecar/{side}.password", SIDECAR, SIDECAR, 0o400, f"at the {side} broker"))
    for side, user, group in _BROKERS:
        folder = f"/etc/eyestream/{side}"
        found += [
            Item(folder, "root", user, 0o710, f"the {side} broker's own files", "directory"),
            Item(f"{folder}/{side}.conf", user, group, 0o400, "its configuration", "program"),
            Item(f"{folder}/{side}.acl", user, group, 0o400, "who may read and write which topics", "program"),
            Item(f"{folder}/{side}.passwd", user, group, 0o400, "who may log in; mosquitto_passwd changes it"),
        ]
    logins = "/etc/eyestream/logins"
    found.append(Item(logins, "root", "root", 0o700, "logins to hand out, and to check with", "directory"))
    for role in ("tracker", "application"):
        found += [
            Item(f"{logins}/{role}.password", "root", "root", 0o400, f"give a copy to each {role}"),
            Item(f"{logins}/{role}.toml", "root", "root", 0o400, f"for `eyestream check --{role}`"),
        ]
    if outside:
        certificates = "/etc/eyestream/certificates"
        found += [
            Item(certificates, "root", "root", 0o755, "what a broker shows to other machines", "directory"),
            Item(f"{certificates}/ca.pem", "root", "root", 0o644, "give a copy to each machine elsewhere"),
            Item(f"{certificates}/ca.key", "root", "root", 0o400, "signs the brokers' certificates; nobody needs it"),
        ]
    for side, user, group in _BROKERS:
        if side in outside:
            found += [
                Item(CERTIFICATES[side], "root", "root", 0o644, f"the {side} broker's certificate"),
                Item(f"/etc/eyestream/{side}/broker.key", user, group, 0o400, "and its key"),
            ]
    found += [
        Item("/var/lib/eyestream", SIDECAR, SIDECAR, 0o700, "what the sidecar must not forget", "directory"),
        Item(LEDGER, SIDECAR, SIDECAR, 0o600, "the ledger: every epsilon that was ever spent"),
        Item("/var/lib/eyestream-private", PRIVATE, APPLICATION, 0o700, "chunks for absent applications", "directory"),
        *(Item(f"/etc/systemd/system/{u}.service", "root", "root", 0o644, "a service", "program") for u in UNITS),
        Item("/etc/sysusers.d/eyestream.conf", "root", "root", 0o644, "users and groups", "program"),
        Item("/etc/tmpfiles.d/eyestream.conf", "root", "root", 0o644, "owners and rights, at each boot", "program"),
    ]
    return tuple(found)


def sysusers_text() -> str:
    """Users and groups, for sysusers.d(5)."""
    return f"""\
# Users and groups of eyestream, for systemd-sysusers. Written by `eyestream deploy`.
u {SIDECAR} - "eyestream sidecar" /var/lib/eyestream -
u {RAW} - "eyestream raw broker" - -
u {PRIVATE} - "eyestream private broker" - -
# Who is in these may enter the directory of the raw broker's socket, and of the private one's.
g {TRACKER} - -
g {APPLICATION} - -
m {SIDECAR} {TRACKER}
m {SIDECAR} {APPLICATION}
"""


def tmpfiles_text(all_places: tuple[Item, ...]) -> str:
    """Owners and rights, for tmpfiles.d(5): what was changed by hand is right again after the next boot."""
    lines = [
        "# Owners and rights of what eyestream keeps. Written by `eyestream deploy`.",
        "# /run is not here: the units make the directories of the sockets at every start.",
    ]
    for place in all_places:
        if place.path.startswith(("/etc/eyestream", "/var/")):
            letter = "d" if place.kind == "directory" else "z"
            lines.append(f"{letter} {place.path} {place.mode:04o} {place.user} {place.group} -")
    return "\n".join(lines) + "\n"


def readme_text(all_places: tuple[Item, ...]) -> str:
    """The list of all files, for whoever opens `/etc/eyestream`."""
    owners = [f"{place.user}:{place.group}" for place in all_places]
    wide, wider = max(len(place.path) for place in all_places), max(map(len, owners))
    lines = [
        f"{p.path:<{wide}}  {p.mode:04o}  {owner:<{wider}}  {p.what}"
        for p, owner in zip(all_places, owners, strict=True)
    ]
    return "\n".join(
        (
            "eyestream on this machine. Written by `eyestream deploy`; `eyestream check` says whether it still holds.",
            "",
            *lines,
            "",
            "Sockets, made by the units at every start:",
            f"/run/eyestream-raw/raw.sock          trackers: usermod -aG {TRACKER} USER",
            f"/run/eyestream-private/private.sock  applications: usermod -aG {APPLICATION} USER",
            "",
        )
    )


def unit_text(unit: str, program: str, outside: Collection[str] = ()) -> str:
    """A systemd unit that starts the eyestream at `program`, an absolute path."""
    text = _shipped(f"{unit}.service").replace("/usr/bin/eyestream", program)
    if unit == RAW and "raw" in outside:
        assert _NO_NETWORK in text
        text = text.replace(_NO_NETWORK, _NETWORK)
    return text


def conf_text(side: str, port: int | None) -> str:
    """mosquitto.conf(5) of the ``raw`` or ``private`` broker, which listens on `port` for other machines."""
    text = _shipped(f"{side}.conf")
    if port is not None:
        text += _shipped(f"{side}-tls.conf").replace(f"listener {PORTS[side]}", f"listener {port}")
    return text


def acl_text(side: str) -> str:
    """Access list of a broker."""
    return _shipped(f"{side}.acl")


def settings_text() -> str:
    """A configuration of the sidecar for both brokers, with names of its own."""
    text = fresh_configuration()
    private = 'url = "unix:///run/eyestream-private/private.sock"\nusername = "sidecar"\npassword_file = "{}"'
    raw = '[raw]\nurl = "unix:///run/eyestream-raw/raw.sock"\nusername = "sidecar"\npassword_file = "{}"\n'
    for pattern, new in (
        (r'^ledger = "ledger"$', f'ledger = "{LEDGER}"'),
        (rf'^url = "{LOCAL_BROKER}".*$', private.format("/etc/eyestream/sidecar/private.password")),
        (r"^# \[raw\]\n# url = .*\n", raw.format("/etc/eyestream/sidecar/raw.password")),
    ):
        text, count = re.subn(pattern, new, text, count=1, flags=re.MULTILINE)
        assert count == 1, pattern
    return re.sub(r'^# (username|password_file) = "(sidecar|password)".*\n', "", text, flags=re.MULTILINE)


def _shipped(name: str) -> str:
    return (DATA / "deployment" / name).read_text(encoding="utf-8")


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Version, where the program is, names and ports for other machines, hashes of what was written.

    `host` and `port` are those of the private broker, for applications; None: they reach it from this machine alone.
    """

    version: str
    program: str
    host: str | None
    port: int | None
    written: dict[str, str]
    tracker_host: str | None = None
    tracker_port: int | None = None

    @property
    def outside(self) -> Outside:
        """Name and port for other machines of each side that has them."""
        both = (("raw", self.tracker_host, self.tracker_port), ("private", self.host, self.port))
        return {side: (host, port) for side, host, port in both if host is not None and port is not None}

    @property
    def places(self) -> tuple[Item, ...]:
        """Everything that this version has in such a deployment."""
        return places(self.outside)


def manifest_of(version: str, program: str, outside: Outside, files: Mapping[str, bytes]) -> Manifest:
    """The manifest of a deployment that is written now; `files` are those of this version, by path."""
    (host, port), (tracker_host, tracker_port) = (outside.get(side, (None, None)) for side in ("private", "raw"))
    written = {path: digest(data) for path, data in files.items()}
    return Manifest(version, program, host, port, written, tracker_host, tracker_port)


def at(root: Path, path: str) -> Path:
    """Place of an absolute path of the host under `root`."""
    return root / path.removeprefix("/")


def digest(data: bytes) -> str:
    """SHA-256 of a file's bytes.

    >>> digest(b"")[:8]
    'e3b0c442'
    """
    return hashlib.sha256(data).hexdigest()


def read_manifest(root: Path) -> Manifest | None:
    """The manifest of the deployment at `root`; None where there is none. Raises ConfigError for a damaged one."""
    path = at(root, MANIFEST)
    try:
        return msgspec.json.decode(path.read_bytes(), type=Manifest)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    except msgspec.MsgspecError:
        raise ConfigError(f"{path}: damaged, or of another version of eyestream") from None
