"""The pages on a row's life and on crashes name functions and tests that exist."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PLACES = re.findall(
    r"`([\w/]+\.py)`: ((?:`[\w.]+`(?:, )?)+)", " ".join((ROOT / "docs/row.md").read_text(encoding="utf-8").split())
)
TESTS = set(re.findall(r"`(test_\w+)`", (ROOT / "docs/crash.md").read_text(encoding="utf-8")))


def names_in(body: list[ast.stmt]) -> set[str]:
    """The dotted names of functions, classes and methods."""
    names = set()
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        if isinstance(node, ast.ClassDef):
            names |= {f"{node.name}.{name}" for name in names_in(node.body)}
    return names


@pytest.mark.parametrize(("path", "named"), PLACES)
def test_each_function_of_a_row_s_life_exists(path: str, named: str) -> None:
    there = names_in(ast.parse((ROOT / path).read_text(encoding="utf-8")).body)
    assert set(re.findall(r"`([\w.]+)`", named)) <= there


def test_each_test_of_a_crash_exists() -> None:
    assert len(PLACES) > 20
    assert len(TESTS) > 8
    there = {name for path in (ROOT / "tests").rglob("*.py") for name in names_in(ast.parse(path.read_text()).body)}
    assert TESTS - there == set()
