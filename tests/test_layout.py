"""Who may import whom outside the package, and that nobody bends the path to do otherwise."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("eyestream", "tests", "tools", "benchmarks")
MOST_OF_RUN = 125
"""Files of ours that `eyestream run` may import before it has read its configuration."""
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
    product = room == "eyestream" and not path.is_relative_to("lab/eyestream_lab/testing")
    shared = () if room == "eyestream" else ("tests.rigs",)
    wrong = []
    for name in names:
        first = name.partition(".")[0]
        wrong += [name] * (
            (first == "tests" and not any(f"{name}.".startswith(f"{folder}.") for folder in (own, *shared)))
            or (first in ("tools", "benchmarks") and first != room)
            or (product and name.startswith("eyestream_lab.testing"))
        )
    return wrong


@pytest.mark.parametrize("folder", FOLDERS)
def test_imports_point_where_they_may(folder: str) -> None:
    found = {str(path): strange(path, imported(path)) for path in FILES if path.parts[0] == folder}
    assert len(found) > 10
    assert {path: names for path, names in found.items() if names} == {}


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
        ("eyestream/cli/a.py", "eyestream_lab.testing.noise"),
    ],
)
def test_control_an_import_of_the_wrong_kind(path: str, name: str) -> None:
    assert strange(Path(path), iter([name])) == [name]


def test_nobody_edits_the_path() -> None:
    word = "sys." + "path"
    assert [str(path) for path in FILES if word in (ROOT / path).read_text(encoding="utf-8")] == []


def test_every_folder_says_what_it_is_for() -> None:
    folders = {path.parent for path in FILES if path.parts[0] in {"eyestream", "tests", "benchmarks"}}
    silent = [
        str(folder)
        for folder in folders
        if not ast.get_docstring(ast.parse((ROOT / folder / "__init__.py").read_text()))
    ]
    assert silent == []
    assert all(
        (folder / "README.md").read_text().splitlines()[0] for folder in (ROOT / "tools").iterdir() if folder.is_dir()
    )


def files_of(modules: str) -> int:
    """How many files of ours a process imports with `modules`."""
    code = f"import sys, {modules}; print(sum(f'{{name}}.'.startswith('eyestream.') for name in sys.modules))"
    return int(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)


def test_run_imports_few_files() -> None:
    assert 50 < files_of("eyestream.cli.run") <= MOST_OF_RUN


@pytest.mark.parametrize("more", ["eyestream.claims.guarantee", "eyestream.core.mechanisms.klt"])
def test_control_run_with_what_it_imports_when_it_is_asked_for(more: str) -> None:
    """Each of them, imported at the top of a file of `run`, breaks the limit."""
    assert files_of(f"eyestream.cli.run, {more}") > MOST_OF_RUN
