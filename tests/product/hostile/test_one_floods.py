"""One device floods: the others' messages are read first, none of them is dropped, and the time is theirs."""

import asyncio
import logging
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from eyestream.core.chunking.settings import DeviceSettings
from eyestream.rim.config import LimitSettings
from eyestream.rim.ledger.ledger import Ledger
from eyestream.rim.mqtt.messages import TOO_LARGE
from eyestream.rim.sidecar.pipeline import Arrival, Pipeline
from eyestream.rim.sidecar.worker import _Share
from eyestream.streams import StreamKey
from eyestream.wire.envelope import MAX_PAYLOAD_BYTES
from eyestream.wire.raw import encode_raw
from tests.rigs.payloads import rows_of_a_stranger
from tests.rigs.sidecar import MOST_ROWS, N, flooding

LIMITS = LimitSettings(raw_messages=128, released_chunks=64, deadline_s=0.5)
CALM, LOUD = "d0", "d1"
GARBAGE = b"\xde\x4e\x20\xa1v\x01" + b"\xa1x\xc0" * 19_999
"""A map of 20,000 entries: about half a millisecond until it is refused."""


def stream_of(rate_hz: float, features: int) -> DeviceSettings:
    """A stream of so many features."""
    names = tuple(f"f{i}" for i in range(features))
    return DeviceSettings(LOUD, "features", 1, names, rate_hz, N, grace_s=1.0, idle_s=60.0, jump_chunks=4)


class Order(list[str]):
    """Whose messages were decoded, in order, and the seconds that the loud one's took."""

    loud_s = 0.0


def reading(monkeypatch: pytest.MonkeyPatch, costs_s: float = 0.0) -> Order:
    """Note whose messages are decoded; each of the loud one's may take longer."""
    order, real, clock = Order(), Pipeline.feed, time.perf_counter

    def feed(self: Pipeline, arrival: Arrival) -> None:
        order.append(arrival.topic.split("/")[2])
        loud, began = order[-1] == LOUD, clock()
        while loud and clock() < began + costs_s:
            pass
        real(self, arrival)
        order.loud_s += (clock() - began) * loud

    monkeypatch.setattr(Pipeline, "feed", feed)
    return order


async def test_what_the_others_send_is_read_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not after the hundred that came before it."""
    order = reading(monkeypatch)
    async with flooding(tmp_path, devices=2, limits=LIMITS) as flood:
        await flood.quiet()
        for _ in range(100):
            flood.send(GARBAGE, LOUD)
        flood.send(flood.rows(1, CALM), CALM)
        await flood.quiet()
        assert order.index(CALM) <= 2
        assert order.count(LOUD) == 100
        flood.check(quiet=True)


async def test_a_batch_is_short_where_several_are_served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes while one device's messages are read waits for a few of them, and not for 64."""
    order = reading(monkeypatch, costs_s=0.003)
    async with flooding(tmp_path, devices=2, limits=LIMITS) as flood:
        await flood.quiet()
        for _ in range(60):
            flood.send(GARBAGE, LOUD)
        while len(order) < 3:  # noqa: ASYNC110  a list, no event
            await asyncio.sleep(0)
        before = len(order)
        assert before <= 5  # the loop has its turn before all are read
        flood.send(flood.rows(1, CALM), CALM)
        await flood.quiet()
        assert order.index(CALM) - before <= 2
        assert order.count(LOUD) == 60


async def test_none_of_the_others_messages_is_dropped(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with flooding(tmp_path, devices=2, limits=LIMITS) as flood:
        await flood.quiet()
        with caplog.at_level(logging.WARNING, "eyestream.tracker"):
            for _ in range(30):
                flood.send(flood.rows(1, CALM), CALM)
                for _ in range(100):
                    flood.send(GARBAGE, LOUD)
            await flood.quiet()
        assert flood.sidecar.worker.dropped > 2000
        assert flood.sidecar.pipeline.rows(StreamKey(CALM, "features")).accepted == 30
        flood.check(quiet=True)
    said = [record.getMessage() for record in caplog.records if "floods" in record.getMessage()]
    assert len(said) == 1
    assert said[0].startswith(f"{LOUD}/features: its tracker floods (flood): it sends far more than its rate_hz.")


async def test_who_floods_has_a_fifth_of_the_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However dear its messages are. A little more is allowed here, for the message that is under way at each end."""
    order = reading(monkeypatch, costs_s=0.004)
    async with flooding(tmp_path, devices=2, limits=LIMITS) as flood:
        await flood.quiet()
        for _ in range(128):
            flood.send(GARBAGE, LOUD)
        await asyncio.sleep(0.01)
        began, loud_s, read = time.perf_counter(), order.loud_s, len(order)
        while time.perf_counter() < began + 0.5:
            flood.send(GARBAGE, LOUD)
            await asyncio.sleep(0.001)
        assert order.loud_s - loud_s < 0.25 * (time.perf_counter() - began)
        assert len(order) > read


async def test_a_burst_is_kept(tmp_path: Path) -> None:
    """As many as may wait, at once and at any size: all are read. So are ten times as many that leave time to read."""
    async with flooding(tmp_path, devices=2, limits=LIMITS) as flood:
        for _ in range(128):
            flood.send(flood.rows(MOST_ROWS // 8, LOUD), LOUD)
        await flood.quiet()
        await flood.room(0)
        for _ in range(20):
            for _ in range(64):
                flood.send(flood.rows(1, LOUD), LOUD)
            await flood.room(0)
        await flood.quiet()
        assert flood.sidecar.worker.dropped == 0
        assert flood.sidecar.pipeline.counters.taken == 128 + 20 * 64


async def test_a_message_that_is_refused_unread_is_no_flood(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    order = reading(monkeypatch)
    async with flooding(tmp_path, devices=2, limits=LIMITS) as flood:
        await flood.quiet()
        flood.send(TOO_LARGE, LOUD)
        flood.send(flood.rows(1, LOUD), LOUD)
        assert order == [LOUD], "it is treated as it comes"
        await flood.quiet()


async def test_a_device_alone_has_all_the_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody else waits: nothing is held back, and a batch is as long as ever."""
    order = reading(monkeypatch)
    async with flooding(tmp_path, limits=LIMITS) as flood:
        await flood.quiet()
        for _ in range(1000):
            flood.send(GARBAGE)
        await flood.quiet()
        assert len(order) == 129


async def test_a_slow_disk_is_no_flood(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """What is dropped because the ledger does not answer is counted, and no tracker is accused."""
    came_back, real = threading.Event(), Ledger.reserve

    def slow(self: Ledger, *given: Any) -> Any:
        came_back.wait(30)
        return real(self, *given)

    async with flooding(tmp_path, devices=4, limits=LimitSettings(raw_messages=64)) as flood:
        monkeypatch.setattr(Ledger, "reserve", slow)
        flood.send(flood.rows(N, CALM), CALM)
        await asyncio.sleep(0)
        for _ in range(20):
            for device in flood.devices:
                flood.send(flood.rows(1, device), device)
            await asyncio.sleep(0)
        came_back.set()
        assert flood.sidecar.worker.dropped > 10
        await flood.quiet()
        flood.check(quiet=True)
    assert "floods" not in caplog.text


@pytest.mark.parametrize(("rate_hz", "features"), [(2.0, 52), (90.0, 2), (1000.0, 6), (1000.0, 1)])
@pytest.mark.parametrize("rows", [1, 7, 64])
def test_at_four_times_its_rate_a_stream_is_no_flood(rate_hz: float, features: int, rows: int) -> None:
    """With times and a wearer, in messages of any size; at a hundred times its rate it is one."""

    def spent(times: float) -> bool:
        share = _Share(stream_of(rate_hz, features), 512)
        values = rows_of_a_stranger(rows, features)
        size = len(encode_raw(2**63, 2**63, values, 2**32 - 1, t=values[:, 0].astype(float), wearer=2**32 - 1))
        assert size <= MAX_PAYLOAD_BYTES
        for number in range(3000):
            share.note(size, 1e6 + number * rows / (times * rate_hz))
        return share.is_spent

    assert not spent(3.9)
    assert spent(100)


def test_what_is_spent_comes_back() -> None:
    share = _Share(stream_of(2.0, 1), 8)
    for _ in range(8):
        share.note(10, 5.0)
    assert share.is_spent
    share.note(10, 5.1)
    assert share.is_spent
    share.note(10, 6.0)  # eight rows in a second
    assert not share.is_spent
