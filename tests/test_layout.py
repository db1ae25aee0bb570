"""Who may import whom outside the package, and that nobody bends the path to do otherwise."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("eyestream", "lab", "fleet", "tests", "tools", "benchmarks")
DISTRIBUTIONS = ("eyestream", "lab", "fleet", "openxr")
FILES = sorted(path.relative_to(ROOT) for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))


def imported(path: Path) -> Iterator[str]:
    """Dotted names of the modules that a file imports."""
    for node in ast.walk(ast.parse((ROOT / path).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def strange(path: Path, names: Iterator[str]) -> list[str]:
    """Imports that `path` may not have."""
    room, own = path.parts[0], ".".join(path.parent.parts)
    shared = () if room in DISTRIBUTIONS else ("tests.rigs",)
    wrong = []
    for name in names:
        first = name.partition(".")[0]
        wrong += [name] * (
            (first == "tests" and not any(f"{name}.".startswith(f"{folder}.") for folder in (own, *shared)))
            or (first in ("tools", "benchmarks") and first != room)
        )
    return wrong


@pytest.mark.parametrize("folder", FOLDERS)
def test_imports_point_where_they_may(folder: str) -> None:
    found = {str(path): strange(path, imported(path)) for path in FILES if path.parts[0] == folder}
    assert len(found) > 10
    assert {path: names for path, names in found.items() if names} == {}


def test_a_long_test_says_so_in_its_own_file() -> None:
    """`nox -s long` reads no others."""
    word = "mark." + "long"
    said = {path for path in FILES if path.parts[0] == "tests" and word in (ROOT / path).read_text(encoding="utf-8")}
    assert len(said) > 50
    assert {path for path in said if not path.name.startswith("test_")} == set()


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("tests/product/core/test_a.py", "tests.product.service.helper"),
        ("tests/rigs/a.py", "tests.product.wire"),
        ("tests/test_a.py", "tools.verification.audit"),
        ("tools/verification/a.py", "tests.product.wire"),
        ("tools/make/a.py", "tests"),
        ("benchmarks/a.py", "tools"),
        ("eyestream/rim/a.py", "tests.rigs.rig"),
        ("lab/eyestream_lab/a.py", "tests.rigs.rig"),
    ],
)
def test_control_an_import_of_the_wrong_kind(path: str, name: str) -> None:
    assert strange(Path(path), iter([name])) == [name]


def test_nobody_edits_the_path() -> None:
    word = "sys." + "path"
    assert [str(path) for path in FILES if word in (ROOT / path).read_text(encoding="utf-8")] == []


def test_every_folder_says_what_it_is_for() -> None:
    folders = {
        path.parent for path in FILES if path.suffix and path.parts[0] in {*DISTRIBUTIONS, "tests", "benchmarks"}
    }
    silent = [
        str(folder)
        for folder in folders
        if not ast.get_docstring(ast.parse((ROOT / folder / "__init__.py").read_text()))
    ]
    assert silent == []
    assert all(
        (folder / "README.md").read_text().splitlines()[0] for folder in (ROOT / "tools").iterdir() if folder.is_dir()
    )


def over(rows: str) -> list[str]:
    """The lines of the gates' table that say so, where a running service has loaded `rows`."""
    code = (
        "from tests.rigs.loaded import Loaded; from tools.verification import gates; "
        f"gates.loaded_by_default = lambda: Loaded({rows}); print(gates.main())"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    *table, verdict = run.stdout.splitlines()
    wrong = [line for line in table if line.endswith("OVER")]
    assert verdict == str(int(bool(wrong)))
    return wrong


@pytest.mark.parametrize(
    ("rows", "gates"),
    [
        ("{'eyestream': 1}, frozenset({'numpy'})", 0),
        ("{'eyestream': 1}, frozenset({'numpy', 'pandas'})", 1),
        ("{'eyestream': 10**6}, frozenset()", 1),
        ("{f'eyestream.{i}': 1 for i in range(1000)}, frozenset()", 1),
    ],
)
def test_a_service_that_loads_more_fails_its_gate(rows: str, gates: int) -> None:
    assert len(over(rows)) == gates
