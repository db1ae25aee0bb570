"""Questions from anybody, answered from released gaze alone."""

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eyestream.errors import PayloadError
from eyestream.wire.envelope import REASONS
from eyestream_lab.gatekeeper.answers import MOST_ANSWERS, MOST_SLOTS, Expected, Gatekeeper, Slot, Tile
from eyestream_lab.gatekeeper.questions import (
    DwellTime,
    FixationsWithin,
    NextTile,
    Question,
    Rectangle,
    Saccades,
    question,
)

LEFT = Rectangle(-30.0, 0.0, -20.0, 20.0)
FIELD = Rectangle(-30.0, 30.0, -20.0, 20.0)


def keeper(*gaze: tuple[float, float] | None) -> Gatekeeper:
    """Slots of a second with gaze at these places; None: lost."""
    own = Gatekeeper()
    for i, place in enumerate(gaze):
        x, y = place or (0.0, 0.0)
        own.take(Slot(i, i + 1.0, x, y, 0.1 if place else 0.9))
    return own


def test_looks_are_runs_that_stay_near_and_end_with_a_loss() -> None:
    own = keeper((-10, 0), (-12, 1), (10, 0), None, (10, 0), (10, 2))
    assert [(look.start_s, look.end_s) for look in own.looks()] == [(0, 2), (2, 3), (4, 6)]
    assert own.looks()[0][2:] == (-11.0, 0.5)


def test_what_is_asked_is_answered() -> None:
    own = keeper((-10, 0), (10, 0), (-10, 0), (-10, 1), None, (10, 0))
    assert [look.start_s for look in own.answer(FixationsWithin(LEFT, 60.0))] == [0, 2]
    assert [look.start_s for look in own.answer(FixationsWithin(LEFT, 3.0))] == [2]
    assert own.answer(DwellTime(LEFT, 60.0)) == 3.0
    assert own.answer(DwellTime(LEFT, 2.5)) == 0.5
    assert own.answer(DwellTime(LEFT, -5.0)) == 0.0
    assert own.answer(Saccades(LEFT, 60.0)) == 1
    assert own.answer(NextTile(FIELD, 4, 2)) is None
    assert Gatekeeper().answer(DwellTime(FIELD, 1.0)) == 0.0


def test_the_next_tile_is_where_most_is_expected() -> None:
    x, y = np.arange(-29.0, 30.0, 2.0), np.arange(-19.0, 20.0, 2.0)
    weights = np.ones((len(y), len(x)))
    weights[-1, 0] = 600.0
    expected = Expected(weights, x, y)
    own = Gatekeeper()
    assert own.answer(NextTile(FIELD, 3, 2), expected) == Tile(0, 0, pytest.approx(699 / 1199))
    assert own.answer(NextTile(Rectangle(40.0, 50.0, 0.0, 1.0), 3, 2), expected) is None


def test_answers_and_memory_have_limits() -> None:
    own = Gatekeeper()
    for i in range(MOST_SLOTS + 500):
        own.take(Slot(i, i + 1.0, -10.0 if i % 2 else -20.0, 0.0, 0.0))
    assert len(own.answer(FixationsWithin(FIELD, 1e308))) == MOST_ANSWERS
    assert own.answer(DwellTime(FIELD, 1e308)) == MOST_SLOTS


@pytest.mark.parametrize(
    "asked", [FixationsWithin(LEFT, 10.0), DwellTime(FIELD, 1.0), Saccades(LEFT, 2.0), NextTile(FIELD, 8, 4)]
)
def test_questions_are_read_as_they_were_written(asked: Question) -> None:
    assert question(msgspec.msgpack.encode(asked)) == asked


@pytest.mark.parametrize("bad", [
    {"ask": "raw gaze"}, {"ask": "dwell"}, {"ask": "dwell", "within": [0, 1, 0], "last_s": 1.0},
    {"ask": "dwell", "within": [0, 1, 0, 1, 2], "last_s": 1.0}, {"ask": "dwell", "within": [1, 0, 0, 1], "last_s": 1.0},
    {"ask": "dwell", "within": [0, 1, 0, 1e308], "last_s": 1.0},
    {"ask": "dwell", "within": [float("nan")] * 4, "last_s": 1.0},
    {"ask": "next tile", "within": [0, 1, 0, 1], "across": 10**9, "upright": 1}, {"within": [0, 1, 0, 1]}, [], 7, None,
    {"ask": "dwell", "within": [0, 1, 0, 1], "last_s": 1.0, "raw": True},
])  # fmt: skip
def test_questions_that_are_none_are_refused(bad: object) -> None:
    with pytest.raises(PayloadError, match="type"):
        question(msgspec.msgpack.encode(bad))


@given(st.binary(max_size=600))
def test_any_bytes_are_a_question_or_refused(payload: bytes) -> None:
    try:
        asked = question(payload)
    except PayloadError as error:
        assert error.reason in REASONS  # noqa: PT017 - both outcomes are fine
    else:
        keeper((1, 1)).answer(asked)


def test_a_huge_question_is_not_even_decoded() -> None:
    with pytest.raises(PayloadError, match="oversize"):
        question(b"\x91" * 100_000)


def test_answers_follow_from_released_gaze_alone() -> None:
    """The room of released gaze imports nothing that has raw gaze: neither samples nor detector nor front end."""
    import ast
    from pathlib import Path

    from eyestream_lab.gatekeeper import answers

    tree = ast.parse(Path(answers.__file__).read_text(encoding="utf-8"))
    names = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name for name in names if name and name.startswith("eyestream")} == {"eyestream_lab.gatekeeper.questions"}
