"""Questions with ids and limits; what is refused, by name; what stands."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eyestream_lab.gatekeeper.answers import Slot
from eyestream_lab.gatekeeper.desk import LARGEST, MOST_A_SECOND, MOST_STANDING, Desk

pack, unpack = msgspec.msgpack.encode, msgspec.msgpack.decode
DWELL = {"ask": "dwell", "within": [-30.0, 0.0, -20.0, 20.0], "last_s": 60.0}


def slot(at: int, x: float = -5.0) -> Slot:
    return Slot(at, at + 1.0, x, 0.0, 0.1)


def asked(desk: Desk, now: float = 0.0, **told: Any) -> Any:
    reply = desk.ask(pack({"id": "q", "question": DWELL} | told), now)
    return None if reply is None else unpack(reply)


def test_an_answer_has_the_id_and_the_end_of_what_it_knows() -> None:
    desk = Desk()
    assert asked(desk) == {"id": "q", "answer": 0.0}
    assert list(desk.take(1, slot(0))) == []
    assert asked(desk, id="other") == {"id": "other", "end_s": 1.0, "answer": 1.0}
    list(desk.take(2, slot(7, x=5.0)))
    assert asked(desk) == {"id": "q", "end_s": 8.0, "answer": 0.0}, "another session begins from nothing"


def test_a_question_that_stands_is_answered_with_every_slot_until_it_is_stopped() -> None:
    desk = Desk()
    assert asked(desk, each=True)["answer"] == 0.0
    for at in range(3):
        assert [unpack(reply) for reply in desk.take(1, slot(at))] == [
            {"id": "q", "end_s": at + 1.0, "answer": at + 1.0}
        ]
    assert asked(desk, stop=True) == {"id": "q", "end_s": 3.0, "answer": None}
    assert list(desk.take(1, slot(3))) == []
    assert asked(desk, stop=True) == {"id": "q", "refused": "unknown"}


def test_too_many_that_stand_are_refused_and_the_same_id_stands_once() -> None:
    desk = Desk()
    for number in range(MOST_STANDING):
        assert "answer" in asked(desk, now=number, id=f"q{number}", each=True)
    assert asked(desk, now=99, id="more", each=True) == {"id": "more", "refused": "standing"}
    assert "answer" in asked(desk, now=100, id="q0", each=True)
    assert len(list(desk.take(1, slot(0)))) == MOST_STANDING


def test_a_flood_is_refused_once_a_second_and_counted() -> None:
    desk = Desk()
    replies = [asked(desk, now=5.0 + i / 1000) for i in range(MOST_A_SECOND + 20)]
    assert all("answer" in reply for reply in replies[:MOST_A_SECOND])
    assert replies[MOST_A_SECOND] == {"id": "", "refused": "rate"}
    assert replies[MOST_A_SECOND + 1 :] == [None] * 19
    assert desk.unheard == 20
    assert "answer" in asked(desk, now=6.0)


@pytest.mark.parametrize(
    ("payload", "said"),
    [
        (b"\x80" * (LARGEST + 1), {"id": "", "refused": "oversize"}),
        (b"\xc1", {"id": "", "refused": "not_msgpack"}),
        (b"", {"id": "", "refused": "not_msgpack"}),
        (pack([]), {"id": "", "refused": "type"}),
        (pack({"question": DWELL}), {"id": "", "refused": "type"}),
        (pack({"id": "q", "question": DWELL, "raw": True}), {"id": "", "refused": "type"}),
        (pack({"id": "", "question": DWELL}), {"id": "", "refused": "id"}),
        (pack({"id": "x" * 65, "question": DWELL}), {"id": "", "refused": "id"}),
        (pack({"id": "q"}), {"id": "q", "refused": "not_msgpack"}),
        (pack({"id": "q", "question": {"ask": "raw gaze"}}), {"id": "q", "refused": "type"}),
        (pack({"id": "q", "question": DWELL | {"within": [1, 0, 0, 1]}}), {"id": "q", "refused": "type"}),
    ],
)
def test_what_cannot_be_answered_is_refused_by_name(payload: bytes, said: dict[str, str]) -> None:
    reply = Desk().ask(payload, 0.0)
    assert reply is not None
    assert unpack(reply) == said


@given(st.binary(max_size=LARGEST + 10))
def test_any_bytes_get_one_answer(payload: bytes) -> None:
    reply = Desk().ask(payload, 0.0)
    assert reply is not None
    assert {"answer", "refused"} & set(unpack(reply))


@given(st.lists(st.sampled_from([-5.0, 5.0, 12.0]), max_size=12), st.lists(st.floats(-30, 30), max_size=12))
def test_how_many_answers_there_are_does_not_depend_on_the_gaze(one: list[float], other: list[float]) -> None:
    length = min(len(one), len(other))
    counts = []
    for places in (one[:length], other[:length]):
        desk = Desk()
        asked(desk, each=True)
        counts.append([len(list(desk.take(1, slot(at, x)))) for at, x in enumerate(places)])
    assert counts[0] == counts[1]
