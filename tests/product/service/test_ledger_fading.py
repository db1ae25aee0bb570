"""What a ledger remembers of a lifetime that fades: its level after a restart, and what damage can have cost."""

from fractions import Fraction
from pathlib import Path

import pytest

from eyestream.core.charge import Ceilings, Charge, charges_of
from eyestream.core.kinds import Loss
from eyestream.core.reservation import Granted, Request
from eyestream.rim.ledger.ledger import Ledger
from eyestream.rim.ledger.reading import create_ledger
from eyestream.streams import StreamKey

KEY, LEVELS = StreamKey("d", "s"), 4
CEILINGS = Ceilings.of(lifetime=16.0, levels=LEVELS)
RECORD = 64


def ask(index: int) -> Request:
    charge, *later = charges_of(Loss("chunk", Fraction(2.0)), LEVELS)
    return Request(KEY, 1, index, index, 1, charge, later=tuple(later))


def grants(path: Path, first: int, count: int) -> list[int]:
    """The levels of some chunks, each reserved by a process of its own."""
    found = []
    for index in range(first, first + count):
        with Ledger(path, ceilings=CEILINGS) as ledger:
            [answer] = ledger.reserve([ask(index)], 100)
            assert isinstance(answer, Granted)
            found.append(answer.level)
    return found


def epsilon(path: Path) -> int:
    with Ledger(path, ceilings=CEILINGS) as ledger:
        odometer = ledger.odometer("d")
        assert odometer is not None
        return odometer.epsilon


@pytest.fixture
def path(tmp_path: Path) -> Path:
    create_ledger(tmp_path / "ledger", created=0)
    return tmp_path / "ledger"


def test_a_restart_after_every_chunk_goes_on_where_it_was(path: Path) -> None:
    """Levels 8/2, 4/1, 2/0.5 and 2/0.25 chunks long; behind the last one nothing."""
    assert grants(path, 0, 20) == [0] * 4 + [1] * 4 + [2] * 4 + [3] * 8
    assert epsilon(path) == 16 * 10**12
    with Ledger(path, ceilings=CEILINGS) as ledger:
        [answer] = ledger.reserve([ask(20)], 100)
        assert not isinstance(answer, Granted)
        assert answer.obstacle == "lifetime"


def test_it_is_the_same_in_one_process_and_one_call(path: Path) -> None:
    with Ledger(path, ceilings=CEILINGS) as ledger:
        answers = ledger.reserve([ask(i) for i in range(9)], 100)
    assert [answer.level for answer in answers if isinstance(answer, Granted)] == [0] * 4 + [1] * 4 + [2]


@pytest.mark.parametrize(
    ("chunks", "damaged", "counted"),
    [(4, 1, 8.0), (5, 1, 9.0), (7, 1, 11.0), (7, 4, 8.0 + 4 * 2.0), (9, 1, 12.5), (9, 2, 12.0 + 2 * 1.0)],
)
def test_a_damaged_record_counts_at_the_charge_that_was_announced_for_it(
    path: Path, chunks: int, damaged: int, counted: float
) -> None:
    """Where an announcement is damaged too, at the higher charge before it: never less than was spent."""
    with Ledger(path, ceilings=CEILINGS) as ledger:
        answers = [ledger.reserve([ask(index)], 100)[0] for index in range(chunks)]
    spent = sum(answer.spent.epsilon for answer in answers if isinstance(answer, Granted) and answer.spent)
    data = bytearray(path.read_bytes())
    for record in range(1, damaged + 1):
        data[len(data) - RECORD * record + 20] ^= 1
    path.write_bytes(data)
    assert epsilon(path) == Charge.of(counted).epsilon >= spent


def test_an_announcement_that_keeps_the_highest_charge_would_count_too_much(path: Path) -> None:
    """One damaged record on level 3 costs an eighth of what it cost on level 0, and leaves room for others."""
    grants(path, 0, 13)
    before = epsilon(path)
    with Ledger(path, ceilings=CEILINGS) as ledger:
        ledger.reserve([ask(13)], 100)
    data = bytearray(path.read_bytes())
    data[-RECORD + 20] ^= 1
    path.write_bytes(data)
    assert epsilon(path) == before + 10**12 // 4
