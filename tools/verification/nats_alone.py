"""How long a stream takes nothing when the server that leads it ends: three NATS servers, and nothing of ours.

    python -m tools.verification.nats_alone --turns 6

The stream is in the memory of three. A client of the other two publishes all the time, with acknowledgements and
without, as trackers do at QoS 0. For each way to end: the longest time between two acknowledgements, and what was lost
without.
"""

import argparse
import asyncio
import contextlib
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from nats.aio.client import Client
from nats.errors import Error
from nats.js.api import StorageType, StreamConfig

from eyestream_fleet.nats.log import connected
from eyestream_lab.testing.clocks import until
from tests.rigs.nats import NatsServer, cluster, patiently

WAYS: dict[str, Callable[[NatsServer], None]] = {"killed": NatsServer.kill, "ended in order": NatsServer.drain}
_STREAM, _PAUSE_S, _WATCH_S = "ALONE", 0.01, 14.0


async def leader(client: Client) -> str:
    """Who leads; TimeoutError while a copy is behind."""
    group = (await client.jetstream(timeout=1.0).stream_info(_STREAM)).cluster
    copies = group.replicas if group is not None else None
    if group is None or not group.leader or not copies or not all(copy.current and not copy.lag for copy in copies):
        raise TimeoutError
    return group.leader


async def stored(client: Client) -> int:
    """Messages that were published without acknowledgement."""
    info = await client.jetstream(timeout=2.0).stream_info(_STREAM, subjects_filter="alone.core")
    return (info.state.subjects or {}).get("alone.core", 0)


async def turn(servers: list[NatsServer], end: Callable[[NatsServer], None]) -> tuple[float, int, int]:
    """Seconds without an acknowledgement; messages lost, of how many."""
    async with connected([server.url for server in servers]) as client:
        name = await patiently(lambda: leader(client))
    (leading,) = (server for server in servers if server.name == name)
    sent, gap = 0, 0.0
    async with connected([server.url for server in servers if server is not leading]) as client:
        jetstream, before = client.jetstream(timeout=0.2), await stored(client)

        async def publish() -> None:
            nonlocal sent
            while True:
                await client.publish("alone.core", b"x")
                sent += 1
                await asyncio.sleep(_PAUSE_S)

        publishing = asyncio.create_task(publish())
        begin = last = time.monotonic()
        await asyncio.to_thread(end, leading)
        while last - begin < _WATCH_S:
            with contextlib.suppress(Error, TimeoutError, OSError):
                await jetstream.publish("alone.acknowledged", b"x")
                gap, last = max(gap, time.monotonic() - last), time.monotonic()
            await asyncio.sleep(_PAUSE_S)
        publishing.cancel()
        await client.flush()
        await until(lambda: leading.drained, 60.0)
        leading.start()
        await patiently(lambda: leader(client))
        return gap, sent - (await stored(client) - before), sent


async def run(turns: int, folder: Path) -> None:
    servers = cluster(folder / "nats", 1)
    for server in servers:
        server.start(wait=False)
    try:
        async with connected([server.url for server in servers]) as client:
            config = StreamConfig(name=_STREAM, subjects=["alone.*"], storage=StorageType.MEMORY, num_replicas=3)
            await patiently(lambda: client.jetstream().add_stream(config))
        for name, end in WAYS.items():
            found = [await turn(servers, end) for _ in range(turns)]
            gaps = ", ".join(f"{gap:.2f}" for gap, _, _ in sorted(found))
            lost, sent = (sum(one[at] for one in found) for at in (1, 2))
            print(f"the leader is {name}: {gaps} s; {lost} of {sent} messages without acknowledgement lost", flush=True)
    finally:
        for server in servers:
            server.kill()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--turns", type=int, default=6)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(run(options.turns, Path(folder)))


if __name__ == "__main__":
    main()
