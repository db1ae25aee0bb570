"""What was written where, by which version: kept beside a deployment, so that it can be renewed and looked at."""

import hashlib
from pathlib import Path

import msgspec

from eyestream.errors import ConfigError
from eyestream.rim.ops.deployment.layout import MANIFEST, Place, places

__all__ = ["Manifest", "at", "digest", "read_manifest"]


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Version, where the program is, the private broker's name and port for others, hashes of what was written."""

    version: str
    program: str
    host: str | None
    port: int | None
    written: dict[str, str]

    @property
    def places(self) -> tuple[Place, ...]:
        """Everything that this version has in such a deployment."""
        return places(tls=self.host is not None)


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
