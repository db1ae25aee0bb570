"""The quick form of tools/verification/fuzz.py: what was kept, and so many mutants of it with a fixed seed."""

import contextlib
from collections.abc import Sequence
from itertools import islice
from typing import Any

import pytest

from eyestream.core.reservation import Granted, Request
from eyestream.rim.ledger.ledger import Ledger
from tests.rigs.hostile.corpus import payload, read
from tests.rigs.hostile.lives import TARGETS, live, read_payload
from tests.rigs.hostile.mutation import kept, mutants, seeds
from tests.rigs.seams import original, replaced

MUTANTS = {"payload": 15_000, "life": 150, "release": 4_000, "packets": 8_000, "configuration": 500, "ledger": 500}


@pytest.mark.parametrize("target", TARGETS)
def test_what_was_kept_still_holds(target: str) -> None:
    inputs = kept(target)
    assert len(inputs) > 5
    for data in inputs:
        TARGETS[target](data)


def test_finds_are_cases_of_the_corpus() -> None:
    finds = read("found")
    assert len(finds) > 0
    for case in finds:
        read_payload(payload(case))


@pytest.mark.parametrize("target", TARGETS)
def test_mutants_of_what_was_kept(target: str) -> None:
    done = 0
    for data in islice(mutants(seeds(target), seed=20_261_120), MUTANTS[target]):
        try:
            TARGETS[target](data)
        except Exception as error:
            error.add_note(f"input: {data.hex()}")
            raise
        done += 1
    assert done == MUTANTS[target]


def found(target: str) -> bool:
    """Whether the quick form notices that something is wrong."""
    try:
        for data in (*kept(target), *islice(mutants(seeds(target), seed=1), MUTANTS[target])):
            TARGETS[target](data)
    except Exception:
        return True
    return False


def grants_unwritten(self: Ledger, requests: Sequence[Request], day: int) -> list[Granted]:
    return [Granted(request) for request in requests]


FEED, COUNT_LATE = original("Frames.feed"), original("late rows")
CONTROLS: dict[str, tuple[str, dict[str, Any]]] = {
    "a decoder that does not ask for the version": ("payload", {"version of a payload": (b"",)}),
    "a device that forgets which sessions are over": ("life", {"session is over": lambda self, session: False}),
    "a client that forgets where a piece ended": (
        "packets",
        {"Frames.feed": lambda self, data: FEED(self, data[:100])},
    ),
    "a device that forgets what fell due when a session stops": ("life", {"SessionChunker.last_row": -1}),
    "a session that counts one row too few": (
        "life",
        {"late rows": lambda self, row, until, time: COUNT_LATE(self, row + 1, until, time)},
    ),
    "a ledger that forgets rows": (
        "life",
        {"Account.mark": lambda account, stream: None, "Account.obstacle": lambda *arguments: None},
    ),
    "a ledger that grants without writing": ("life", {"Ledger.reserve": grants_unwritten}),
}


@pytest.mark.parametrize("what", CONTROLS)
def test_control(what: str) -> None:
    target, faults = CONTROLS[what]
    with contextlib.ExitStack() as planted:
        for seam, value in faults.items():
            planted.enter_context(replaced(seam, value))
        assert found(target)
    assert live(b"") >= 2


def test_an_empty_life_is_one() -> None:
    assert live(b"") >= 2  # whatever was ordered, at its end it releases chunks
