"""The layer's library and manifest, for this user: compiled here, written here, and taken away again."""

import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from eyestream.errors import ConfigError

LAYER_NAME = "XR_APILAYER_EYESTREAM_private_gaze"
DISABLE = "EYESTREAM_XR_DISABLE"
"""A loader demands that a variable switches an implicit layer off."""

SOURCES = Path(__file__).with_name("layer")
_LIBRARY = "libeyestream_openxr.so"
_SYSTEM = ("/etc/xdg", "/etc", "/usr/local/share", "/usr/share")


def _data() -> Path:
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local/share")


def _own() -> tuple[Path, Path]:
    """The manifest and the library of this user."""
    manifest = _data() / "openxr/1/api_layers/implicit.d/eyestream.json"
    return manifest, _data() / "eyestream-openxr" / _LIBRARY


def install() -> tuple[Path, Path]:
    """Compile the layer and make it an implicit one of this user; gives the manifest and the library.

    Raises
    ------
    ConfigError
        A compiler, make or awk is missing, or the folder cannot be written.
    """
    missing = [name for name in ("make", "cc", "awk") if shutil.which(name) is None]
    if missing:
        raise ConfigError(f"the layer is compiled here: install {' and '.join(missing)} (apt install gcc make)")
    manifest, library = _own()
    words = ["make", "-s", "-C", str(SOURCES), f"OUT={library.parent}", "HEADERS="]
    try:
        library.parent.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise ConfigError(f"the layer does not compile: {done.stderr.strip()}")
        manifest.parent.mkdir(parents=True, exist_ok=True)
        manifest.write_text(json.dumps(_said(library), indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{error.filename}: {error.strerror}") from None
    return manifest, library


def _said(library: Path) -> dict[str, object]:
    return {
        "file_format_version": "1.0.0",
        "api_layer": {
            "name": LAYER_NAME,
            "library_path": str(library),
            "api_version": "1.0",
            "implementation_version": "1",
            "description": "eyestream: programs see released gaze, or none",
            "disable_environment": DISABLE,
        },
    }


def remove() -> list[Path]:
    """Take manifest and library away; gives what was there."""
    manifest, library = _own()
    there = [path for path in (manifest, library) if path.exists()]
    manifest.unlink(missing_ok=True)
    shutil.rmtree(library.parent, ignore_errors=True)
    return there


@dataclass(frozen=True)
class Manifest:
    """A layer that a loader will find.

    Attributes
    ----------
    path : of the manifest.
    name : of the layer; None: the file is no manifest.
    implicit : it is loaded without being asked for.
    """

    path: Path
    name: str | None
    implicit: bool

    @property
    def position(self) -> str:
        """Where it stands against ours, as far as that is known beforehand."""
        if self.name == LAYER_NAME:
            return "this layer"
        return "implicit: above or below, by its file's name and folder" if self.implicit else "explicit: below"


def manifests() -> list[Manifest]:
    """The layers that a loader finds for this user, in the order of folders and names."""
    home = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    more = [*os.environ.get("XDG_CONFIG_DIRS", "").split(":"), *os.environ.get("XDG_DATA_DIRS", "").split(":")]
    folders = dict.fromkeys([home, str(_data()), *filter(None, more), *_SYSTEM])
    found = []
    for implicit in (True, False):
        for folder in folders:
            place = Path(folder, "openxr/1/api_layers", "implicit.d" if implicit else "explicit.d")
            files = sorted(place.glob("*.json")) if place.is_dir() else []
            found += [Manifest(path, _name(path), implicit) for path in files]
    return found


def _name(path: Path) -> str | None:
    try:
        said = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    layer = said.get("api_layer") if isinstance(said, dict) else None
    name = layer.get("name") if isinstance(layer, dict) else None
    return name if isinstance(name, str) else None
