"""Kill workers and nodes of a fleet on three NATS servers; what an outsider saw must be each chunk once.

    python -m tools.verification.shard_kills --kills 1000 --nodes 50
    python -m tools.verification.shard_kills --kills 0 --nodes 0 --restarts 6
    python -m tools.verification.shard_kills --kills 200 --pauses 30 --copies 20

Workers are processes of `eyestream shard`, one for each partition, with a second place in NATS. A life ends at a random
moment, or right after one of its effects (`tests.rigs.dying`). Trackers send rows all the time; every byte string is
compared that anybody could hear, and every one that the log keeps. Nodes are killed or restarted in order one after the
other, each when all say that they are healthy: raw rows are in the memory of three. A worker that is paused goes on in
the middle of what it did. Copies of a shard's folder come back. Half of them take the place of the newest one, and must
be refused. Half begin beside a worker that is paused and goes on: one of the two must end. Ctrl-C ends the kills; what
was seen until then is summed up as at the end. The exit code is 1 when a chunk has two byte strings or is missing, a
session was broken, or the ledgers do not have exactly what was released.
"""

import argparse
import asyncio
import contextlib
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import nats
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js.api import DeliverPolicy

from eyestream.streams import StreamKey
from eyestream_fleet.log import partition_of
from eyestream_fleet.nats.log import connected, released_stream
from eyestream_lab.testing.clocks import until
from tests.rigs.dying import POINTS
from tests.rigs.fleets import Seen, Workers, fleet_config, raw_messages
from tests.rigs.nats import NatsServer, cluster, patiently

PARTITIONS = 4
ROWS = 32

_ANY, _NODE, _RESTART = "any moment", "a node killed", "a node restarted"
_PAUSE, _OLDER, _BESIDE = "a pause", "an older copy in its place", "a copy beside it"
_KINDS = frozenset({_NODE, _RESTART, _PAUSE, _OLDER, _BESIDE})
"""Those that are not the death of a worker."""

_SHORT_S = 0.3
"""Shorter ones are no gaps, and chunks may still be heard so long after a kill."""

_LONG_S = 2.0
_PATIENCE_S = 300.0
_EVERY = 100
"""Kills of workers after which it is told how far it is."""

_AHEAD = 100
"""Chunks that the trackers of one partition may be ahead of another's: in the end all have sent as many."""


class Event(NamedTuple):
    """A kill: when, of which partition's worker (None: of a node), and which kind."""

    at: float
    partition: int | None
    kind: str


class Gaps:
    """How long each partition was without a new chunk, and what was killed meanwhile."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._last: dict[int, float] = {}
        self._gaps: list[tuple[int, float, float]] = []

    def happens(self, kind: str, partition: int | None = None) -> None:
        """Now."""
        self.events.append(Event(time.monotonic(), partition, kind))

    def heard(self, partition: int) -> None:
        """A chunk that was not heard before."""
        now = time.monotonic()
        last = self._last.get(partition, now)
        if now - last > _SHORT_S:
            self._gaps.append((partition, last, now))
        self._last[partition] = now

    def by_cause(self) -> dict[str, list[float]]:
        """Gaps by what happened meanwhile, where it was one thing; longest first. One worker's death alone is one."""
        found: dict[str, list[float]] = {}
        for partition, begin, end in self._gaps:
            kinds = [
                event.kind
                for event in self.events
                if event.partition in (None, partition) and begin - _SHORT_S <= event.at <= end
            ]
            causes = {kind if kind in _KINDS else "a worker killed" for kind in kinds} or {"nothing"}
            if len(causes) == 1 and (len(kinds) <= 1 or causes <= {_NODE, _RESTART}):
                found.setdefault(causes.pop(), []).append(end - begin)
        return {kind: sorted(own, reverse=True) for kind, own in found.items()}


def note(seen: Seen, message: Msg) -> None:
    seen.note((message.headers or {})["Nats-Msg-Id"], message.subject.split(".")[2], message.data)


async def send(client: Client, key: StreamKey, payload: bytes) -> None:
    """As a tracker that sends again until the log has it; some partitions have no leader for a while."""
    jetstream = client.jetstream(timeout=0.5)
    await patiently(lambda: jetstream.publish(f"eyestream.v1.{key.device}.{key.stream}.raw", payload), _PATIENCE_S)


async def whole(servers: list[NatsServer]) -> None:
    """Raise TimeoutError while a server is not healthy."""
    if not all(await asyncio.gather(*(asyncio.to_thread(server.healthy) for server in servers))):
        raise TimeoutError("a server is not healthy")


class Trial:
    """Trackers, an outsider, and kills.

    Parameters
    ----------
    options
        Of the command.
    workers, client, servers
        At work.
    """

    def __init__(
        self, options: argparse.Namespace, workers: Workers, client: Client, servers: list[NatsServer]
    ) -> None:
        self._options, self._workers, self._client, self._servers = options, workers, client, servers
        self._luck, self._seen, self._gaps = random.Random(options.seed), Seen(), Gaps()
        self._stop, self._counts = asyncio.Event(), dict.fromkeys(range(PARTITIONS), 0)
        self._heard = Counter[int]()  # different chunks by partition
        self._points: dict[int, str] = {}  # the effect after which the worker of a partition ends

    async def run(self) -> list[str]:
        """What went wrong."""
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, self._stop.set)
        begin, hearing = time.monotonic(), asyncio.create_task(self._hear())
        kills = [asyncio.create_task(self._trouble(own)) for own in range(PARTITIONS)]
        kills.append(asyncio.create_task(self._end_nodes()))
        async with asyncio.TaskGroup() as group:
            for own in range(PARTITIONS):
                group.create_task(self._track(own, lambda: all(kill.done() for kill in kills)))
            await asyncio.gather(*kills)
        before, chunks = -1, sum(self._sent().values())
        while before < len(self._seen.payloads):  # something comes
            before = len(self._seen.payloads)
            await self._seen.wait_for(chunks, 120.0)
        await asyncio.to_thread(self._workers.stop)
        await asyncio.sleep(0.5)
        hearing.cancel()
        await self._read_all()
        return self._sum_up(time.monotonic() - begin)

    async def _hear(self) -> None:
        async for message in (await self._client.subscribe("eyestream.v1.*.*.private")).messages:
            before = len(self._seen.payloads)
            note(self._seen, message)
            if len(self._seen.payloads) > before:
                own = partition_of(message.subject.split(".")[2], PARTITIONS)
                self._heard[own] += 1
                self._gaps.heard(own)

    async def _track(self, own: int, done: Callable[[], bool]) -> None:
        """The trackers of a partition, which hardly wait for another one."""
        devices = [one for one in names(self._options) if partition_of(one, PARTITIONS) == own]
        end = False
        while not end:
            end = done() and self._counts[own] >= max(self._counts.values())
            messages = raw_messages(devices, 1, ROWS, first=self._counts[own], end=end)
            await asyncio.gather(*(send(self._client, *one) for one in messages))
            self._counts[own] += 1
            await asyncio.sleep(0.1)
            await until(lambda: self._counts[own] <= min(self._counts.values()) + _AHEAD, 120.0)

    async def _read_all(self) -> None:
        """What the log keeps; a worker's client would leave the headers out."""
        client = await nats.connect([server.url for server in self._servers])
        try:
            jetstream = client.jetstream()
            for name in map(released_stream, range(PARTITIONS)):
                reader = await jetstream.subscribe(
                    "", stream=name, deliver_policy=DeliverPolicy.ALL, ordered_consumer=True
                )
                for _ in range((await jetstream.stream_info(name)).state.messages):
                    note(self._seen, await reader.next_msg(timeout=10))
        finally:
            await client.close()

    async def _trouble(self, own: int) -> None:
        """What happens to the worker of a partition, one thing after the other, in an order by lot."""
        options, luck = self._options, self._luck
        does = [self._kill] * len(range(own, options.kills, PARTITIONS))
        does += [self._pause] * len(range(own, options.pauses, PARTITIONS))
        copies = range(own, options.copies, PARTITIONS)
        does += [self._older if number // PARTITIONS % 2 else self._beside for number in copies]
        luck.shuffle(does)
        for one in does:
            if self._stop.is_set():
                break
            await one(own)
        await self._lasting(own)

    async def _kill(self, own: int) -> None:
        """One life ends and another begins; half of them end right after an effect, if they come so far."""
        point = self._points.pop(own, None)
        with contextlib.suppress(TimeoutError):
            wait_s = self._luck.uniform(0.5, 3.0) if point is None else 30.0
            await until(lambda: self._stop.is_set() or self._workers.gone(own), wait_s)
        dead = self._workers.gone(own)
        self._gaps.happens(point if dead and point is not None else _ANY, own)
        await asyncio.to_thread(self._workers.end, own)
        if self._workers.kills % _EVERY == 0:
            nodes = sum(event.kind == _NODE for event in self._gaps.events) // 2
            heard = f"{len(self._seen.payloads)} chunks heard"
            print(f"{self._workers.kills} workers and {nodes} nodes killed, {heard}", file=sys.stderr, flush=True)
        if self._luck.random() < 0.5:
            self._points[own] = self._luck.choice([*POINTS])
        self._workers.start(own, (self._points[own], self._luck.randint(2, 20)) if own in self._points else None)

    async def _lasting(self, own: int) -> None:
        """A life that was to end at an effect gives way to one that stays."""
        if self._points.pop(own, None) is not None:
            self._gaps.happens(_ANY, own)
            await asyncio.to_thread(self._workers.end, own)
            self._workers.start(own)

    async def _pause(self, own: int) -> None:
        """It stands still, mostly while it works, for some or for many seconds, and goes on."""
        await self._lasting(own)
        if self._luck.random() < 0.8:
            await self._more(own)
            await asyncio.sleep(self._luck.uniform(0.0, 0.2))
        self._gaps.happens(_PAUSE, own)
        self._workers.pause(own)
        await asyncio.sleep(self._luck.choice([0.3, 2.0, 8.0]))
        self._workers.resume(own)
        await self._more(own)

    async def _copied(self, own: int) -> int:
        """A copy of the folder is made, in the middle of anything; gives how many chunks it may still publish."""
        await self._lasting(own)
        await self._more(own)
        await asyncio.sleep(self._luck.uniform(0.0, 0.2))
        self._workers.pause(own)
        waiting = await asyncio.to_thread(self._workers.copy, own)
        await asyncio.sleep(0.5)  # what is under way is heard
        return waiting

    async def _older(self, own: int) -> None:
        """The worker goes on and is killed; a copy of before takes its place, and must be refused."""
        waiting = await self._copied(own)
        self._workers.resume(own)
        await self._more(own, waiting)
        self._gaps.happens(_OLDER, own)
        await asyncio.to_thread(self._workers.end, own)
        self._workers.swap(own)
        self._workers.start(own)
        await asyncio.to_thread(self._workers.check_refused, own)
        self._workers.swap(own)
        self._workers.start(own)
        await self._more(own)

    async def _beside(self, own: int) -> None:
        """A copy begins while the worker stands still, which then goes on: one of the two must end."""
        await self._copied(own)
        self._gaps.happens(_BESIDE, own)
        before = self._workers.copy_takes_over(own)
        await asyncio.sleep(self._luck.choice([0.5, 2.0, 8.0]))
        before.send_signal(signal.SIGCONT)
        if not await asyncio.to_thread(self._workers.one_of_two, own, before):
            await asyncio.to_thread(self._workers.end, own)
            self._workers.swap(own)
            self._workers.start(own)
        await self._more(own)

    async def _more(self, own: int, count: int = 0) -> None:
        """Return when more than `count` chunks of a partition are heard that were not heard before."""
        before = self._heard[own] + count
        await until(lambda: self._stop.is_set() or self._heard[own] > before, _PATIENCE_S)

    async def _end_nodes(self) -> None:
        """One after the other: first those that are killed, then those that are restarted in order."""
        for number in range(self._options.nodes + self._options.restarts):
            if self._stop.is_set():
                return
            server = self._servers[number % len(self._servers)]
            kind = _NODE if number < self._options.nodes else _RESTART
            self._gaps.happens(kind)
            if kind == _NODE:
                server = self._luck.choice(self._servers)
                await asyncio.to_thread(server.kill)
                await asyncio.sleep(self._luck.uniform(0.2, 2.0))
            else:
                await asyncio.to_thread(server.drain)
                await until(lambda server=server: server.drained, 60.0)  # type: ignore[misc]
                self._gaps.happens(kind)
            await asyncio.to_thread(server.start)
            self._gaps.happens(kind)
            await asyncio.sleep(1.0)
            await patiently(lambda: whole(self._servers), 120.0)

    def _sent(self) -> dict[str, int]:
        """Chunks of each device."""
        return {name: self._counts[partition_of(name, PARTITIONS)] for name in names(self._options)}

    def _sum_up(self, seconds: float) -> list[str]:
        seen, events = self._seen, self._gaps.events
        waiting = len(self._workers.waiting() - seen.payloads.keys())
        sent = self._sent()
        found = seen.faults(sent, self._workers.released() - waiting)
        ended = Counter(event.kind for event in events)
        print(f"{'interrupted after' if self._stop.is_set() else 'in'} {seconds:.0f} s")
        print(
            f"{self._workers.kills} workers killed: " + ", ".join(f"{ended[one]} after {one}" for one in POINTS), end=""
        )
        print(f", {ended[_ANY]} at {_ANY}; {ended[_NODE] // 2} nodes killed, {ended[_RESTART] // 3} restarted")
        print(", ".join(f"{ended[one]} times {one}" for one in (_PAUSE, _OLDER, _BESIDE)))
        for kind, own in self._gaps.by_cause().items():
            late = sum(gap > _LONG_S for gap in own)
            print(f"{kind}: longest time of a partition without a chunk {own[0]:.2f} s; {late} of {len(own)} over 2 s")
        for words, count in self._workers.losses().items():
            print(f"{count} times a worker said that {words}")
        print(f"{len(seen.payloads)} of {sum(sent.values())} chunks, heard {seen.messages} times", end="")
        print(f"; {waiting} wait in outboxes")
        print(f"{len(found)} faults", flush=True)
        return found


def names(options: argparse.Namespace) -> list[str]:
    return [f"d{number}" for number in range(options.devices)]


async def run(options: argparse.Namespace, folder: Path) -> list[str]:
    """What went wrong."""
    servers = cluster(folder / "nats", PARTITIONS, ("4G", "4G", "4G"))
    for server in servers:
        await asyncio.to_thread(server.start, wait=False)
    try:
        urls = [server.url for server in servers]
        async with connected(urls) as client:
            await patiently(client.jetstream().account_info)
            config = fleet_config(folder, urls, PARTITIONS, names(options), pages=[one.page_url for one in servers])
            with await asyncio.to_thread(Workers, config, PARTITIONS) as workers:
                return await Trial(options, workers, client, servers).run()
    finally:
        for server in servers:
            server.kill()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=120, help="workers")
    parser.add_argument("--pauses", type=int, default=0, help="workers that stand still for a while")
    parser.add_argument("--copies", type=int, default=0, help="copies of a shard's folder that come back")
    parser.add_argument("--nodes", type=int, default=8, help="servers of NATS that are killed")
    parser.add_argument("--restarts", type=int, default=0, help="servers of NATS that are restarted in order")
    parser.add_argument("--devices", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = asyncio.run(run(options, Path(folder)))
    for fault in found:
        print(fault, file=sys.stderr)
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
