"""Users and groups of a host, or of a root that is to become one: made by systemd-sysusers, read from its files."""

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from eyestream.errors import ConfigError

_SECONDS = 60


def make_accounts(root: Path, text: str) -> None:
    """Let every user and group of `text`, as in sysusers.d(5), be there; who is there already stays.

    Raises
    ------
    ConfigError
        systemd-sysusers is not installed, or refuses.
    """
    program = shutil.which("systemd-sysusers")
    if program is None:
        raise ConfigError("systemd-sysusers is not installed: apt install systemd, or systemd-standalone-sysusers")
    done = subprocess.run(
        [program, f"--root={root.resolve()}", "-"],
        input=text, capture_output=True, text=True, check=False, timeout=_SECONDS,
    )  # fmt: skip
    if done.returncode:
        said = done.stderr.strip().splitlines() or ["no reason given"]
        raise ConfigError(f"{root}: users and groups cannot be made: {said[-1]}")


def ids(root: Path, file: str) -> Mapping[str, int]:
    """Numbers by name, of ``passwd`` or ``group`` of the host at `root`; empty when there is no such file."""
    try:
        lines = (root / "etc" / file).read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return {}
    fields = [line.split(":") for line in lines if line.count(":") >= 3 and not line.startswith(("#", "+", "-"))]
    return {name: int(number) for name, _, number, *_ in fields if number.isdecimal()}


def become_owner(path: Path) -> None:
    """Where this is root and `path` another user's, go on as that user, with that user's groups, for good.

    A path that is not there, or not another's, changes nothing.
    """
    if not hasattr(os, "geteuid") or os.geteuid() != 0 or not path.exists():
        return
    uid = path.stat().st_uid
    if uid == 0:
        return
    import pwd  # noqa: PLC0415  where there is no such user there is no such module

    try:
        user = pwd.getpwuid(uid)
    except KeyError:
        raise ConfigError(f"{path} belongs to user number {uid}, who is not known here; chown it") from None
    os.initgroups(user.pw_name, user.pw_gid)
    os.setgid(user.pw_gid)
    os.setuid(uid)
