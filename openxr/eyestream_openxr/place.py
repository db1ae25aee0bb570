"""The folder that the sidecar, the bridge and the layer meet in."""

import os
import stat
from pathlib import Path

from eyestream.errors import ConfigError

SYSTEM = Path("/run/eyestream-openxr")
"""For a sidecar and a bridge of users of their own. The layer looks here first."""

SOCKET, PAGE = "gaze.sock", "page"


def usual_folder() -> Path:
    """Where the layer looks: the system's folder where there is one, and this user's otherwise."""
    return SYSTEM if SYSTEM.is_dir() else Path(f"/run/user/{os.geteuid()}/eyestream-openxr")


def open_folder(folder: Path, *, mode: int = 0o700) -> None:
    """Make the folder where there is none.

    Raises
    ------
    ConfigError
        It cannot be made, is not ours, or others may write to it: the layer would not use it.
    """
    try:
        folder.mkdir(mode=mode, exist_ok=True)
        found = folder.lstat()
    except OSError as error:
        raise ConfigError(f"{folder}: cannot be made: {error.strerror}") from None
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o022:
        raise ConfigError(f"{folder}: expected a folder of user {os.geteuid()} that nobody else may write to")
