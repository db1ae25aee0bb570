"""How many files outside its own rooms import something of a kind of release: at most three of each, by name."""

import ast
from collections.abc import Iterator

import pytest

from tests.rigs.distributions import modules

ROOMS = {
    "tile": (
        "eyestream.core.tiles",
        "eyestream.core.mechanisms.tile",
        "eyestream.gaze.slots",
        "eyestream_lab.gatekeeper.next_tile",
        "eyestream_lab.hindsight.tile",
        "eyestream_lab.mechanisms.tile",
        "eyestream_lab.calibration.tiles",
        "eyestream_lab.samples.tile_response",
    ),
    "kaleido": ("eyestream_lab.kaleido", "eyestream_lab.kaleido_live", "eyestream_lab.mechanisms.kaleido"),
    "task-words": ("eyestream_lab.words", "eyestream_lab.mechanisms.words"),
}
"""Of each kind: its mechanism, its model, its front end, its part of the laboratory and the study of it alone."""

OUTSIDE = {
    "tile": {"eyestream_lab.corpora.samples"},
    "kaleido": {"eyestream_lab.corpora.samples", "eyestream_lab.samples.baselines"},
    "task-words": {"eyestream_lab.cli.calibrate"},
}
"""Who else imports something of it: systems that release corpora, and who reads labels."""


def imported(tree: ast.AST) -> Iterator[str]:
    """Modules of ours that a file imports, and the names that it takes from them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("eyestream"):
            yield from (str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names))


def knows(tree: ast.AST, rooms: tuple[str, ...]) -> bool:
    return any(f"{name}.".startswith(f"{room}.") for name in imported(tree) for room in rooms)


@pytest.mark.parametrize("kind", ROOMS)
def test_few_files_know_a_kind(kind: str) -> None:
    others = {
        name: path for name, path in modules() if not any(f"{name}.".startswith(f"{own}.") for own in ROOMS[kind])
    }
    assert len(others) > 300
    found = {name for name, path in others.items() if knows(ast.parse(path.read_text("utf-8")), ROOMS[kind])}
    assert found == OUTSIDE[kind]
    assert len(found) <= 3


@pytest.mark.parametrize(
    "line",
    [
        "from eyestream.core import tiles",
        "from eyestream.core.tiles.reader import TileCode",
        "from eyestream.core.mechanisms.tile import Tile",
    ],
)
def test_control_an_import_is_found(line: str) -> None:
    assert knows(ast.parse(line), ROOMS["tile"])
    assert not knows(ast.parse(line), ROOMS["task-words"])
