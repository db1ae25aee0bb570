"""How many files outside its own rooms import something of a kind of release: at most three of each, by name."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import eyestream

PACKAGE = Path(eyestream.__file__).parent
ROOMS = {
    "tile": ("privacy.tiles", "privacy.mechanisms.tile", "gaze.slots", "gaze.next_tile", "lab.mechanisms.tile"),
    "kaleido": ("privacy.kaleido", "privacy.mechanisms.kaleido", "gaze.places", "lab.mechanisms.kaleido"),
    "task-words": ("privacy.tasks", "privacy.mechanisms.words", "lab.mechanisms.words", "lab.study.linking"),
}
"""Of each kind: its mechanism, its model, its front end, its part of the laboratory and the study of it alone."""

OUTSIDE = {
    "tile": {"offline/corpora/samples.py"},
    "kaleido": {"offline/corpora/samples.py", "offline/samples/kaleido_published.py"},
    "task-words": {"cli/calibrate.py"},
}
"""Who else imports something of it: systems that release corpora, and who reads labels."""


def imported(tree: ast.AST) -> Iterator[str]:
    """Modules of ours that a file imports, and the names that it takes from them, without `eyestream.`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("eyestream."):
            module = str(node.module).removeprefix("eyestream.")
            yield from (module, *(f"{module}.{alias.name}" for alias in node.names))


def knows(tree: ast.AST, rooms: tuple[str, ...]) -> bool:
    return any(f"{name}.".startswith(f"{room}.") for name in imported(tree) for room in rooms)


@pytest.mark.parametrize("kind", ROOMS)
def test_few_files_know_a_kind(kind: str) -> None:
    own = tuple(room.replace(".", "/") for room in ROOMS[kind])
    files = {path.relative_to(PACKAGE).as_posix(): path for path in PACKAGE.rglob("*.py")}
    others = {name: path for name, path in files.items() if not name.startswith(own)}
    assert len(others) > 300
    found = {name for name, path in others.items() if knows(ast.parse(path.read_text("utf-8")), ROOMS[kind])}
    assert found == OUTSIDE[kind]
    assert len(found) <= 3


@pytest.mark.parametrize(
    "line",
    [
        "from eyestream.core import tiles",
        "from eyestream.core.tiles.reader import Code",
        "from eyestream.core.mechanisms.tile import Tile",
    ],
)
def test_control_an_import_is_found(line: str) -> None:
    assert knows(ast.parse(line), ROOMS["tile"])
    assert not knows(ast.parse(line), ROOMS["task-words"])
