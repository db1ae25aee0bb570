"""Where the files lie that come with the package, and how a person names one of them or one of their own."""

import re
import secrets
import tomllib
from collections.abc import Sequence
from pathlib import Path

from eyestream.errors import ConfigError, meant

__all__ = ["DATA", "default_epsilon", "fresh_configuration", "path_of", "without_baseline"]

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


def default_epsilon() -> float:
    """Epsilon of a chunk in the commented configuration."""
    tables = tomllib.loads((DATA / "sidecar.toml").read_text(encoding="utf-8"))
    return float(tables["stream"][0]["privacy"]["epsilon"])


def fresh_configuration() -> str:
    """The commented configuration, with a random pseudonym for its device and a name of its own for its sidecar."""
    text = (DATA / "sidecar.toml").read_text(encoding="utf-8")
    for pattern, new in (
        (r'^id = "hmd-[0-9a-f]+"$', f'id = "hmd-{secrets.token_hex(5)}"'),
        (r'^name = "sidecar"$', f'name = "sidecar-{secrets.token_hex(4)}"'),
    ):
        text, count = re.subn(pattern, new, text, count=1, flags=re.MULTILINE)
        assert count == 1, pattern
    return text


def without_baseline(text: str) -> str:
    """The fresh configuration without what it says of a baseline, for a calibration that takes none."""
    for pattern in (r"^# This one withholds .*\n(# .*\n)+", r", as this one$"):
        text = re.sub(pattern, "", text, count=1, flags=re.MULTILINE)
    return text
