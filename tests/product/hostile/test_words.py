"""A stranger states devices of a sidecar and takes it back without end, beside rows: the work is bounded."""

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest

from eyestream.rim.config import LimitSettings
from eyestream.rim.mqtt.transport import Message
from eyestream.rim.sidecar.sidecar import DISPUTE_SECONDS
from eyestream.wire.status import Owner, encode_owner
from eyestream.wire.topics import owner_topic
from tests.rigs.sidecar import Flood, N, flooding

LIMITS = LimitSettings(raw_messages=256, released_chunks=256, deadline_s=30.0)
DEVICES = 20
OWN, OTHER = owner_topic("sidecar"), owner_topic("x")


def state(flood: Flood, topic: str, *devices: str) -> None:
    """A word of another ledger; an empty one without devices."""
    payload = encode_owner(Owner("f" * 32, devices)) if devices else b""
    flood.sidecar._owners.deliver(Message(topic, payload, False))


class Statements:
    """How often the status of every stream was stated."""

    def __init__(self, flood: Flood) -> None:
        self.count = 0
        board = flood.sidecar._status
        update = board.update

        def counted(**how: Any) -> None:
            self.count += 1
            update(**how)

        board.update = counted  # type: ignore[method-assign]


@pytest.mark.parametrize("topic", [OWN, OTHER])
@pytest.mark.parametrize("rows", [1, N])
async def test_words_do_not_have_all_streams_stated_with_each_message(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, topic: str, rows: int
) -> None:
    """With rows between them, or with whole chunks, of which some are withheld and some are not."""
    caplog.set_level(logging.INFO)
    clock = asyncio.get_running_loop().time
    async with flooding(tmp_path, devices=DEVICES, limits=LIMITS) as flood:
        await flood.quiet()
        caplog.clear()
        statements, began = Statements(flood), clock()
        for number in range(200):
            state(flood, topic, *(["d0"] if number % 2 == 0 else []))
            device = "d0" if number % 4 < 2 else f"d{number % DEVICES}"
            flood.send(flood.rows(rows, device), device)
            await asyncio.sleep(0)
            await asyncio.sleep(0.001)
        await flood.quiet()
        await asyncio.sleep(1.5 * DISPUTE_SECONDS)
        assert 1 <= statements.count <= 2 + (clock() - began) / DISPUTE_SECONDS
        assert len(caplog.messages) == 2
        flood.check(quiet=True)
        if rows == N:
            counters = flood.sidecar.pipeline.counters
            assert counters.withheld["owner"] > 10
            assert counters.released > 10


async def test_what_is_disputed_is_withheld_before_it_is_stated(tmp_path: Path) -> None:
    async with flooding(tmp_path, devices=2, limits=LIMITS) as flood:
        await flood.quiet()
        statements = Statements(flood)
        state(flood, OTHER, "d0")
        for device in flood.devices:
            flood.send(flood.rows(N, device), device)
        await flood.quiet()
        assert flood.sidecar.pipeline.counters.withheld["owner"] == 1
        assert flood.sidecar.pipeline.counters.released == 1
        await asyncio.sleep(1.5 * DISPUTE_SECONDS)
        assert statements.count == 1
