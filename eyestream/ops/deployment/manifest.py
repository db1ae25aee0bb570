"""What was written where, by which version: kept beside a deployment, so that it can be renewed and looked at."""

import hashlib
from collections.abc import Mapping
from pathlib import Path

import msgspec

from eyestream.errors import ConfigError
from eyestream.ops.deployment.layout import MANIFEST, Item, places

__all__ = ["Manifest", "Outside", "at", "digest", "manifest_of", "read_manifest"]

Outside = Mapping[str, tuple[str, int]]
"""By side, ``raw`` or ``private``: under which name, or address, and port other machines reach the broker."""


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
    """Of a deployment that is written now; `files` are those of this version, by path."""
    (host, port), (tracker_host, tracker_port) = (outside.get(side, (None, None)) for side in ("private", "raw"))
    written = {path: digest(data) for path, data in files.items()}
    return Manifest(version, program, host, port, written, tracker_host, tracker_port)


def at(root: Path, path: str) -> Path:
    """Where an absolute path of the host lies under `root`."""
    return root / path.removeprefix("/")


def digest(data: bytes) -> str:
    """Of a file's bytes."""
    return hashlib.sha256(data).hexdigest()


def read_manifest(root: Path) -> Manifest | None:
    """Of the deployment at `root`; None where there is none. Raises ConfigError for one that cannot be read."""
    path = at(root, MANIFEST)
    try:
        return msgspec.json.decode(path.read_bytes(), type=Manifest)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    except msgspec.MsgspecError:
        raise ConfigError(f"{path}: damaged, or of another version of eyestream") from None
