"""The example of another client: its rows are released, and it reads what is released."""

import asyncio
from pathlib import Path

import aiomqtt
import numpy as np
from other_client import chunks, send

from eyestream.testing.clocks import until
from tests.rigs.mosquitto import Mosquitto
from tests.rigs.payloads import rows_of_a_stranger
from tests.rigs.sidecar import raw_stands, running, settings_for
from tests.rigs.storms import NAMES


async def test_from_tracker_to_application(mosquitto: Mosquitto, tmp_path: Path) -> None:
    got: list[tuple[int, np.ndarray]] = []

    async def read(client: aiomqtt.Client) -> None:
        async for chunk in chunks(client, "hmd-1"):
            got.append(chunk)

    async with (
        running(settings_for(mosquitto.url, tmp_path)) as sidecar,
        aiomqtt.Client("127.0.0.1", mosquitto.port) as tracker,
        aiomqtt.Client("127.0.0.1", mosquitto.port) as application,
    ):
        reading = asyncio.create_task(read(application))
        await until(lambda: raw_stands(sidecar) and sidecar.private_stands)
        await send(tracker, "hmd-1", [rows_of_a_stranger(16, len(NAMES))] * 6)
        await until(lambda: len(got) == 3)
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
        assert sidecar.pipeline.counters.rejected.total() == 0
    assert [number for number, _ in got] == [0, 1, 2]
    assert {values.shape for _, values in got} == {(len(NAMES), 32)}
