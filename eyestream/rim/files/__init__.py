"""Recordings and calibrations, in and out; where the files lie that come with the package, and how one names them."""

from collections.abc import Sequence
from pathlib import Path

from eyestream.errors import ConfigError, meant

DATA = Path(__file__).resolve().parents[2] / "data"
"""Found without `importlib.resources`, which costs a sidecar memory that it never uses: the package is a folder."""


def path_of(what: str, name: str, folder: Path, shipped: Sequence[str]) -> Path:
    """The file ``folder/name.toml`` of a shipped `name`, or `name` itself when that has a slash or ends with .toml.

    Raises
    ------
    ConfigError
        when it is neither; `what` says what a name was wanted of.
    """
    if name in shipped:
        return folder / f"{name}.toml"
    if "/" in name or name.endswith(".toml"):
        return Path(name)
    known = f"not one of {', '.join(shipped)}, and not a path (./{name}.toml){meant(name, shipped)}"
    raise ConfigError(f"{what} {name!r}: {known}")
