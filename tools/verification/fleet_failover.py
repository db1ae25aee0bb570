"""Failover and rebalancing of a fleet of millions of devices: a model of events, fitted to one real shard.

    python -m tools.verification.fleet_failover --fit         measure one real shard, and print what the model takes
    python -m tools.verification.fleet_failover --devices 10000000

The fit kills a real worker of `eyestream shard` on a real NATS server and lets `--backlog` seconds of rows wait in the
log. It measures how long the next worker takes to its first chunk (`start_s`) and how many rows it then reads a second
(`catch_up`). The model has shards with a rate of rows each, on hosts that are lost at random. A shard whose host is
lost waits until that is noticed and its volume is on another host, starts, and reads what waited. The model counts the
seconds in which a shard releases nothing, and rows that the log forgot in between. How long servers of NATS take to
elect a leader is measured too (`ELECTION_S`). Hosts are independent, and nothing else fails.
"""

import argparse
import asyncio
import heapq
import random
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from eyestream_fleet.nats.log import connected
from eyestream_lab.testing.clocks import until
from tests.rigs.fleets import Workers, fleet_config, raw_messages
from tests.rigs.nats import NatsServer

ELECTION_S = 7.5
"""Until three servers of NATS have a leader again, when one of them is killed: the longest of six."""


@dataclass(frozen=True)
class World:
    """A fleet.

    Attributes
    ----------
    devices, devices_a_shard : how many, and how they are cut.
    rows_a_second : of a device.
    shards_a_host : that are lost together.
    host_life_h : mean time between losses of one host.
    notice_s, attach_s : until the loss is noticed, and until a volume is on another host.
    raw_age_s : how long the log keeps raw rows.
    upgrade_host_s : from one host to the next while all are replaced in order; 0: no upgrade.
    start_s : from the start of a worker to its first chunk.
    catch_up : rows a second that it then reads, in messages of 32.
    """

    devices: int
    devices_a_shard: int
    rows_a_second: float
    shards_a_host: int
    host_life_h: float
    notice_s: float
    attach_s: float
    raw_age_s: float
    upgrade_host_s: float
    start_s: float = 2.0
    catch_up: float = 20_000.0

    @property
    def shards(self) -> int:
        return -(-self.devices // self.devices_a_shard)

    @property
    def hosts(self) -> int:
        return -(-self.shards // self.shards_a_host)


class Outcome(NamedTuple):
    """What a run of the model came to."""

    losses: int
    gaps_s: list[float]
    rows_lost: float
    moved_at_once: int


def gap(world: World, wait_s: float, luck: random.Random) -> tuple[float, float]:
    """Seconds without a chunk of a shard that waits `wait_s` for a host, and rows that the log forgot meanwhile."""
    election = ELECTION_S * luck.uniform(0.5, 1.0) if luck.random() < 1 / 3 else 0.0  # its leader was on that host
    down = wait_s + world.start_s * luck.uniform(0.8, 1.5) + election
    rate = world.devices_a_shard * world.rows_a_second
    behind = min(down, world.raw_age_s) * rate
    return down + behind / (world.catch_up - rate), max(0.0, down - world.raw_age_s) * rate


def simulated(world: World, hours: float, seed: int) -> Outcome:
    """`hours` of the fleet: hosts are lost at random, and where asked all of them are replaced in turn."""
    luck = random.Random(seed)
    events = [(luck.expovariate(1 / world.host_life_h), host, "lost") for host in range(world.hosts)]
    if world.upgrade_host_s:
        step = world.upgrade_host_s / 3600
        events += [(host * step, host, "upgraded") for host in range(world.hosts)]
    heapq.heapify(events)
    gaps: list[float] = []
    rows_lost, losses, moving, most = 0.0, 0, list[float](), 0
    while events and events[0][0] < hours:
        at, host, why = heapq.heappop(events)
        losses += why == "lost"
        first = (world.notice_s if why == "lost" else 0.0) + world.attach_s
        for _ in range(min(world.shards_a_host, world.shards - host * world.shards_a_host)):
            seconds, lost = gap(world, first * luck.uniform(0.8, 1.2), luck)
            gaps.append(seconds)
            rows_lost += lost
            moving.append(at + seconds / 3600)
        moving = [end for end in moving if end > at]
        most = max(most, len(moving))
        if why == "lost":
            heapq.heappush(events, (at + luck.expovariate(1 / world.host_life_h), host, "lost"))
    return Outcome(losses, sorted(gaps), rows_lost, most)


def told(world: World, hours: float, found: Outcome) -> str:
    """In words."""
    gaps = found.gaps_s
    rate = world.devices * world.rows_a_second
    without = sum(gaps) * world.devices_a_shard / (hours * 3600 * world.devices)
    return (
        f"{world.devices:,} devices, {world.shards:,} shards on {world.hosts:,} hosts, {rate:,.0f} rows a second, "
        f"{hours:g} h: {found.losses} hosts lost, {len(gaps)} shards moved, at most {found.moved_at_once} at a time; "
        f"gap of a shard median {gaps[len(gaps) // 2] if gaps else 0:.1f} s, longest {gaps[-1] if gaps else 0:.1f} s; "
        f"a device is without chunks for {without:.1e} of the time; rows lost {found.rows_lost:,.0f}"
    )


async def fitted(backlog_s: float, devices: int, folder: Path) -> tuple[float, float]:
    """Seconds from the start of a killed worker's successor to its first chunk, and rows a second from there on."""
    server = NatsServer(folder / "nats", 1)
    server.start()
    names = [f"d{number}" for number in range(devices)]
    try:
        workers = await asyncio.to_thread(Workers, fleet_config(folder, [server.url], 1, names), 1)
        async with connected([server.url]) as client:
            heard: list[float] = []

            async def hear() -> None:
                async for _ in (await client.subscribe("eyestream.v1.*.*.private")).messages:
                    heard.append(time.monotonic())

            hearing = asyncio.create_task(hear())
            stream = client.jetstream()
            for key, payload in raw_messages(names, 1, 32):
                await stream.publish(f"eyestream.v1.{key.device}.{key.stream}.raw", payload)
            await until(lambda: len(heard) >= devices, 60.0)
            workers.end(0)
            chunks = max(1, round(backlog_s * 2 / 32))
            for key, payload in raw_messages(names, chunks, 32, first=1):
                await stream.publish(f"eyestream.v1.{key.device}.{key.stream}.raw", payload)
            before, begin = len(heard), time.monotonic()
            workers.start(0)
            await until(lambda: len(heard) >= devices * (1 + chunks), 120.0)
            hearing.cancel()
        await asyncio.to_thread(workers.stop)
        return heard[before] - begin, 32 * (len(heard) - before) / (heard[-1] - heard[before])
    finally:
        server.kill()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fit", action="store_true")
    parser.add_argument("--backlog", type=float, default=160.0, metavar="S")
    parser.add_argument("--devices", type=int, default=10_000_000)
    parser.add_argument("--hours", type=float, default=24.0)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if options.fit:
        with tempfile.TemporaryDirectory() as folder:
            start_s, rows = asyncio.run(fitted(options.backlog, 100, Path(folder)))
        print(f"first chunk after {start_s:.2f} s, then {rows:,.0f} rows a second")
        return
    world = World(
        options.devices,
        devices_a_shard=4_000,
        rows_a_second=2.0,
        shards_a_host=8,
        host_life_h=24 * 90,
        notice_s=40.0,
        attach_s=20.0,
        raw_age_s=300.0,
        upgrade_host_s=0.0,
    )
    for name, own in (
        ("losses", world),
        ("a rolling upgrade", replace(world, upgrade_host_s=90.0)),
        ("a faster platform, 5 s to notice and 5 s to attach", replace(world, notice_s=5.0, attach_s=5.0)),
        ("raw rows for 30 s alone", replace(world, raw_age_s=30.0)),
        ("a worker on busy cores", replace(world, start_s=6.4, catch_up=10_000.0)),
    ):
        print(f"{name}: {told(own, options.hours, simulated(own, options.hours, options.seed))}")


if __name__ == "__main__":
    main()
