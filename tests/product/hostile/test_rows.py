"""Rows that come twice, late, from the past, from the far future, and from two trackers: each is charged once at most.

Every test goes through a real pipeline and a real ledger, over processes that are killed in between; `World.check`
holds that no row is in two releases, none is charged twice, none is released without a charge, and that what is sent
again is the same bytes.
"""

import random
from pathlib import Path

import msgpack
import pytest

from eyestream.core.accountant import Account
from eyestream.core.charge import Ceilings
from eyestream.core.chunking.session import SessionChunker
from eyestream.wire.envelope import MAX_U64
from tests.rigs.rig import EPSILON, N, World, forget_rows, reserved_spans

FAR = [2**31, 2**32 - 2, 2**32, 2**53 + 1, 2**63 - 1, 2**63, MAX_U64 - 9, MAX_U64 - 1]


def chunks_said(world: World) -> list[list[int]]:
    """Chunk numbers of each private session, in the order of their release."""
    said: dict[int, list[int]] = {}
    for _, payload in world.published:
        chunk = msgpack.unpackb(payload)
        said.setdefault(chunk["session"], []).append(chunk["chunk"])
    return list(said.values())


async def test_a_message_ten_thousand_times_is_one_release(tmp_path: Path) -> None:
    """Averaging would need two releases of the same rows."""
    world = World(tmp_path)
    message = world.rows(0, N)
    for _ in range(100):
        await world.take(*[message] * 100)
    assert len(world.published) == len(world.releases) == len(world.granted) == 1
    assert world.device().counters.late == 9_999 * N
    world.check()


async def test_after_a_restart_the_same_rows_give_nothing(tmp_path: Path) -> None:
    """Also those of the chunk that was open, reserved and not released: what lay in between is dropped, not redrawn."""
    world = World(tmp_path)
    messages = [world.rows(seq) for seq in range(3 * N + 2)]
    await world.take(*messages)
    assert (len(world.granted), len(world.releases)) == (4, 3)
    for _ in range(5):
        world.restart()
        await world.take(*messages, world.rows(0, 4 * N))
        assert (len(world.granted), len(world.releases)) == (4, 3)
        assert world.device().counters.refused == 7 * N + 2
        world.check()
    await world.take(world.rows(4 * N, N))
    assert (len(world.granted), len(world.releases)) == (5, 4)
    world.check()


async def test_a_restart_between_reservation_and_release_spends_and_redraws_nothing(tmp_path: Path) -> None:
    world = World(tmp_path)
    for start in range(0, 40 * N, N):
        await world.take(world.rows(start, N - 1))
        world.restart()
        await world.take(world.rows(start, N))
        world.check()
    assert (len(world.granted), len(world.releases)) == (40, 0)


async def test_an_older_session_gives_nothing(tmp_path: Path) -> None:
    world = World(tmp_path)
    old = [world.rows(seq, N, session=5) for seq in (0, N, 2 * N)]
    await world.take(old[0], world.rows(0, N, session=6), *old, world.rows(0, N, session=0))
    assert [grant.session for grant in world.granted] == [5, 6]
    world.restart()
    await world.take(*old, world.rows(0, N, session=5, end=True), world.rows(50 * N, N, session=5))
    assert [grant.session for grant in world.granted] == [5, 6]
    world.check()


async def test_an_ended_session_stays_ended_over_a_restart_as_far_as_its_rows_go(tmp_path: Path) -> None:
    world = World(tmp_path)
    await world.take(world.rows(0, N + 1, end=True), world.rows(N + 1, N))
    assert len(world.releases) == 2
    world.restart()
    await world.take(world.rows(0, 2 * N))
    assert len(world.releases) == 2
    world.check()


@pytest.mark.parametrize("seed", range(6))
async def test_any_order_any_repetition_any_kill(tmp_path: Path, seed: int) -> None:
    random_ = random.Random(seed)
    world = World(tmp_path, devices=2, release=random_.choice(["on_row", "on_clock"]))
    messages = [
        world.rows(seq, random_.randint(1, 6), session=session, device=f"d{device}")
        for device in (0, 1)
        for session in (1, 2, 3)
        for seq in range(0, 60, 3)
    ]
    for _ in range(150):
        near = random_.randrange(len(messages))
        batch = [messages[max(0, min(len(messages) - 1, near + random_.randint(-4, 4)))] for _ in range(4)]
        await world.take(*batch)
        await world.wait(random_.choice([0.0, 0.0, 0.5, 3.0]))
        world.deliver(acknowledge=random_.random() < 0.5)
        world.check()
        if random_.random() < 0.03:
            world.restart()
    assert len(world.releases) > 5


@pytest.mark.parametrize("far", FAR)
async def test_a_row_of_the_far_future_costs_its_chunk_and_no_more(tmp_path: Path, far: int) -> None:
    """The tracker goes on, and is heard from the next chunk on, in a new session for those who listen."""
    world = World(tmp_path)
    await world.take(world.rows(0, 2), world.rows(far), world.rows(2, 2))
    assert world.device().counters.jump == 1
    assert (len(world.granted), len(world.releases)) == (1, 1)
    await world.take(world.rows(4, 2 * N), world.rows(0, N, session=2))
    assert (len(world.granted), len(world.releases)) == (4, 4)
    assert chunks_said(world) == [[0], [0, 1], [0]]
    world.check()


async def test_rows_go_on_after_the_raw_link_was_cut_for_longer_than_idle(tmp_path: Path) -> None:
    """The tracker never noticed; neither a newer session nor a restart is needed, and no row is released twice."""
    world = World(tmp_path, idle_s=6.0)
    seq, heard = 0, []
    for _ in range(5):
        for _ in range(3 * N + 1):
            heard.append(world.rows(seq))
            await world.take(heard[-1])
            await world.wait(0.5)
            seq += 1
        await world.wait(20.0)
        await world.take(*heard)
        seq += 40
    assert world.device().session is None
    counters = world.device().counters
    assert counters.stale_session == counters.jump == 0
    said = chunks_said(world)
    assert len(said) == 5
    assert all(chunks == list(range(len(chunks))) and len(chunks) > 3 for chunks in said)
    world.check()


async def test_what_ends_for_good_stays_so_after_a_silence(tmp_path: Path) -> None:
    world = World(tmp_path, idle_s=6.0)
    await world.take(world.rows(0, N))
    await world.wait(20.0)
    await world.take(world.rows(50 * N, 0, end=True), world.rows(60 * N, N))
    assert world.device().counters.stale_session == N
    world.check()


async def test_to_jump_to_and_fro_costs_a_chunk_each_and_the_window_holds(tmp_path: Path) -> None:
    world = World(tmp_path, ceilings=Ceilings.of(4, 2 * EPSILON))
    for turn in range(50):
        await world.take(world.rows(turn * 40 * N, 1))
    assert world.device().counters.jump == 25
    assert len(world.releases) <= 14
    world.check()


@pytest.mark.parametrize("release", ["on_row", "on_clock"])
async def test_every_chunk_that_falls_due_is_asked_for_in_order(tmp_path: Path, release: str) -> None:
    """Also one that opens and closes within a message, and one without rows, while they wait for the clock."""
    world = World(tmp_path, release=release)
    await world.take(world.rows(0, 2 * N + 1))
    await world.wait(3.0)
    await world.take(world.rows(4 * N + 1, 2 * N))
    await world.wait(60.0)
    (said,) = chunks_said(world)
    assert said == list(range(len(said)))
    assert len(said) > 6
    assert len(world.releases) == len(said) == world.pipeline.counters.due
    world.check()


@pytest.mark.parametrize("far", FAR)
async def test_a_session_may_begin_anywhere(tmp_path: Path, far: int) -> None:
    """Also where the next row number would not fit any more: there the clock has nothing to wait for but the end."""
    world = World(tmp_path, devices=2)
    await world.take(world.rows(far), world.rows(0, 1, device="d1"))
    for _ in range(30):
        await world.wait(2.0)
        await world.take(world.rows(0, 1, device="d1"))
    assert world.device().session is None
    await world.take(world.rows(0, N, session=2))
    assert world.published[-1][0].endswith("d0/features/private")
    world.check()


async def test_the_last_rows_of_all(tmp_path: Path) -> None:
    world = World(tmp_path)
    first = MAX_U64 - 2 * N + 1
    await world.take(world.rows(first, N), world.rows(first + N, N - 1))
    assert len(world.releases) == 1
    await world.wait(100.0)
    assert len(world.releases) == 2
    world.restart()
    await world.take(world.rows(first + N, N - 1), world.rows(0, N))
    assert len(world.releases) == 2
    await world.take(world.rows(0, N, session=MAX_U64))
    assert len(world.releases) == 3
    world.check()


async def test_numbers_that_wrap_are_numbers_of_the_past(tmp_path: Path) -> None:
    """A tracker with a counter of 32 bits: what follows 2^32 - 1 is row 0 again, and is late."""
    world = World(tmp_path)
    await world.take(world.rows(2**32 - N, N), *[world.rows(seq, 1) for seq in range(20)])
    assert len(world.releases) == 1
    assert world.device().counters.late == 20
    await world.take(world.rows(0, N, session=2))
    assert len(world.releases) == 2
    world.check()


async def test_two_trackers_of_one_session_share_its_rows(tmp_path: Path) -> None:
    """Each row number is taken from who says it first; nothing is averaged, charged or said twice."""
    world = World(tmp_path)
    for seq in range(10 * N):
        await world.take(*random.Random(seq).sample([world.rows(seq), world.rows(seq)], 2))
    assert len(world.releases) == len(world.granted) == 10
    assert sum(map(len, world.releases)) == 10 * N
    assert world.device().counters.duplicate + world.device().counters.late == 10 * N
    world.check()


async def test_two_trackers_that_fight_over_the_session_number_stall_nobody_else(tmp_path: Path) -> None:
    """One raises the session each time: the other is refused; the second device does not notice."""
    world = World(tmp_path, devices=2)
    for turn in range(50):
        await world.take(
            world.rows(turn, 1, session=1),
            world.rows(0, 1, session=10 + turn),
            world.rows(turn, 1, device="d1"),
        )
    assert world.device().session == 59
    assert world.device("d1").counters.accepted == 50
    assert sum(topic.endswith("d1/features/private") for topic, _ in world.published) == 50 // N
    world.check()


async def test_a_thousand_sessions_cost_a_chunk_each_and_nothing_stays(tmp_path: Path) -> None:
    world = World(tmp_path)
    for session in range(1, 1001):
        await world.take(world.rows(7, 1, session=session))
    await world.take(world.rows(8, 0, session=1000, end=True))
    assert len(world.granted) == len(world.releases) == 1000
    assert reserved_spans(world.pipeline) == 0
    world.check()


async def test_a_retry_sends_the_same_bytes_and_a_lost_one_is_not_redrawn(tmp_path: Path) -> None:
    world = World(tmp_path)
    message = world.rows(0, N)
    await world.take(message)
    sent = {world.deliver(acknowledge=False) for _ in range(20)}
    assert len(sent) == 1
    await world.take(message)
    assert world.deliver() in sent
    assert world.deliver() is None
    world.restart()
    await world.take(message)
    assert world.deliver() is None
    assert len(set(world.delivered)) == 1
    world.check()


async def test_noise_is_fresh_over_a_restart(tmp_path: Path) -> None:
    """The same values in other rows, before and after: no two releases are equal."""
    world = World(tmp_path)
    for turn in range(6):
        await world.take(world.rows(turn * N, N))
        world.restart()
    values = {payload[-200:] for _, payload in world.published}
    assert len(values) == 6


# Negative controls: the same checks on parts that are wrong on purpose.


async def test_control_a_device_that_takes_rows_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a memory of what was closed, and without the ledger's own memory of rows, a repetition is a release."""
    world = World(tmp_path)
    message = world.rows(0, N)
    await world.take(message)
    forget_rows(world.pipeline, "d0")
    await world.take(message)
    assert len(world.releases) == 1, "the ledger alone withholds what was reserved before"
    assert world.pipeline.counters.withheld == {"rows": 1}
    world.check()
    monkeypatch.setattr(Account, "obstacle", lambda *arguments: None)
    forget_rows(world.pipeline, "d0")
    await world.take(message)
    with pytest.raises(AssertionError, match="two releases"):
        world.check()


async def test_control_a_ledger_that_forgets(tmp_path: Path) -> None:
    world = World(tmp_path)
    message = world.rows(0, N)
    await world.take(message)
    before = world.path.read_bytes()
    world.kill()
    world.path.write_bytes(before[:64])
    world.start()
    await world.take(message)
    with pytest.raises(AssertionError, match="two releases"):
        world.check()


async def test_control_a_device_that_forgets_what_fell_due_when_a_session_stops(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SessionChunker, "last_row", -1)
    world = World(tmp_path)
    await world.take(world.rows(0, 2), world.rows(10**6), world.rows(0, N))
    assert len(world.releases) == 1, "the pipeline does not ask twice"
    with pytest.raises(AssertionError, match="nobody asked"):
        world.check()
