"""Kill workers and nodes of a fleet on three NATS servers; what an outsider saw must be each chunk once.

    python -m tools.verification.shard_kills --kills 1000 --nodes 50

Workers are processes of `eyestream shard`, one for each partition. Trackers send rows all the time; every byte string
is compared that anybody could hear, and every one that the log keeps. Nodes are killed one after the other, each when
the last one has caught up: raw rows are in the memory of three. The last line sums up; exit code 1 when a chunk has two
byte strings or is missing, a session was broken, or the ledgers do not have exactly what was released.
"""

import argparse
import asyncio
import contextlib
import random
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error
from nats.js.api import DeliverPolicy

from eyestream.errors import LinkError
from eyestream.rim.logs.nats import PRIVATE, connected
from eyestream.streams import StreamKey
from eyestream.testing.clocks import until
from tests.rigs.fleets import Seen, Workers, fleet_config, raw_messages
from tests.rigs.nats import NatsServer, cluster

PARTITIONS = 4
ROWS = 32


async def patiently(call: Callable[[], Awaitable[object]], seconds: float = 60.0) -> None:
    """Until it works: a cluster elects a leader first, and again after each kill."""
    end = time.monotonic() + seconds
    while True:
        try:
            await call()
        except (Error, LinkError, TimeoutError, OSError):
            if time.monotonic() > end:
                raise
            await asyncio.sleep(0.2)
        else:
            return


def note(seen: Seen, message: Msg) -> None:
    seen.note((message.headers or {})["Nats-Msg-Id"], message.subject.split(".")[2], message.data)


async def hear(client: Client, seen: Seen) -> None:
    async for message in (await client.subscribe("eyestream.v1.*.*.private")).messages:
        note(seen, message)


async def send(client: Client, key: StreamKey, payload: bytes) -> None:
    """As a tracker that sends again until the log has it; some partitions have no leader for a while."""
    jetstream = client.jetstream(timeout=1.0)
    await patiently(lambda: jetstream.publish(f"eyestream.v1.{key.device}.{key.stream}.raw", payload))


async def read_all(client: Client, seen: Seen) -> None:
    """What the log keeps."""
    reader = await client.jetstream().subscribe(
        "", stream=PRIVATE, deliver_policy=DeliverPolicy.ALL, ordered_consumer=True
    )
    end = (await client.jetstream().stream_info(PRIVATE)).state.messages
    for _ in range(end):
        note(seen, await reader.next_msg(timeout=10))


async def kill_workers(workers: Workers, kills: int, luck: random.Random) -> None:
    while workers.kills < kills:
        await asyncio.sleep(luck.uniform(0.2, 1.2))
        await asyncio.to_thread(workers.kill, luck.randrange(PARTITIONS))


async def kill_nodes(client: Client, servers: list[NatsServer], nodes: int, luck: random.Random) -> None:
    for _ in range(nodes):
        server = luck.choice(servers)
        await asyncio.to_thread(server.kill)
        await asyncio.sleep(luck.uniform(0.2, 2.0))
        await asyncio.to_thread(server.start)
        await asyncio.sleep(1.0)
        await patiently(lambda: caught_up(client))


async def caught_up(client: Client) -> None:
    """Raise TimeoutError while a copy of a stream is behind."""
    for name in (*(f"EYESTREAM_RAW_{partition}" for partition in range(PARTITIONS)), PRIVATE):
        group = (await client.jetstream(timeout=2.0).stream_info(name)).cluster
        copies = group.replicas if group is not None else None
        if not copies or len(copies) < 2 or not all(copy.current for copy in copies):
            raise TimeoutError(name)


async def run(kills: int, nodes: int, devices: int, seed: int, folder: Path) -> list[str]:
    """What went wrong."""
    luck, seen = random.Random(seed), Seen()
    names = [f"d{number}" for number in range(devices)]
    servers = cluster(folder / "nats", PARTITIONS)
    for server in servers:
        await asyncio.to_thread(server.start, wait=False)
    try:
        async with connected([server.url for server in servers]) as client:
            await patiently(client.jetstream().account_info)
            config = fleet_config(folder, "nats", [server.url for server in servers], PARTITIONS, names)
            workers = await asyncio.to_thread(Workers, config, PARTITIONS)
            begin = time.monotonic()
            tasks = [
                asyncio.create_task(kill_workers(workers, kills, luck)),
                asyncio.create_task(kill_nodes(client, servers, nodes, luck)),
            ]
            hearing = asyncio.create_task(hear(client, seen))
            chunks = 0
            while not all(task.done() for task in tasks):
                await asyncio.gather(*(send(client, *one) for one in raw_messages(names, 1, ROWS, first=chunks)))
                chunks += 1
                await asyncio.sleep(0.1)
            await asyncio.gather(*tasks)
            with contextlib.suppress(TimeoutError):
                await until(lambda: len(seen.payloads) >= devices * chunks, 30.0)
            await asyncio.to_thread(workers.stop)
            gap = seen.longest_gap_s  # of what was heard as it came
            await asyncio.sleep(0.5)
            hearing.cancel()
            await read_all(client, seen)
        found = seen.faults(devices, chunks, workers.released())
        print(
            f"{workers.kills} workers and {nodes} nodes killed in {time.monotonic() - begin:.0f} s: "
            f"{len(seen.payloads)} of {devices * chunks} chunks, heard {seen.messages} times, longest gap "
            f"{gap:.2f} s; {len(found)} faults"
        )
        return found
    finally:
        for server in servers:
            server.kill()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=120)
    parser.add_argument("--nodes", type=int, default=8)
    parser.add_argument("--devices", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = asyncio.run(run(options.kills, options.nodes, options.devices, options.seed, Path(folder)))
    for fault in found:
        print(fault, file=sys.stderr)
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
