"""Clocks that step, go back, stand still, drift, or say nothing: no stall, no overspend, and the order is kept.

Inside, only the loop's monotonic clock counts; the host's clock gives the day of the ledger and nothing else.
"""

import itertools
import math
from collections import Counter
from pathlib import Path

import msgpack
import pytest

from eyestream.core.charge import Ceilings
from eyestream.core.chunking.device import Clock
from eyestream.rim.sidecar.pipeline import Arrival
from tests.rigs.rig import EPSILON, N, World

HOUR, DAY = 3600.0, 86_400.0
STEPS = [HOUR, -HOUR, DAY, -DAY, -0.001, 1e9, -1e9, 2.0**63, -(2.0**63), 1e308, -1e308]
SENSELESS = [math.nan, math.inf, -math.inf]


async def play(world: World, rows: int, first: int = 0, *, rate: float = 2.0, offset: float = 0.0) -> None:
    """A tracker's rows one by one at its rate; the clock shows `offset` more than the time that has passed."""
    for seq in range(first, first + rows):
        due = world.pipeline.next_due()
        if due is not None and due <= world.clock.now + offset:
            await world.take(now=world.clock.now + offset)
        row = world.rows(seq)
        await world.take(Arrival(row.topic, row.payload, world.clock.now + offset), now=world.clock.now + offset)
        world.clock.now += 1 / rate


def assert_in_order(world: World) -> None:
    """Chunks of each private session are numbered without a hole."""
    for _, chunks in itertools.groupby((msgpack.unpackb(data) for _, data in world.published), lambda c: c["session"]):
        numbers = [chunk["chunk"] for chunk in chunks]
        assert numbers == list(range(len(numbers)))


@pytest.mark.parametrize("release", ["on_row", "on_clock"])
@pytest.mark.parametrize("step", STEPS)
async def test_a_step_loses_the_rows_of_that_time_at_most(tmp_path: Path, release: str, step: float) -> None:
    """Forward by more than `idle_s` stops the session: it is heard again behind what fell due in that time, half a
    minute at most. Backward costs nothing. At 2^63 floats have no half seconds: there the clock stands still.
    """
    world = World(tmp_path, release=release, jump_chunks=8)
    await play(world, 10 * N + 2)
    await play(world, 30 * N, first=10 * N + 2, offset=step)
    world.check()
    before = world.device().counters.accepted
    if release == "on_row" or abs(step) < 1e10:
        assert before == 40 * N + 2 if step < 0 else before >= 40 * N - 60 - 2 * N
    world.clock.now += step if abs(step) < 1e10 else 0.0
    await world.take(world.rows(0, 0, session=2))
    await world.wait(20.0)  # until what stood still has made room
    for seq in range(4 * N):
        await world.take(world.rows(seq, session=2))
        await world.wait(0.5)
    await world.wait(40.0)
    assert world.device().counters.accepted == before + 4 * N
    world.check()
    assert_in_order(world)
    assert len(world.granted) == world.pipeline.counters.released


@pytest.mark.parametrize("odd", SENSELESS + STEPS)
@pytest.mark.parametrize("release", ["on_row", "on_clock"])
async def test_one_senseless_reading_stops_nothing(tmp_path: Path, odd: float, release: str) -> None:
    world = World(tmp_path, release=release)
    await play(world, 2 * N + 1)
    row = world.rows(2 * N + 1)
    await world.take(Arrival(row.topic, row.payload, odd), now=odd)
    world.check()
    await world.take()
    for seq in range(4 * N):
        await world.take(world.rows(seq, session=2))
        await world.wait(0.5)
    await world.wait(20.0)
    assert world.device().counters.accepted >= 2 * N + 4 * N
    assert_in_order(world)
    world.check()


async def test_a_clock_that_stands_still_stalls_no_row(tmp_path: Path) -> None:
    world = World(tmp_path)
    for seq in range(50 * N):
        await world.take(world.rows(seq))
    assert len(world.published) == 50
    assert_in_order(world)
    world.check()


async def test_on_clock_one_that_stands_still_holds_little_and_goes_on_with_the_clock(tmp_path: Path) -> None:
    world = World(tmp_path, release="on_clock")
    for session in range(1, 101):
        for seq in range(40):
            await world.take(world.rows(seq, session=session))
    device = world.device()
    assert len(device._closed) <= 8
    world.check()
    await world.wait(60.0)
    for seq in range(2 * N):
        await world.take(world.rows(seq, session=200))
        await world.wait(0.5)
    await world.wait(60.0)
    assert device.counters.accepted > 0
    assert len(device._closed) == 0
    assert_in_order(world)
    world.check()


@pytest.mark.parametrize("drift", [5e-4, -5e-4, 9e-3, -9e-3])
@pytest.mark.parametrize("release", ["on_row", "on_clock"])
async def test_a_drifting_tracker_loses_no_row_in_an_hour(tmp_path: Path, drift: float, release: str) -> None:
    world = World(tmp_path, release=release, jump_chunks=16, grace_s=2.0)
    for seq in range(1800 * 2 if release == "on_row" else 1200):
        await world.wait(0.0)
        await world.take(world.rows(seq))
        world.clock.now += 0.5 * (1 + drift)
    c = world.device().counters
    assert c.accepted == c.rows
    assert_in_order(world)
    world.check()


@pytest.mark.parametrize("jitter", [[0.0], [0.5, -0.5], [3600.0, 0.0, -3600.0], [math.nan, 0.0], [86_400.0, 0.0]])
async def test_a_jumping_clock_overspends_no_window(tmp_path: Path, jitter: list[float]) -> None:
    """At most one release in any two slots, whatever the clock does to the slots."""
    world = World(tmp_path, ceilings=Ceilings.of(2, EPSILON), jump_chunks=16)
    offsets = itertools.cycle(jitter)
    for seq in range(400):
        row = world.rows(seq, session=1 + seq // 37)
        at = world.clock.now + next(offsets)
        await world.take(Arrival(row.topic, row.payload, at), now=at)
        world.clock.now += 0.5
    slots = [obstacle is None for _, obstacle in world.answers if obstacle != "rows"]
    assert sum(slots) > 5
    assert not any(pair == (True, True) for pair in itertools.pairwise(slots))
    world.check()


@pytest.mark.parametrize("days", [[0], [0, 1, 0, 2, 1, 0], [0, -1, -365, 0], [0, 1, 2, 3], [0, 366, 0], [0, -30_000]])
async def test_no_day_is_overspent_and_days_never_go_back(tmp_path: Path, days: list[int]) -> None:
    """Each time that the day goes beyond all before it there is a day's budget, and otherwise there is none."""
    world = World(tmp_path, ceilings=Ceilings.of(0, None, None, 2 * EPSILON))
    latest, fresh = -1, 0
    for turn, day in enumerate(days):
        world.clock.day = 20_000 + day
        fresh += world.clock.day > latest
        latest = max(latest, world.clock.day)
        await world.take(*[world.rows((turn * 5 + i) * N, N) for i in range(5)])
        assert len(world.granted) == 2 * fresh
        if turn % 2:
            world.restart()
        world.check()
    counts = Counter(world.pipeline.counters.withheld)
    assert set(counts) <= {"day"}


@pytest.mark.parametrize("day", [20_000 + 367, 60_000, 2**32, 2**63 // 86_400, 2**63, 10**30])
async def test_a_day_far_ahead_costs_that_moment(tmp_path: Path, day: int) -> None:
    """It is a day of its own; the clock comes back, and the days between are there as they come."""
    world = World(tmp_path, ceilings=Ceilings.of(0, None, None, 2 * EPSILON))
    took = 0
    for today, granted in ((20_000, 2), (day, 4), (20_000, 4), (20_001, 6)):
        world.clock.day = today
        await world.take(*[world.rows((took + i) * N, N) for i in range(3)])
        took += 3
        assert (len(world.granted), world.pipeline.failed) == (granted, False)
    world.restart()
    world.clock.day = 20_002
    await world.take(*[world.rows((took + i) * N, N) for i in range(3)])
    assert len(world.granted) == 8
    world.check()


async def test_a_day_of_the_past_is_the_latest_one(tmp_path: Path) -> None:
    world = World(tmp_path, ceilings=Ceilings.of(0, None, None, EPSILON))
    for day in (-(10**9), -1, 0):
        world.clock.day = day
        await world.take(world.rows(max(0, day + 2) * N, N))
    assert len(world.granted) == 1
    world.check()


@pytest.mark.parametrize("believing", [False, True])
async def test_control_a_clock_that_believes_every_reading_stalls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, believing: bool
) -> None:
    """After one reading of NaN nothing would ever be due again."""

    def believe(self: Clock, now: float) -> float:
        self._offset, self.time = 0.0, now
        return now

    if believing:
        monkeypatch.setattr(Clock, "read", believe)
    world = World(tmp_path)
    row = world.rows(0)
    await world.take(Arrival(row.topic, row.payload, math.nan), now=math.nan)
    for _ in range(60):
        world.clock.now += 1.0
        await world.take()
    assert (world.device().session is None) is not believing
    assert (len(world.published) > 0) is not believing


async def test_a_caller_that_is_late_is_no_fault_of_the_tracker(tmp_path: Path) -> None:
    """On the clock, with the loop held up for a minute: more chunks are over than may wait, and the session lives."""
    world = World(tmp_path, release="on_clock", jump_chunks=3)
    backlog = []
    for seq in range(50 * N):
        backlog.append(world.rows(seq))
        world.clock.now += 0.5
    await world.take(*backlog)
    assert world.device().counters.jump == 0
    await world.wait(3.0)
    assert [len(serials) for serials in world.releases[:50]] == [N] * 50
    assert_in_order(world)
    world.check()


async def test_nothing_finite_was_ever_read(tmp_path: Path) -> None:
    world = World(tmp_path)
    row = world.rows(0)
    await world.take(Arrival(row.topic, row.payload, math.nan), now=math.nan)
    due = world.pipeline.next_due()
    assert due is not None
    assert due <= world.clock.now
    await world.wait(40.0)
    assert world.device().session is None
    assert len(world.published) > 0
    world.check()
