"""A tracker that is not heard for a while, and does not know it, is heard again."""

import asyncio
from pathlib import Path

import pytest

from eyestream.rim.ledger.reading import read_ledger
from eyestream.streams import StreamKey
from eyestream_lab.testing.clocks import until
from tests.rigs.mosquitto import Mosquitto
from tests.rigs.proxy import Fault, FaultProxy
from tests.rigs.sidecar import running, settings_for
from tests.rigs.storms import Ear, ear, traffic, watching


def sessions(heard: Ear) -> list[list[int]]:
    """Chunk numbers of each session, in the order in which they were first heard."""
    said: dict[int, list[int]] = {}
    for session, chunk in dict.fromkeys(heard.order):
        said.setdefault(session, []).append(chunk)
    return list(said.values())


@pytest.mark.long
@pytest.mark.parametrize("by", ["idle", "jump"])
async def test_the_raw_link_of_the_sidecar_alone_is_cut(mosquitto: Mosquitto, tmp_path: Path, by: str) -> None:
    """The tracker's own link stands: it goes on in the same session, and so, soon, does the release."""
    idle_s = 0.6 if by == "idle" else 60.0
    async with FaultProxy(mosquitto.port) as proxy, ear(mosquitto.url) as heard:
        settings = settings_for(mosquitto.url, tmp_path, raw_url=proxy.url, idle_s=idle_s, grace_s=0.2, jump_chunks=8)
        async with running(settings) as sidecar, watching(sidecar) as watch, traffic(mosquitto.url) as load:
            session = load.publisher.session
            for turn in range(2):
                await until(lambda turn=turn: len(sessions(heard)) == turn + 1 and len(sessions(heard)[-1]) > 5)
                await proxy.down()
                await asyncio.sleep(1.0)
                proxy.fault = Fault()
                await proxy.up()
                await until(lambda: sidecar.raw_stands, 5)
            await until(lambda: len(sessions(heard)) == 3 and len(sessions(heard)[-1]) > 5)
            assert load.publisher.session == session
            assert load.publisher.lost == 0
        await until(lambda: len(heard.payloads) == sidecar.outbox.delivered)
    assert (heard.conflicts, heard.disorder, watch.broken) == (0, 0, 0)
    assert all(chunks == list(range(len(chunks))) for chunks in sessions(heard))
    assert sidecar.pipeline.rows(StreamKey("hmd-1", "features")).jump == (0 if by == "idle" else 2)
    assert read_ledger(settings.sidecar.ledger).odometers["hmd-1"].released == sidecar.pipeline.counters.released
