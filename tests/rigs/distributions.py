"""The code of the four distributions, wherever they are installed."""

from collections.abc import Iterator
from pathlib import Path

import eyestream
import eyestream_fleet
import eyestream_lab
import eyestream_openxr

__all__ = ["modules"]


def modules() -> Iterator[tuple[str, Path]]:
    """Dotted name and file of every module."""
    for package in (eyestream, eyestream_lab, eyestream_fleet, eyestream_openxr):
        folder = Path(str(package.__file__)).parent
        for path in sorted(folder.rglob("*.py")):
            parts = path.relative_to(folder.parent).with_suffix("").parts
            yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path
