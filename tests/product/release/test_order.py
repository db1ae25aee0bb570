"""The order of effects: one effect for every due chunk, none before its reservation, and the same after a restore."""

import random

import msgspec
import numpy as np
import pytest

from eyestream.core.chunking.settings import Release as When
from eyestream.core.release.order import Drop, Effect, Release, ReleaseOrder, Reserve, Withhold
from eyestream.core.reservation import Granted, Request, Withheld
from eyestream.wire.raw import RawRows
from tests.product.release.worlds import CHARGE, FickleLedger, Inputs, N, Step, place, requests_of, settings, settled


def rows(first: int, count: int, session: int = 1, *, end: bool = False) -> RawRows:
    return RawRows(session, first, np.full((count, 2), 1.0, dtype=np.float32), end)


def fed(order: ReleaseOrder, step: Step) -> list[Effect]:
    return order.tick(step.now) if step.rows is None else order.feed(step.rows, step.now)


def test_a_chunk_is_asked_for_when_it_opens_and_released_with_its_last_row() -> None:
    order = ReleaseOrder(settings(), CHARGE)
    (asked,) = order.feed(rows(0, 1), 0.0)
    assert isinstance(asked, Reserve)
    assert asked.request == Request(order.key, 1, 0, N - 1, N, CHARGE)
    assert order.answer([Granted(asked.request)]) == []
    (released,) = order.feed(rows(1, N - 1), 1.0)
    assert isinstance(released, Release)


def test_each_request_names_the_wearer_of_its_session() -> None:
    """Also that of a chunk without a row, and of one that falls due as the next session begins."""
    order, asked = ReleaseOrder(settings(), CHARGE), []
    for session, wearer in ((1, 7), (2, 0), (3, 9)):
        for first in (0, 2 * N):
            message = msgspec.structs.replace(rows(first, 1, session), wearer=wearer)
            asked += requests_of(order.feed(message, float(session)))
    assert [(r.session, r.wearer) for r in asked] == [(1, 7)] * 3 + [(2, 0)] * 3 + [(3, 9)] * 3


def test_a_due_chunk_waits_for_its_answer() -> None:
    order = ReleaseOrder(settings(), CHARGE)
    requests = requests_of(order.feed(rows(0, 2 * N), 0.0))
    assert (len(requests), order.waiting) == (2, 2)
    assert order.tick(0.1) == []
    first, second = order.answer([Granted(requests[0]), Withheld(requests[1], "day")])
    assert isinstance(first, Release)
    assert isinstance(second, Withhold)
    assert second.obstacle == "day"


def test_answers_out_of_order_release_in_order() -> None:
    """The second chunk never goes before the first: a filter over a session relies on that."""
    order = ReleaseOrder(settings(), CHARGE)
    requests = requests_of(order.feed(rows(0, 2 * N), 0.0))
    assert order.answer([Granted(requests[1])]) == []
    assert [effect.chunk.span.index for effect in order.answer([Granted(requests[0])])] == [0, 1]  # type: ignore[union-attr]


def test_without_a_ledger_nothing_is_released() -> None:
    order = ReleaseOrder(settings(), CHARGE)
    (asked,) = requests_of(order.feed(rows(0, 1), 0.0))
    order.answer([Granted(asked)])
    assert order.fail() == []
    (dropped,) = order.feed(rows(1, N - 1), 0.0)
    assert isinstance(dropped, Drop)
    assert dropped.reason == "ledger"


def test_at_the_end_the_reserved_is_released_and_the_rest_is_dropped() -> None:
    order = ReleaseOrder(settings(), CHARGE)
    (asked,) = requests_of(order.feed(rows(0, 1), 0.0))
    order.answer([Granted(asked)])
    released = order.close(0.2)
    assert [type(effect) for effect in released] == [Release]
    order.feed(rows(0, 1, session=2), 0.3)
    (dropped,) = order.close(0.4)
    assert isinstance(dropped, Drop)
    assert dropped.reason == "stopped"


def test_a_session_of_few_rows_costs_a_whole_chunk() -> None:
    """So what a minute costs on average holds for rows without a pause, and not for many short sessions."""
    order, released = ReleaseOrder(settings(), CHARGE), []
    for session in range(1, 7):
        (asked,) = requests_of(order.feed(rows(0, 1, session), float(session)))
        assert (asked.charge, asked.session) == (CHARGE, session)
        released += order.answer([Granted(asked)])
        released += order.feed(rows(1, 1, session, end=True), session + 0.5)
    assert [type(effect) for effect in released] == [Release] * 6


def test_an_answer_to_nothing_that_waits_does_nothing() -> None:
    order = ReleaseOrder(settings(), CHARGE)
    (asked,) = requests_of(order.feed(rows(0, 1), 0.0))
    order.close(1.0)
    assert order.answer([Granted(asked)]) == []


@pytest.mark.parametrize("data", [b"", b"\x90", b"\xc0", b"garbage", bytes(64)])
def test_what_is_no_snapshot_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="snapshot"):
        ReleaseOrder.restored(settings(), CHARGE, data)


def test_a_snapshot_of_another_shape_is_refused() -> None:
    order = ReleaseOrder(settings(), CHARGE)
    order.feed(rows(0, 1), 0.0)
    data = order.snapshot()
    for other in (settings(n=2 * N), settings(names=("a", "b", "c"))):
        with pytest.raises(ValueError, match="features"):
            ReleaseOrder.restored(other, CHARGE, data)


def test_what_somebody_waits_for_comes_before_what_is_asked() -> None:
    order = ReleaseOrder(settings(), CHARGE)
    [asked] = order.feed(rows(0, 1), 0.0)
    assert isinstance(asked, Reserve)
    assert order.answer([Granted(asked.request)]) == []
    both = order.feed(rows(1, N), 0.5)  # the end of one chunk and the first row of the next one
    assert [type(effect) for effect in both] == [Release, Reserve]


def test_one_chunk_in_so_many_is_released_from_the_first_one_after_the_baseline_on() -> None:
    for baseline in (0, 1, 2):
        order = ReleaseOrder(settings(), CHARGE, baseline=baseline, every=2)
        asked = requests_of(order.feed(rows(0, 6 * N), 0.0))
        released = [i for i, request in enumerate(asked) if not request.unreleased]
        assert released == list(range(baseline, 6, 2))


def test_a_restored_order_leaves_out_the_same_chunks() -> None:
    order = ReleaseOrder(settings(), CHARGE, every=2)
    left_out = [request.unreleased for i in range(4) for request in requests_of(order.feed(rows(i * N, N), float(i)))]
    again, _ = ReleaseOrder.restored(settings(), CHARGE, order.snapshot(), every=2)
    left_out += [request.unreleased for i in range(4, 8) for request in requests_of(again.feed(rows(i * N, N), i))]
    assert left_out == [False, True] * 4


class Twin:
    """An order and its requests that the ledger has not seen; restored after every input, or never."""

    def __init__(self, release: When, ledger: FickleLedger, *, restores: bool) -> None:
        self._settings, self._ledger, self._restores = settings(release=release), ledger, restores
        self._order = ReleaseOrder(self._settings, CHARGE)
        self.asked: list[Request] = []

    def take(self, step: Step) -> list[tuple[object, ...]]:
        return self._note(fed(self._order, step))

    def answer(self) -> list[tuple[object, ...]]:
        """Put everything that waits to the ledger."""
        requests, self.asked = self.asked, []
        return self._note(self._order.answer(self._ledger.reserve(requests, 0)))

    def _note(self, effects: list[Effect]) -> list[tuple[object, ...]]:
        self._ask(requests_of(effects))
        told = settled(effects)
        for kind, *rest in told:
            if kind == "release":
                self._ledger.released.add(place(rest[0]))  # type: ignore[arg-type]
        if self._restores:
            self._order, again = ReleaseOrder.restored(self._settings, CHARGE, self._order.snapshot())
            assert settled(again) == []
            self.asked = []
            known = [request for request in requests_of(again) if self._ledger.knows(request)]
            self._ask([request for request in requests_of(again) if not self._ledger.knows(request)])
            told += self._settle(known)
        return told

    def _settle(self, known: list[Request]) -> list[tuple[object, ...]]:
        """What the ledger had decided before the restore, it says again."""
        effects = self._order.answer(self._ledger.reserve(known, 0))
        assert requests_of(effects) == []
        return settled(effects)

    def _ask(self, requests: list[Request]) -> None:
        self.asked += requests


@pytest.mark.parametrize("release", ["on_row", "on_clock"])
@pytest.mark.parametrize(
    "steps",
    [5_000, pytest.param(20_000, marks=pytest.mark.long), pytest.param(50_000, marks=pytest.mark.slow)],
)
@pytest.mark.timeout(900)
def test_restored_after_every_input_it_does_the_same(release: When, steps: int) -> None:
    """Against one that was never restored: the same requests, and the same releases at the same moments."""
    luck = random.Random(f"twins {release} {steps}")
    inputs = Inputs(luck)
    plain = Twin(release, FickleLedger(random.Random(1), rewrites=True), restores=False)
    restored = Twin(release, FickleLedger(random.Random(1), rewrites=True), restores=True)
    releases = 0
    for _ in range(steps):
        if luck.random() < 0.7:
            step = inputs.next()
            one, other = plain.take(step), restored.take(step)
        else:
            one, other = plain.answer(), restored.answer()
        assert one == other
        assert plain.asked == restored.asked
        releases += sum(kind == "release" for kind, *_ in one)
    assert releases > steps / 12


@pytest.mark.parametrize("rewrites", [False, True])
@pytest.mark.parametrize("steps", [10_000, pytest.param(100_000, marks=pytest.mark.long)])
@pytest.mark.timeout(900)
def test_an_old_snapshot_releases_no_row_twice(rewrites: bool, steps: int) -> None:
    """Whatever state comes back, however old, and whatever had left since: the ledger decides."""
    luck = random.Random(f"old {rewrites} {steps}")
    inputs, ledger = Inputs(luck), FickleLedger(luck, rewrites=rewrites)
    order = ReleaseOrder(settings(), CHARGE)
    asked: list[Request] = []
    states: list[bytes] = []
    out: dict[tuple[int, int], bytes] = {}
    refused = 0
    for _ in range(steps):
        choice = luck.random()
        if choice < 0.6:
            effects = fed(order, inputs.next())
        elif choice < 0.9 or not states:
            effects, asked = order.answer(ledger.reserve(asked, 0)), []
        else:
            order, effects = ReleaseOrder.restored(order.settings, CHARGE, luck.choice(states))
            asked = []  # what an earlier life had asked for
        asked += requests_of(effects)
        for effect in effects:
            if isinstance(effect, Release):
                where = place(effect.chunk.span)
                assert where not in out, "a row has left twice"
                assert ledger.granted[where] == 1, "it was not charged, or charged twice"
                ledger.released.add(where)
                out[where] = effect.chunk.values.tobytes()
            refused += isinstance(effect, Withhold) and effect.obstacle == "rows"
        states = [*states[-20:], order.snapshot()]
    assert len(out) > steps / 20
    assert refused > steps / 200


def test_the_check_above_sees_an_order_that_trusts_its_snapshot() -> None:
    """Negative control: with the grants kept in the state, a chunk leaves twice."""
    order = ReleaseOrder(settings(), CHARGE)
    (asked,) = requests_of(order.feed(rows(0, 1), 0.0))
    order.answer([Granted(asked)])
    data = order.snapshot()
    kept = dict(order._answers)
    (first,) = order.feed(rows(1, N - 1), 1.0)
    again, _ = ReleaseOrder.restored(settings(), CHARGE, data)
    again._answers = kept
    (second,) = again.feed(rows(1, N - 1), 1.0)
    assert isinstance(first, Release)
    assert isinstance(second, Release)
    assert first.chunk.span == second.chunk.span
