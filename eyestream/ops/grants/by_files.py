"""Rights by the files of a deployment: mosquitto reads its access list and its logins again when it is told to.

A reload says nothing to whoever asked for it. So a login of a moment, which nobody knows, is in the first file and not
in the second: when it gets in, and then no more, mosquitto has read both.

In the file of logins, the line of a closed one is a comment. It has the same password when it is opened again.
"""

import asyncio
import dataclasses
import itertools
import os
import secrets
import shutil
import stat
import subprocess
from collections.abc import Collection, Mapping
from pathlib import Path

from eyestream.errors import ConfigError, LinkError
from eyestream.ops.deployment.layout import PRIVATE, at
from eyestream.ops.grants.access import Hears, list_of, matches, rights_to, with_rights
from eyestream.rim.config import Settings
from eyestream.rim.mqtt.endpoint import Endpoint
from eyestream.rim.mqtt.transport import connect

_CLOSED = "#revoked "
_MOMENT = "eyestream-moment-"
_OTHER_MEANS = [[word] for word in ("use_identity_as_username", "use_subject_as_username", "plugin", "auth_plugin")]

RELOAD_S = 10.0
"""Seconds for mosquitto to read its files again; it takes less than one."""


class Files:
    """The private broker of the deployment at `root`.

    Raises
    ------
    ConfigError
        Its files cannot be read, or do not say who gets in: logins by certificate have no line that could be closed.
    """

    def __init__(self, root: Path, settings: Settings) -> None:
        folder = at(root, "/etc/eyestream/private")
        for line in _read(conf := folder / "private.conf").splitlines():
            if line.split(maxsplit=1)[:1] in _OTHER_MEANS and not line.endswith(" false"):
                raise ConfigError(
                    f"{conf}: {line.strip()}: its files do not say who gets in; "
                    "use mosquitto's dynamic security plugin (--admin FILE)"
                )
        self._acl, self._logins = folder / "private.acl", folder / "private.passwd"
        self._sidecar, self._endpoint = settings.private.username, Endpoint.of(settings.private)

    async def hearing(self) -> Mapping[str, Hears]:
        """By login, as the access list has it."""
        text = _read(self._acl)
        names = (name for name in self._lines() if not name.startswith(("#", _MOMENT)))
        return {name: _hears(text, name) for name in names if name != self._sidecar}

    async def closed(self) -> Collection[str]:
        """Logins whose line is a comment."""
        return [name.removeprefix(_CLOSED) for name in self._lines() if name.startswith(_CLOSED)]

    async def add(self, application: str) -> str:
        """Add a login; the next `allow` tells mosquitto."""
        from eyestream.ops.deployment.credentials import new_password, password_line  # noqa: PLC0415  an extra

        password = new_password()
        _replace(self._logins, "".join(self._lines().values()) + password_line(application, password))
        return password

    async def allow(self, application: str, streams: Collection[str], *, cut: bool) -> None:
        """Write both files, and let mosquitto read them, twice."""
        from eyestream.ops.deployment.credentials import password_line  # noqa: PLC0415  an extra

        text = with_rights(_read(self._acl), application, rights_to(application, streams))
        for access, topic in list_of(text, application):
            if (access, topic) not in rights_to(application, streams):
                raise ConfigError(f"{self._acl}: the line pattern {access} {topic} gives it to everybody; take it out")
        lines = self._lines()
        line = lines.pop(application, "") or lines.pop(f"{_CLOSED}{application}", "").removeprefix(_CLOSED)
        rest = "".join(line for name, line in lines.items() if not name.startswith(_MOMENT))
        moment = (f"{_MOMENT}{secrets.token_hex(4)}", secrets.token_urlsafe(24))
        _replace(self._acl, text)
        _replace(self._logins, f"{rest}{_CLOSED if cut else ''}{line}{password_line(*moment)}")
        await self._reloaded(moment, gets_in=True)
        _replace(self._logins, f"{rest}{'' if streams else _CLOSED}{line}")
        await self._reloaded(moment, gets_in=False)

    def _lines(self) -> dict[str, str]:
        """Lines of the file of logins, by name; that of a closed one begins with a mark."""
        lines = _read(self._logins).splitlines()
        return {line.partition(":")[0]: f"{line}\n" for line in lines if line.strip()}

    async def _reloaded(self, moment: tuple[str, str], *, gets_in: bool) -> None:
        """Let mosquitto read its files, and wait until the login of a moment gets in, or no more."""
        command = ["systemctl", "reload", PRIVATE]
        if shutil.which(command[0]) is None:
            raise ConfigError(f"{self._acl} is written, and systemd is not here to tell the broker: let it reload")
        done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, check=False)
        if done.returncode:
            said = done.stderr.strip().splitlines() or ["no reason given"]
            raise ConfigError(f"{self._acl} is written, and {' '.join(command)} failed: {said[-1]}")
        probe = dataclasses.replace(self._endpoint, username=moment[0], password=moment[1])
        try:
            async with asyncio.timeout(RELOAD_S):
                for pause in itertools.repeat(0.05):
                    if await _gets_in(probe) is gets_in:
                        return
                    await asyncio.sleep(pause)
        except TimeoutError:
            raise ConfigError(
                f"{self._acl} is written, and the broker at {probe} has not read it: restart it"
            ) from None


async def _gets_in(probe: Endpoint) -> bool:
    try:
        async with connect(probe, client_id=None, deliver=lambda message: None):
            return True
    except LinkError:
        return False


def _hears(text: str, name: str) -> Hears:
    """Reads an access list as mosquitto does: what is denied is denied, whatever else is there."""
    rights = list_of(text, name)

    def hears(topic: str) -> bool:
        found = {access for access, topic_filter in rights if matches(topic_filter, topic)}
        return "deny" not in found and bool(found & {"read", "readwrite"})

    return hears


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "not text"
        raise ConfigError(f"{path}: cannot be read: {why}; run it as root (sudo)") from None


def _replace(path: Path, text: str) -> None:
    """Put `text` in the place of the file, durably, with the file's owner and rights."""
    new = path.with_name(f".{path.name}.grant")
    try:
        there = path.stat()
        new.unlink(missing_ok=True)
        with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.chown(new, there.st_uid, there.st_gid)
        os.chmod(new, stat.S_IMODE(there.st_mode))
        os.replace(new, path)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written: {error.strerror}; run it as root (sudo)") from None
