"""A class name stands for one thing in its distribution, and a docstring begins with the noun or the verb."""

import ast
import re
from collections import Counter
from collections.abc import Iterable

import pytest

from tests.rigs.distributions import modules

BEGINS_BADLY = re.compile(r'^\s*r?"""(Of|Its|As) ', re.MULTILINE)


def twice(sources: Iterable[str]) -> set[str]:
    """Class names that stand in more than one place."""
    nodes = (node for source in sources for node in ast.walk(ast.parse(source)))
    count = Counter(node.name for node in nodes if isinstance(node, ast.ClassDef))
    return {name for name, places in count.items() if places > 1}


@pytest.mark.parametrize("distribution", ["eyestream", "eyestream_lab", "eyestream_fleet", "eyestream_openxr"])
def test_no_class_name_stands_for_two_things(distribution: str) -> None:
    sources = [path.read_text(encoding="utf-8") for name, path in modules() if name.partition(".")[0] == distribution]
    assert len(sources) > 5
    assert twice(sources) == set()


def test_docstrings_begin_with_a_noun_or_a_verb() -> None:
    found = {name: BEGINS_BADLY.findall(path.read_text(encoding="utf-8")) for name, path in modules()}
    assert {name: begins for name, begins in found.items() if begins} == {}


def test_control_names_and_docstrings_that_are_found() -> None:
    assert twice(["class Rows: ...", "class Rows: ...\nclass Step: ..."]) == {"Rows"}
    assert BEGINS_BADLY.findall('def n():\n    """Of the stream."""\n    r"""Asks it."""') == ["Of"]
