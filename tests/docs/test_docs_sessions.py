"""Sessions of nox: who names one names one that is there, and both continuous integrations run the same."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NAMED = re.compile(r"\bnox\"? -s ((?:[a-z]+ ?)+)")
SESSIONS = {
    node.name
    for node in ast.parse((ROOT / "noxfile.py").read_text()).body
    if isinstance(node, ast.FunctionDef) and any("nox.session" in ast.unparse(one) for one in node.decorator_list)
}


def named(path: str) -> set[str]:
    return {name for found in NAMED.findall((ROOT / path).read_text()) for name in found.split()}


@pytest.mark.parametrize(
    "page", ["CONTRIBUTING.md", "docs/releases.md", "docs/decisions/0012-locked-versions.md", ".ci/run"]
)
def test_sessions_that_are_named_are_there(page: str) -> None:
    assert named(page)
    assert named(page) <= SESSIONS


def test_both_integrations_run_the_same_sessions_and_leave_no_test_out() -> None:
    workflow = (ROOT / ".github/workflows/ci.yml").read_text()
    [matrix] = re.findall(r"^ +session: \[(.*)\]$", workflow, re.M)
    branches = {name for words in re.findall(r"fromJSON\('\[(.*)\]'\)", workflow) for name in re.findall(r"\w+", words)}
    assert set(matrix.split(", ")) == branches == named(".ci/run") == SESSIONS - {"tests", "docs", "lock", "site"}
