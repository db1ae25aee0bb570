"""A border has no raw row, and whoever goes on from it with the log's messages releases what was still to come."""

import random

import numpy as np
import pytest

from eyestream.core.chunking.settings import Release as When
from eyestream.core.release.order import Effect, Release, ReleaseOrder
from eyestream.core.reservation import Granted, Request
from eyestream.wire.raw import RawRows
from tests.product.release.worlds import CHARGE, N, place, requests_of, settings

Message = tuple[float, RawRows]


def messages(seed: int) -> list[Message]:
    """Three sessions of a tracker that misses rows, tells its time, and begins again; row values are serial numbers."""
    luck, found, serial, start = random.Random(seed), list[Message](), 1, 0.0
    for session in (1, 2, 3):
        row = luck.randint(0, 9)
        for _ in range(12):
            m = luck.randint(1, 6)
            values = np.arange(serial, serial + m, dtype=np.float32)[:, None].repeat(2, axis=1)
            times = start + np.arange(row, row + m) / 2
            serial, last = serial + m, row + m
            found.append((start + last / 2, RawRows(session, row, values, wearer=session % 2, t=times)))
            row = last + luck.choice([0, 0, 0, 1, N])
        start += row / 2 + 1
    return found


class Life:
    """An order under a ledger that grants all it is asked, in time or late."""

    def __init__(self, order: ReleaseOrder) -> None:
        self.order = order
        self.asked: list[Request] = []
        self.began: dict[tuple[int, int], int] = {}
        self.released: dict[tuple[int, int], tuple[object, ...]] = {}

    def take(self, offset: int, message: Message, *, answers: bool) -> None:
        now, rows = message
        self.note([*self.order.feed(rows, now), *self.order.tick(now)], offset)
        if answers:
            asked, self.asked = self.asked, []
            self.note(self.order.answer([Granted(request) for request in asked]), offset)

    def note(self, effects: list[Effect], offset: int) -> None:
        for request in requests_of(effects):
            self.asked.append(request)
            self.began.setdefault((request.session, request.first_row), offset)
        for effect in effects:
            assert not hasattr(effect, "obstacle")
            if isinstance(effect, Release):
                chunk = effect.chunk
                self.began.pop(place(chunk.span))
                self.released[place(chunk.span)] = chunk.span, chunk.t0, chunk.at, chunk.values.tobytes()


def lived(order: ReleaseOrder, part: list[Message], first: int, luck: random.Random | None = None) -> Life:
    life = Life(order)
    for offset, message in enumerate(part, first):
        life.take(offset, message, answers=luck is None or luck.random() < 0.5)
    return life


@pytest.mark.parametrize("release", ["on_row", "on_clock"])
@pytest.mark.parametrize("seed", range(3))
def test_from_any_border_the_rest_is_released_as_it_would_have_been(release: When, seed: int) -> None:
    of, log = settings(release=release, grace_s=9.0, idle_s=60.0), messages(seed)
    whole = lived(ReleaseOrder(of, CHARGE), log, 0)
    assert len(whole.released) > 20
    again = 0
    for cut in range(len(log)):
        first = lived(ReleaseOrder(of, CHARGE), log[:cut], 0, random.Random(cut))
        border = first.order.border()
        order, effects = ReleaseOrder.restored(of, CHARGE, border)
        assert effects == []
        offset = min(first.began.values(), default=cut)
        second = lived(order, log[offset:], offset)
        assert first.released.keys().isdisjoint(second.released)
        assert first.released | second.released == whole.released
        again += cut - offset
    assert again > len(log), "control: messages came again"


@pytest.mark.parametrize("release", ["on_row", "on_clock"])
def test_a_border_has_no_row(release: When) -> None:
    """Each value of a row is a number that nothing else is made of."""
    of, rows = settings(release=release, grace_s=9.0), np.full((N + 2, 2), 1234.5, np.float32)
    for answered in (True, False):
        life = Life(ReleaseOrder(of, CHARGE))
        life.take(0, (5.0, RawRows(1, 0, rows)), answers=answered)
        needles = [rows[0, :1].tobytes(), rows[0, :1].astype(np.float64).tobytes()]
        assert any(needle in life.order.snapshot() for needle in needles), "control"
        assert not any(needle in life.order.border() for needle in needles)
