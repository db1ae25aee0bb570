"""What an application hears between chunks, who is served, and chunks without asyncio."""

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator
from types import UnionType

import numpy as np
import pytest

import eyestream
from eyestream.sdk import chunks as sdk_chunks
from eyestream.sdk.chunk import Chunk
from eyestream.sdk.chunks import Chunks, Connection, Event, Gap, Silence
from eyestream.sdk.odometer import OtherLedger
from eyestream.sdk.subscriber import subscribe
from eyestream.wire.status import Budget, Reading, Status, encode_budget, encode_reading
from eyestream_lab.embedded import free_port
from eyestream_lab.testing.clocks import PATIENCE_S
from tests.rigs.mosquitto import Mosquitto
from tests.rigs.spoken import described_as, speaking_to


async def heard(events: AsyncIterator[Event], kind: type | UnionType) -> Event:
    """The next event of a kind."""
    async with asyncio.timeout(PATIENCE_S):
        async for event in events:
            if isinstance(event, kind):
                return event
    raise AssertionError("it ended")


async def test_chunks_gaps_states_and_budget_in_one_loop(mosquitto: Mosquitto) -> None:
    async with speaking_to(mosquitto.url) as stream, subscribe(mosquitto.url, "hmd-1") as chunks:
        events = chunks.events()
        first = [await heard(events, Status | Budget) for _ in range(2)]  # in any order
        assert sorted(first, key=repr) == [Budget(3600, "session"), Status("online", "ready")]
        await stream.chunk(5)
        await stream.chunk(8)
        taken = [await heard(events, object) for _ in range(3)]
        assert [type(event) for event in taken] == [Chunk, Gap, Chunk]
        assert taken[1] == Gap(2**63 + 9, 6, 2)
        await stream.chunk(0, session=3)
        assert await heard(events, object) != Gap(3, 0, 0)  # a session that begins has no gap
        await stream.status("exhausted", "day")
        assert await heard(events, Status) == Status("exhausted", "day")
        await stream.say("status", b"\xc1")
        await stream.chunk(1, session=3)
        await heard(events, Chunk)
        assert chunks.refusals == {"not_msgpack": 1}
        assert chunks.refused == 1


async def test_each_change_to_another_ledger_is_told(mosquitto: Mosquitto) -> None:
    """From one to another and back again: both are changes, in the same words."""
    async with speaking_to(mosquitto.url) as stream, subscribe(mosquitto.url, "hmd-1") as chunks:
        events = chunks.events()
        for life, ledger in enumerate("1212"):
            for reads in (10 * life, 10 * life + 1):
                await stream.say("odometer", encode_reading(Reading(ledger * 32, life, 10 * life, reads)))
            if life:
                assert await heard(events, OtherLedger) == OtherLedger(moved=False)


async def test_a_silent_stream_is_told_once(mosquitto: Mosquitto, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sdk_chunks, "_SILENT_CHUNKS", 0.1)
    async with speaking_to(mosquitto.url) as stream, subscribe(mosquitto.url, "hmd-1") as chunks:
        events = chunks.events()
        assert await heard(events, Silence) == Silence(0.2)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0.5):
                raise AssertionError(await anext(events))
        events = chunks.events()
        await stream.chunk(0)
        assert isinstance(await heard(events, Chunk), Chunk)
        assert isinstance(await heard(events, Silence), Silence)


async def test_a_link_that_is_lost_and_back(mosquitto: Mosquitto) -> None:
    async with subscribe(mosquitto.url, "hmd-1") as chunks:
        assert chunks.connected
        events = chunks.events()
        waiting = asyncio.create_task(heard(events, Connection))
        await asyncio.sleep(0)
        mosquitto.stop(kill=True)
        assert await waiting == Connection(False)
        mosquitto.start()
        assert await heard(events, Connection) == Connection(True)


def test_a_session_that_one_joins_has_no_gap() -> None:
    chunks = Chunks("hmd-1", 4)
    assert chunks.exhausted is False
    assert chunks.refused == 0


async def test_who_is_served(mosquitto: Mosquitto) -> None:
    async with speaking_to(mosquitto.url), speaking_to(mosquitto.url, "hmd-2", "hand"):
        found = await eyestream.discover(mosquitto.url, seconds=0.5)
    assert [(one.device, one.stream, one.status) for one in found] == [
        ("hmd-1", "features", Status("online", "ready")),
        ("hmd-2", "hand", Status("online", "ready")),
    ]
    assert found[0].meta is not None
    assert found[0].meta.names == ("rate_fixations", "blink_rate")


async def test_a_chunk_has_units_errors_moments_and_age(mosquitto: Mosquitto) -> None:
    now = 1000.0
    async with (
        speaking_to(mosquitto.url) as stream,
        subscribe(mosquitto.url, "hmd-1", clock=lambda: now) as chunks,
    ):
        await stream.chunk(0)
        chunk = await asyncio.wait_for(anext(chunks), PATIENCE_S)
        now = 1002.25
        await stream.chunk(1)
        late = await asyncio.wait_for(anext(chunks), PATIENCE_S)
    assert (chunk.units, chunk.noise_sd.tolist()) == (("1/s", "1"), [0.5, 0.5])
    np.testing.assert_allclose(chunk.when, [998.5, 999.0, 999.5, 1000.0])
    assert (chunk.latency_s, chunk.age_s) == pytest.approx((0.0, 1.5))
    assert (late.latency_s, late.age_s) == pytest.approx((0.25, 1.75))
    assert chunk.oldest_gaze_s is None, "these words do not say how far back a row reaches"


async def test_chunks_without_asyncio(mosquitto: Mosquitto) -> None:
    """The connection and its thread end with the loop."""

    def application() -> list[int]:
        got = []
        for chunk in eyestream.listen(mosquitto.url, "hmd-1"):
            got.append(chunk.index)
            if len(got) == 2:
                break
        return got

    async with speaking_to(mosquitto.url) as stream:
        at_work = asyncio.create_task(asyncio.to_thread(application))
        index = 0
        while not at_work.done():
            await stream.chunk(index)
            index += 1
            await asyncio.sleep(0.05)
        first, second = await at_work
    assert second == first + 1
    assert [thread.name for thread in threading.enumerate() if thread.name == "eyestream"] == []


def test_listening_ends_after_silence_and_says_what_is_wrong(mosquitto: Mosquitto) -> None:
    assert list(eyestream.listen(mosquitto.url, "hmd-1", silent_s=0.1)) == []
    with pytest.raises(eyestream.LinkError, match="cannot connect"):
        next(eyestream.listen(f"mqtt://127.0.0.1:{free_port()}", "hmd-1", wait_s=1.0))


@pytest.mark.needs("frames")
async def test_tables_of_pandas_and_arrays_of_xarray(mosquitto: Mosquitto) -> None:
    async with speaking_to(mosquitto.url) as stream, subscribe(mosquitto.url, "hmd-1") as chunks:
        await stream.chunk(3)
        chunk = await asyncio.wait_for(anext(chunks), PATIENCE_S)
    table, array = chunk.to_pandas(), chunk.to_xarray()
    assert list(table.columns) == ["rate_fixations", "blink_rate"]
    assert table.index.tolist() == chunk.t.tolist()
    assert table["blink_rate"].tolist() == chunk.values[1].tolist()
    assert array.sel(feature="blink_rate").values.tolist() == chunk.values[1].tolist()
    assert (array.attrs["epsilon"], array.unit.values.tolist()) == (1.5, ["1/s", "1"])


async def test_paths_of_secrets_may_be_text(mosquitto: Mosquitto) -> None:
    settings = eyestream.BrokerSettings(mosquitto.url, username="a", password_file="/nowhere")
    with pytest.raises(eyestream.ConfigError, match="/nowhere: cannot be read"):
        await subscribe(settings, "hmd-1").__aenter__()


async def test_who_comes_after_the_budget_is_spent_learns_when_there_is_more(mosquitto: Mosquitto) -> None:
    async with speaking_to(mosquitto.url) as stream:
        await stream.say("budget", encode_budget(Budget(0, "day", resumes_at=86_400)))
        await stream.status("exhausted", "day")
        for _ in range(10):
            async with subscribe(mosquitto.url, "hmd-1") as chunks, asyncio.timeout(PATIENCE_S):
                assert [chunk async for chunk in chunks.until_exhausted()] == []
                assert chunks.budget == Budget(0, "day", resumes_at=86_400)


async def test_the_wait_for_silence_is_never_shorter_than_a_clock_can_show() -> None:
    """Else a loop that wakes a waiter a little early asks again without an end: found by a seed of the world."""
    chunks = Chunks("hmd-1", 4)
    chunks.connected, chunks.status, chunks.meta = True, Status("online", "ready"), described_as(("a",), ("1",))
    for early in (0.0, 1e-15, 1e-12, 1e-9, 1e-7, 2e-6, 1.0):
        patience, silence = chunks._patience_s(6.0 - early), chunks._silence(6.0 - early)
        assert (patience is None) == (silence == Silence(6.0))
        assert patience is None or 1e7 + patience > 1e7, early
    assert chunks._silence(5.9) is None
