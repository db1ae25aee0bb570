"""Three NATS servers that end in order, are gone with their host, are full, or all lose their memory: a log then."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from eyestream.errors import LinkError
from eyestream_lab.testing.clocks import until
from tests.rigs.fleets import Seen, Workers, fleet_config, raw_messages
from tests.rigs.nats import NatsServer, cluster, patiently

UNCLOSED = "ignore:Exception ignored in. <function StreamWriter.__del__:pytest.PytestUnraisableExceptionWarning"
"""nats-py drops a connection on which no server answers, and tries the next one, without closing it."""

pytestmark = [
    pytest.mark.needs("nats"),
    pytest.mark.long,
    pytest.mark.timeout(240),
    pytest.mark.filterwarnings(UNCLOSED),
]


@pytest.fixture
def servers(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[list[NatsServer]]:
    made = cluster(tmp_path / "nats", 1, getattr(request, "param", ("1G", "1G", "1G")))
    for server in made:
        server.start(wait=False)
    yield made
    for server in made:
        server.kill()


@contextlib.asynccontextmanager
async def joined(servers: list[NatsServer]) -> AsyncIterator[tuple[Any, Any]]:
    """A client of these servers, and the partition."""
    from eyestream_fleet.nats.log import NatsLog, connected, make_streams

    async with connected([server.url for server in servers]) as client:
        await patiently(lambda: make_streams(client, [0], 1, replicas=3, raw_age_s=600.0, released_age_s=600.0))
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


@pytest.mark.parametrize("servers", [("2M", "1G", "1G")], indirect=True)
async def test_a_server_whose_memory_is_full_stops_no_reader(servers: list[NatsServer]) -> None:
    """It takes nothing more, says that it is healthy, and a consumer there waits for ever for what the others have."""
    async with joined(servers) as (client, log):
        for number in range(40):
            payload = b"%d " % number + bytes(100_000)
            await patiently(
                lambda payload=payload: client.jetstream(timeout=1.0).publish("eyestream_raw.0.d.features", payload)
            )
        while await patiently(lambda: place(log)) != servers[0].name:
            pass
        found: set[int] = set()
        async with asyncio.timeout(120.0):
            while len(found) < 40:
                found |= {int(entry.payload.split()[0]) for entry in await read(log)}


async def place(log: Any) -> str | None:
    """Where a new consumer is."""
    await log.seek(1)
    return (await log._reader.consumer_info()).cluster.leader  # type: ignore[no-any-return]


async def test_a_log_that_all_servers_lost_is_read_from_its_beginning(
    servers: list[NatsServer], tmp_path: Path
) -> None:
    """Their memory is gone; their disks know the streams, which keep their names and begin again at offset 1.

    Trackers go on at once: the log is longer than before when its worker comes back.
    """
    from eyestream_fleet.nats.log import NatsLog, connected

    devices, before, after = ["d0", "d1"], 5, 9
    urls, seen = [server.url for server in servers], Seen()
    config = fleet_config(tmp_path, urls, 1, devices)
    async with connected(urls) as client:
        await patiently(client.jetstream().account_info)
        log = NatsLog(client, 0)

        async def send(first: int, chunks: int) -> None:
            for key, payload in raw_messages(devices, chunks, 32, first=first):
                subject = f"eyestream.v1.{key.device}.{key.stream}.raw"
                await patiently(lambda s=subject, p=payload: client.jetstream(timeout=1.0).publish(s, p))

        async def hear() -> None:
            async for message in (await client.subscribe("eyestream.v1.*.*.private")).messages:
                seen.note((message.headers or {})["Nats-Msg-Id"], message.subject.split(".")[2], message.data)

        hearing = asyncio.create_task(hear())
        with await asyncio.to_thread(Workers, config, 1) as workers:
            await send(0, before)
            await seen.wait_for(before * len(devices), 60.0)
            was = await log.bounds()
            await asyncio.to_thread(workers.end, 0)
            for server in servers:
                server.kill()
            for server in servers:
                server.start(wait=False)
            await send(before, after)
            now = await patiently(log.bounds)
            assert (now.epoch, now.first) == (was.epoch, was.first), "control: nothing says that it is another log"
            assert now.end > was.end
            workers.start(0)
            await seen.wait_for((before + after) * len(devices), 60.0)
            await asyncio.to_thread(workers.stop)
        hearing.cancel()
        assert seen.faults(dict.fromkeys(devices, before + after), workers.released()) == []
