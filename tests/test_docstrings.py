"""Every example in a docstring is run."""

import ast
import doctest
import importlib

import pytest

from tests.rigs.distributions import modules

MODULES = [name for name, path in modules() if ">>> " in path.read_text(encoding="utf-8")]


def test_there_are_examples() -> None:
    assert {"eyestream.sdk.publisher", "eyestream_lab.audit.estimate"} <= set(MODULES)
    assert sum(examples_in(path.read_text(encoding="utf-8")) for _, path in modules()) >= 60


def examples_in(source: str) -> int:
    """Docstrings of a module, its classes and its functions that have an example."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    nodes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, documented)]
    return sum(">>> " in (ast.get_docstring(node) or "") for node in nodes)


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module_do_what_they_say(name: str) -> None:
    failed, attempted = doctest.testmod(importlib.import_module(name))
    assert attempted > 0
    assert failed == 0
