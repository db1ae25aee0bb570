"""More than can be treated: memory stays bounded, the oldest is dropped and counted, and nothing vanishes uncounted."""

import asyncio
import gc
import itertools
import threading
import tracemalloc
from pathlib import Path
from typing import Any

import msgpack
import pytest

from eyestream.rim.config import LimitSettings
from eyestream.rim.ledger.ledger import Ledger
from eyestream.rim.sidecar.sender import Outbox
from eyestream.streams import StreamKey
from eyestream.wire.envelope import MAX_PAYLOAD_BYTES
from tests.rigs.footprint import rss_bytes
from tests.rigs.hostile.corpus import every, payload
from tests.rigs.rig import device_of, reserved_spans
from tests.rigs.sidecar import FEATURES, MOST_ROWS, Flood, N, flooding

MB = 1_000_000
LIMITS = LimitSettings(raw_messages=128, released_chunks=64, deadline_s=0.5)
MOST_HELD = 128 * MAX_PAYLOAD_BYTES + 64 * 4 * FEATURES * N
"""What the two queues may hold with these limits: 8.8 MB."""
MOST_TREATED = 64 * 3 * MAX_PAYLOAD_BYTES
"""What is being treated: a batch of messages, and their rows in chunks of float64, 12.6 MB."""


async def pour(flood: Flood, messages: int, burst: int = 256) -> None:
    """Messages of 64 KiB, four times faster than the sidecar can take them."""
    for _ in range(messages // burst):
        for _ in range(burst):
            flood.send(flood.rows(MOST_ROWS))
        await asyncio.sleep(0)
        flood.check(quiet=False)


async def held_after(flood: Flood, messages: int) -> tuple[int, int]:
    """Bytes that Python holds in the middle of a flood, and at most."""
    gc.collect()
    tracemalloc.start()
    await pour(flood, messages)
    held, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return held, peak


async def test_a_flood_of_the_largest_messages_is_bounded_and_counted(tmp_path: Path) -> None:
    async with flooding(tmp_path, limits=LIMITS) as flood:
        await pour(flood, 512)
        before = rss_bytes()
        await pour(flood, 4096)
        grown = rss_bytes() - before
        sidecar = flood.sidecar
        assert sidecar.worker.dropped > 1000
        assert sidecar.worker.held <= 128
        await flood.quiet()
        flood.check(quiet=True)
        assert sidecar.worker.held == 0
        assert sidecar.worker.received == 512 + 4096
        assert sidecar.pipeline.counters.taken == sidecar.worker.received - sidecar.worker.dropped
        assert grown < 40 * MB
    flood.check(quiet=True)


async def test_one_message_is_treated_as_it_comes_and_those_right_behind_it_wait(tmp_path: Path) -> None:
    async with flooding(tmp_path, limits=LIMITS) as flood:
        flood.send(flood.rows(N - 1))
        await flood.quiet()
        flood.send(flood.rows(1))
        assert flood.sidecar.pipeline.counters.released == 1  # with no turn of the loop between
        assert flood.sidecar.worker.held == 0
        for _ in range(3):
            flood.send(flood.rows(N))
        assert (flood.sidecar.pipeline.counters.due, flood.sidecar.worker.held) == (1, 3)
        await flood.quiet()
        await asyncio.sleep(0.01)
        assert flood.link.chunks == 4
        flood.check(quiet=True)


async def test_after_a_flood_the_newest_is_what_was_kept(tmp_path: Path) -> None:
    async with flooding(tmp_path, limits=LIMITS) as flood:
        for _ in range(1000):
            flood.send(flood.rows(1))
        worker = flood.sidecar.worker
        assert (worker.held, worker.dropped) == (128, 871)  # the first is treated as it comes
        await flood.quiet()
        rows = flood.sidecar.pipeline.rows(StreamKey("d0", "features"))
        assert rows.rows == rows.accepted + rows.jump == 129
        assert device_of(flood.sidecar.pipeline, "d0")._session._newest == 999
        flood.check(quiet=True)


async def test_a_broker_that_never_acknowledges_holds_up_no_release_and_costs_no_memory(tmp_path: Path) -> None:
    async with flooding(tmp_path, limits=LIMITS) as flood:
        await flood.quiet()
        flood.link.block(True)
        for _ in range(40):
            flood.send(flood.rows(MOST_ROWS))
            await asyncio.sleep(0)
        await flood.quiet()
        outbox = flood.sidecar.outbox
        released = flood.sidecar.pipeline.counters.released
        assert released == 40 * MOST_ROWS // N
        assert len(outbox) == 64
        assert outbox.overflow == released - 64
        flood.check(quiet=True)
        await asyncio.sleep(0.6)
        flood.link.block(False)
        flood.send(flood.rows(N))
        await flood.quiet()
        await asyncio.sleep(0.05)
        assert outbox.expired >= 60
        assert 1 <= flood.link.chunks <= 5
        flood.check(quiet=True)


async def test_what_is_delivered_is_never_older_than_the_deadline(tmp_path: Path) -> None:
    """The broker stops and goes on again and again; each stale chunk is dropped, none is sent late."""
    chunks: list[int] = []
    async with flooding(tmp_path, limits=LimitSettings(released_chunks=1000, deadline_s=0.2)) as flood:
        flood.link.on_chunk = lambda topic, data: chunks.append(msgpack.unpackb(data)["chunk"])
        for blocked in (False, True, False, True, False):
            flood.link.block(blocked)
            for _ in range(30):
                flood.send(flood.rows(N))
                await asyncio.sleep(0.01)
        await flood.quiet()
        await asyncio.sleep(0.05)
        flood.check(quiet=True)
        assert flood.sidecar.outbox.expired > 5
        assert flood.link.oldest_s < 0.2
        assert chunks == sorted(set(chunks))
        assert len(flood.sidecar.outbox) == 0


@pytest.mark.long
async def test_thousands_of_sessions_leave_nothing_behind(tmp_path: Path) -> None:
    async with flooding(tmp_path, limits=LIMITS) as flood:

        async def sessions(count: int) -> None:
            for _ in range(count):
                flood.next_session()
                flood.send(flood.rows(1))
                await flood.room(64)
            await flood.quiet()

        await sessions(500)
        before = rss_bytes()
        await sessions(3000)
        assert rss_bytes() - before < 4 * MB
        flood.check(quiet=True)
        assert flood.sidecar.pipeline.counters.due == 3499
        assert reserved_spans(flood.sidecar.pipeline) == 1


async def test_junk_as_fast_as_it_comes_holds_up_no_tracker(tmp_path: Path) -> None:
    """Every hostile payload over and over, oversize ones among them, while another device sends its rows."""
    junk = itertools.cycle([payload(case) for case in every() if case["reason"] is not None])
    async with flooding(tmp_path, devices=2, limits=LIMITS) as flood:
        for _ in range(8 * N):
            for _ in range(30):
                flood.send(next(junk), "d0")
            flood.send(flood.rows(1), retain=True)
            flood.send(flood.rows(1, "d1"), "d1")
            await flood.room(64)
            flood.check(quiet=False)
        await flood.quiet()
        await asyncio.sleep(0.05)
        flood.check(quiet=True)
        counters = flood.sidecar.pipeline.counters
        assert flood.sidecar.pipeline.rows(StreamKey("d1", "features")).accepted == 8 * N
        assert flood.link.chunks == 8
        assert counters.rejected["oversize"] > 30
        assert counters.rejected["retained"] == 8 * N
        assert counters.rejected.total() == 31 * 8 * N


async def test_what_is_held_at_the_end_is_counted_too(tmp_path: Path) -> None:
    async with flooding(tmp_path, limits=LIMITS) as flood:
        await flood.quiet()
        flood.link.block(True)
        flood.send(flood.rows(5 * N + 3))
        await flood.quiet()
        for _ in range(10):
            flood.send(flood.rows(N))
    flood.check(quiet=True)
    assert flood.sidecar.outbox.delivered == 0


# Negative controls: the measures notice what they are there to notice.


@pytest.mark.long
async def test_control_an_inbox_without_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with flooding(tmp_path, limits=LIMITS) as flood:
        held, _ = await held_after(flood, 2048)
        assert held < MOST_HELD + MOST_TREATED + 12 * MB
        await flood.quiet()

        monkeypatch.setattr(flood.sidecar.worker._inbox, "_length", 10**9)
        held, _ = await held_after(flood, 2048)
        assert held > MOST_HELD + MOST_TREATED + 50 * MB
        flood.lose_messages()


async def test_control_an_outbox_without_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Outbox, "__init__", _without_bound(Outbox.__init__))
    async with flooding(tmp_path, limits=LIMITS) as flood:
        await flood.quiet()
        flood.link.block(True)
        for _ in range(40):
            flood.send(flood.rows(MOST_ROWS))
            await asyncio.sleep(0)
        await flood.quiet()
        assert len(flood.sidecar.outbox) > 300


def _without_bound(init: object) -> object:
    return lambda self, length, lifetime_s: init(self, 10**9, lifetime_s)  # type: ignore[operator]


async def test_control_a_message_that_is_not_counted(tmp_path: Path) -> None:
    async with flooding(tmp_path, limits=LIMITS) as flood:
        flood.send(flood.rows(1))
        flood.send(flood.rows(1))  # the first is treated as it comes
        flood.lose_messages()
        with pytest.raises(AssertionError, match="messages"):
            flood.check(quiet=True)
        flood.sidecar.worker.received -= 1


async def test_control_a_parcel_that_vanishes(tmp_path: Path) -> None:
    async with flooding(tmp_path, limits=LIMITS) as flood:
        await flood.quiet()
        flood.link.block(True)
        flood.send(flood.rows(3 * N))
        await flood.quiet()
        flood.lose_chunk()
        with pytest.raises(AssertionError, match="released chunks"):
            flood.check(quiet=True)


async def test_a_disk_that_does_not_come_back_costs_no_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the ledger is asked, messages wait in the bounded inbox: no chunk falls due that would wait for it."""
    came_back, real = threading.Event(), Ledger.reserve

    def slow(self: Ledger, *given: Any) -> Any:
        came_back.wait(30)
        return real(self, *given)

    async with flooding(tmp_path, limits=LIMITS) as flood:
        monkeypatch.setattr(Ledger, "reserve", slow)
        for _ in range(600):
            flood.next_session()
            flood.send(flood.rows(N))
            await asyncio.sleep(0)
        worker, due = flood.sidecar.worker, flood.sidecar.pipeline.counters.due
        came_back.set()
        assert worker.held == 128
        assert worker.dropped > 300
        assert due < 80
        await flood.quiet()
        flood.check(quiet=True)
