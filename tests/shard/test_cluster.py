"""Three NATS servers, one of which ends in order, or is gone with its host: what a log does then."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from eyestream.errors import LinkError
from eyestream.testing.clocks import until
from tests.rigs.nats import NatsServer, cluster, patiently

pytestmark = [pytest.mark.needs("nats"), pytest.mark.long, pytest.mark.timeout(240)]


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[list[NatsServer]]:
    made = cluster(tmp_path / "nats", 1)
    for server in made:
        server.start(wait=False)
    yield made
    for server in made:
        server.kill()


@contextlib.asynccontextmanager
async def joined(servers: list[NatsServer]) -> AsyncIterator[tuple[Any, Any]]:
    """A client of these servers, and the partition."""
    from eyestream.rim.logs.nats.log import NatsLog, connected, make_streams

    async with connected([server.url for server in servers]) as client:
        await patiently(lambda: make_streams(client, [0], replicas=3, raw_age_s=600.0, released_age_s=600.0))
        yield client, NatsLog(client, 0)


async def leader(client: Any) -> str | None:
    group = (await client.jetstream(timeout=1.0).stream_info("EYESTREAM_RAW_0")).cluster
    return group.leader if group is not None else None


async def test_a_server_that_is_drained_hands_its_leaders_on_before_it_ends(servers: list[NatsServer]) -> None:
    """So an upgrade, one server after the other, waits for no election; `config/fleet` drains them in this way."""
    async with joined(servers) as (client, _):
        first = await patiently(lambda: leader(client))
        server = next(one for one in servers if one.name == first)
        others = [one for one in servers if one is not server]
        before = {one: len(logged(one, "new stream leader", "EYESTREAM_RAW_0")) for one in others}
        server.drain()
        await until(lambda: server.drained, 120.0)
        (ended,) = logged(server, "Initiating Shutdown")
        led = [at for one in others for at in logged(one, "new stream leader", "EYESTREAM_RAW_0")[before[one] :]]
        assert led, "nobody led after it"
        assert min(led) < ended


def logged(server: NatsServer, *words: str) -> list[str]:
    """When a server has written lines with these words."""
    lines = server.log.read_text(encoding="utf-8").splitlines()
    return [" ".join(line.split()[1:3]) for line in lines if all(word in line for word in words)]


async def read(log: Any) -> list[Any]:
    """As a worker reads: from the beginning again when there is trouble."""
    async with asyncio.timeout(60.0):
        while True:
            try:
                if entries := await log.fetch(10, 0.1):
                    return entries  # type: ignore[no-any-return]
            except LinkError:
                await asyncio.sleep(0.1)
                with contextlib.suppress(LinkError):
                    await log.seek(1)


@pytest.mark.parametrize("its_own", [True, False])
async def test_a_host_that_is_gone_stops_no_reader(servers: list[NatsServer], its_own: bool) -> None:
    """It closes no connection. `its_own`: the reader is connected to it; else it is where the reader's consumer was."""
    async with joined(servers[:1]) as (_, log):
        place = None
        while place is None or (place is servers[0]) != its_own:
            await log.seek(1)
            info = await log._reader.consumer_info()
            place = next(one for one in servers if one.name == info.cluster.leader)
        place.freeze()
        async with joined([one for one in servers if one is not place]) as (sender, _):
            await patiently(lambda: sender.jetstream(timeout=1.0).publish("eyestream_raw.0.d.features", b"late"))
        assert [entry.payload for entry in await read(log)] == [b"late"]
