"""How large the product may be: `python -m tools.verification.gates` measures, prints a table, and fails over a number.

`nox -s lint` runs it. A number below may be raised, in a commit that says why.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

from tests.rigs.loaded import Loaded, loaded_by_default

ROOT = Path(__file__).resolve().parents[2]

SERVICE, ALL = "the running default service", "all distributions"

MOST_MODULES = {SERVICE: 109}
MOST_LINES = {
    SERVICE: 19_450,
    "eyestream": 38_880,
    "eyestream/core": 10_600,
    "lab/eyestream_lab": 31_660,
    "fleet/eyestream_fleet": 3_780,
    "openxr/eyestream_openxr": 600,
    ALL: 74_900,
}
"""The most that each may have; blank lines and docstrings count."""

PACKAGES = frozenset({"numpy", "msgspec", "paho", "typing_extensions"})
"""What the running default service may load of others; msgspec takes `typing_extensions` where it is installed."""


def lines_of(folder: str) -> int:
    """Lines of Python in a folder."""
    return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in (ROOT / folder).rglob("*.py"))


def rows(service: Loaded) -> Iterator[tuple[str, str, int, int]]:
    """Each gate: of what, which unit, how many, and at most how many."""
    yield SERVICE, "modules", len(service.ours), MOST_MODULES[SERVICE]
    yield SERVICE, "packages of others", len(service.packages), len(PACKAGES & service.packages)
    yield SERVICE, "lines", sum(service.ours.values()), MOST_LINES[SERVICE]
    folders = [folder for folder in MOST_LINES if folder not in (SERVICE, ALL)]
    found = {folder: lines_of(folder) for folder in folders}
    yield from ((folder, "lines", found[folder], MOST_LINES[folder]) for folder in folders)
    together = sum(found[folder] for folder in folders if folder != "eyestream/core")
    yield ALL, "lines", together, MOST_LINES[ALL]


def main() -> int:
    """Print the table; gives 1 where something is over its number."""
    service, over = loaded_by_default(), False
    for what, unit, found, most in rows(service):
        over = over or found > most
        print(f"{what:28} {found:7,} {unit:18} of at most {most:7,}{'   OVER' * (found > most)}")
    print(f"packages of others: {', '.join(sorted(service.packages))}")
    if strange := service.packages - PACKAGES:
        print(f"no gate knows {', '.join(sorted(strange))}: load it late, or name it in {Path(__file__).name}")
    return int(over)


if __name__ == "__main__":
    sys.exit(main())
