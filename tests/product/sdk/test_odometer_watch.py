"""What shows that a ledger went back, and what must not: late, repeated and kept messages, crashes, moves."""

import random
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eyestream.errors import ConfigError
from eyestream.sdk.odometer import OdometerWatch, OtherLedger, WentBack
from eyestream.wire.status import Reading

ONE, OTHER = "1" * 32, "2" * 32


@dataclass
class Life:
    """Of a ledger that had spent `began` as it started."""

    number: int
    began: int
    ledger: str = ONE
    former: str | None = None

    def reads(self, figure: int) -> Reading:
        more = {} if self.former is None else {"former": self.former}
        return Reading(self.ledger, self.number, self.began, figure, **more)


def heard(*said: Reading, watch: OdometerWatch | None = None) -> list[object]:
    """What each message makes known, as it comes live."""
    watch = watch or OdometerWatch()
    return [watch.note(one) for one in said]


def honest(luck: random.Random, lives: int) -> list[Reading]:
    """All that a ledger ever says: each life begins where the last one ended, or above it, as after a crash."""
    said, figure = [], luck.randrange(10**6)
    for _ in range(lives):
        life = Life(luck.getrandbits(64), figure)
        for _ in range(luck.randint(1, 5)):
            said.append(life.reads(figure))
            figure += luck.choice([0, 1, 5])
        figure = max(figure, said[-1].reads + luck.choice([0, 0, 1, 5]))
    return said


def delivered(luck: random.Random, said: list[Reading]) -> Iterator[tuple[Reading, bool]]:
    """What a broker makes of it for somebody who joins, leaves and comes back: with a flag whether it was kept.

    A broker, or a bridge, that was restored hands an old message to those who stand there too, as if it were new.
    """
    come: list[Reading] = []
    old = luck.randrange(len(said))
    for place, one in enumerate(said):
        if (
            luck.random() < 0.3
        ):  # a link begins: what is kept is handed on, by a broker that was restored an old message
            yield luck.choice(said[: place + 1]), True
        if luck.random() < 0.8:
            come.append(one)
            yield one, False
        while place >= old and luck.random() < 0.2:
            yield said[old], False
        while come and luck.random() < 0.2:  # at least once
            yield luck.choice(come), False


@given(st.integers(0, 2**32))
def test_what_comes_late_again_or_from_the_brokers_memory_raises_no_alarm(seed: int) -> None:
    luck = random.Random(seed)
    watch = OdometerWatch()
    for one, kept in delivered(luck, honest(luck, luck.randint(1, 6))):
        if luck.random() < 0.1:  # the application starts again
            watch = OdometerWatch.from_json(watch.to_json())
        assert watch.note(one, kept=kept) is None
        assert watch.fault is None


@given(st.integers(0, 2**32))
def test_a_ledger_that_went_back_is_said_as_soon_as_its_life_grows(seed: int) -> None:
    luck = random.Random(seed)
    watch, said = OdometerWatch(), honest(luck, 3)
    for one, kept in delivered(luck, said):
        watch.note(one, kept=kept)
    watch.note(said[-1])
    first = said[0].began
    began = luck.randint(first - 3, said[-1].reads)
    life, forgotten = Life(1, began), said[-1].reads - began
    found = heard(life.reads(began), life.reads(began + 1), life.reads(began + 2), watch=watch)
    assert [one for one in found if one] == ([WentBack(forgotten / 1e6)] if forgotten else [])
    assert found[-1] is None


def test_a_new_life_of_what_went_back_does_not_end_the_fault() -> None:
    """Not when the older copy has caught up, nor when the newest ledger is back: what was forgotten stays forgotten."""
    watch, old = OdometerWatch(), Life(2, 110)
    assert heard(Life(1, 100).reads(150), old.reads(110), watch=watch) == [None, WentBack(40 / 1e6)]
    assert heard(old.reads(111), Life(3, 111).reads(111), Life(3, 111).reads(160), watch=watch) == [None] * 3
    assert heard(Life(4, 160).reads(160), Life(4, 160).reads(170), watch=watch) == [None] * 2
    assert watch.fault == WentBack(40 / 1e6)
    again = OdometerWatch.from_json(watch.to_json())
    assert again.fault is not None
    assert again.note(Life(4, 160).reads(180)) is None, "it was said"


def test_a_live_message_of_an_unknown_older_life_is_a_doubt_until_that_life_grows() -> None:
    """A broker that was restored hands on what it had kept, also to those who stand there, and as if it were new."""
    watch, old, own = OdometerWatch(), Life(2, 90), Life(1, 100)
    assert heard(own.reads(150), old.reads(95), old.reads(95), watch=watch) == [None] * 3
    assert (watch.fault, watch.doubt) == (None, WentBack(60 / 1e6))
    assert watch.note(own.reads(151)) is None
    assert (watch.fault, watch.doubt) == (None, None)
    assert watch.note(old.reads(96)) == WentBack(61 / 1e6), "two copies are at work, by turns"


def test_who_comes_when_the_figure_has_caught_up_knows_it_by_the_spans() -> None:
    """Nothing was heard while the older ledger was below: its life overlaps one that is known."""
    watch = OdometerWatch([Life(1, 120).reads(150)])
    assert watch.note(Life(2, 100).reads(160), kept=True) == WentBack(50 / 1e6)
    apart = OdometerWatch([Life(1, 120).reads(150)])
    assert apart.note(Life(2, 150).reads(160), kept=True) is None


def test_two_copies_at_work_are_said_when_one_grows_into_the_other() -> None:
    one, other = Life(1, 100), Life(2, 105)
    assert heard(one.reads(105), other.reads(105), other.reads(107), one.reads(106))[-1] == WentBack(7 / 1e6)


def test_a_process_that_was_copied_with_its_machine_is_another_life() -> None:
    """All it had is as it was, but for the random number that is drawn for its next link."""
    assert heard(Life(1, 100).reads(103), Life(1, 100).reads(107), Life(9, 103).reads(103))[-1] == WentBack(4 / 1e6)


def test_what_the_broker_has_kept_is_a_doubt_until_something_live_comes() -> None:
    old = Life(2, 90)
    for live, fault in ((old.reads(96), WentBack(60 / 1e6)), (Life(3, 150).reads(151), None)):
        watch = OdometerWatch([Life(1, 100).reads(150)])
        assert watch.note(old.reads(94), kept=True) is None
        assert watch.note(old.reads(95), kept=True) is None
        assert (watch.fault, watch.doubt) == (None, WentBack(60 / 1e6))
        assert watch.note(live) == fault
        assert (watch.fault, watch.doubt) == (fault, None)


def test_another_ledger_is_no_rollback_and_a_move_is_said_as_one() -> None:
    watch = OdometerWatch()
    first, new = Life(1, 500), Life(2, 3, OTHER)
    moved, back = Life(3, 5, OTHER, former=ONE), Life(4, 600, ONE, former=OTHER)
    made, was_moved = [None, OtherLedger(moved=False)], [None, OtherLedger(moved=True)]
    assert heard(first.reads(500), new.reads(3), new.reads(4), watch=watch) == [None, *made]
    again = Life(5, 500)
    assert heard(again.reads(501), again.reads(502), watch=watch) == made
    assert heard(moved.reads(5), moved.reads(6), moved.reads(7), watch=watch) == [*was_moved, None]
    assert heard(back.reads(600), back.reads(601), watch=watch) == was_moved
    assert watch.fault is None
    older = Life(6, 4, OTHER, former=ONE)
    assert heard(older.reads(4), older.reads(5), watch=watch) == [None, WentBack(3 / 1e6)], "and it went back there"
    kept = OdometerWatch([first.reads(500)])
    assert kept.note(new.reads(3), kept=True) is None
    assert kept.doubt == OtherLedger(moved=False)


def test_memory_is_bounded_and_keeps_what_was_spent_most() -> None:
    watch = OdometerWatch()
    assert heard(*(Life(number, number).reads(number + 1) for number in range(500)), watch=watch) == [None] * 500
    assert len(watch.known) == 64
    assert heard(Life(999, 499).reads(499), Life(999, 499).reads(500), watch=watch)[-1] == WentBack(1 / 1e6)
    for number in range(40):
        heard(*(Life(1, 1, f"{number:032x}").reads(figure) for figure in (1, 2)), watch=watch)
    assert len({one.ledger for one in watch.known}) == 8


@pytest.mark.parametrize("data", [b"", b"{}", b"[1]", b'[{"v": 1}]', b"\xff"])
def test_a_memory_that_is_none_is_refused(data: bytes) -> None:
    with pytest.raises(ConfigError, match="odometer: expected what"):
        OdometerWatch.from_json(data)


def test_the_words_name_the_remedy() -> None:
    assert "epsilon 9.6 that was spent is forgotten" in str(WentBack(9.6))
    assert "put the newest ledger back" in str(WentBack(9.6))
    assert "--export" in str(OtherLedger(moved=False))
    assert "with all that it had spent" in str(OtherLedger(moved=True))
