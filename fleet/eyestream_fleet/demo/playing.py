"""What the demo plays: servers, workers that are started again, trackers, applications, and who kills what.

Rows are of nobody: the centre of a public calibration and some noise. Trackers send at QoS 0, so what they send while a
partition has no leader is lost. One application listens at each server: a chunk is heard while one of them is there.
"""

import asyncio
import contextlib
import functools
import hashlib
import json
import random
import shutil
import signal
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import numpy as np
from nats.aio.client import Client
from nats.errors import Error
from nats.js.errors import APIError

from eyestream.core.charge import EPSILON_UNITS
from eyestream.errors import LinkError
from eyestream.rim.files import calibrations
from eyestream.rim.ledger.reading import read_ledger
from eyestream.rim.plan import load
from eyestream.wire.raw import encode_raw
from eyestream.wire.release import decode_private
from eyestream.wire.topics import FEATURE_STREAM, raw_topic
from eyestream_fleet.demo.servers import three
from eyestream_fleet.fleet import found_shard
from eyestream_fleet.log import partition_of
from eyestream_fleet.nats.log import connected

Answer = TypeVar("Answer")

_CALIBRATION = "everyday-cfpa-32"
_COMMAND = [sys.executable, "-c", "from eyestream.cli.main import main; main()", "shard"]

_EVERY_S = 1.0
"""A tracker sends the rows of one chunk so often: 16 times faster than eyes would."""

_SCREEN_S = 0.5
_READY_S = 90.0
_AGAIN_S = 2.0
"""A server is away for so long when it was killed."""

_END_S = 20.0
_SERVER_EACH = 5
"""Kills by the clock of which one is of a server."""


@dataclass(eq=False)
class Partition:
    """What is seen of one partition.

    Attributes
    ----------
    devices : how many trackers send into it.
    pid, lives, ended : process of its worker, how many there were, and how many of them ended by themselves.
    leader : the server that leads its raw rows; empty: nobody knows.
    heard, gaps : when the last new chunk was heard, and the longest time between two, in seconds.
    released, epsilon : what its ledger has.
    """

    devices: int
    pid: int = 0
    lives: int = 0
    ended: int = 0
    leader: str = ""
    heard: float = field(default_factory=time.monotonic)
    gap: float = 0.0
    released: int = 0
    epsilon: float = 0.0
    payloads: dict[tuple[str, int, int], bytes] = field(default_factory=dict)
    newest: dict[tuple[str, int], int] = field(default_factory=dict)
    two: int = 0

    @property
    def chunks(self) -> int:
        """Different chunks that were heard."""
        return len(self.payloads)

    @property
    def missing(self) -> int:
        """Chunks between those that were heard: their rows were lost."""
        return sum(newest + 1 for newest in self.newest.values()) - self.chunks

    def note(self, device: str, payload: bytes) -> None:
        """A chunk is heard, perhaps not for the first time."""
        said, now = decode_private(payload), time.monotonic()
        digest = hashlib.blake2b(payload, digest_size=8).digest()
        name, session = (device, said.session, said.chunk), (device, said.session)
        if name not in self.payloads:
            self.gap, self.heard = max(self.gap, now - self.heard if self.payloads else 0.0), now
            self.newest[session] = max(self.newest.get(session, 0), said.chunk)
        self.two += self.payloads.setdefault(name, digest) != digest


class Demo:
    """A fleet in a folder, to be run once.

    Parameters
    ----------
    folder
        For all its files; it is there.
    devices, partitions
        How many; each partition has a worker.

    Attributes
    ----------
    servers, partitions : what there is.
    killed : workers and servers that were killed.
    """

    def __init__(self, folder: Path, devices: int, partitions: int) -> None:
        self.folder, self._luck = folder, random.Random(1)
        self._names = [f"hmd-{number:04}" for number in range(devices)]
        self._own = {name: partition_of(name, partitions) for name in self._names}
        owners = list(self._own.values())
        self.partitions = [Partition(owners.count(number)) for number in range(partitions)]
        self.servers = three(folder / "nats", partitions, ("256M",) * 3)
        self._config = folder / "fleet.toml"
        self._workers: dict[int, asyncio.subprocess.Process] = {}
        self._away = 0
        self.killed = {"workers": 0, "servers": 0}

    async def run(self, stop: asyncio.Event, show: Callable[[], None], kill_every_s: float | None) -> None:
        """Play until `stop` is set; then end everything in order.

        Raises
        ------
        LinkError
            The servers do not come to terms.
        """
        self._config.write_text(self._text())
        try:
            async with contextlib.AsyncExitStack() as stack:
                async with asyncio.timeout(_READY_S):
                    clients = await self._ready(stack)
                listeners = [await one.subscribe("eyestream.v1.*.*.private") for one in clients]
                async with asyncio.TaskGroup() as group:
                    tasks = [group.create_task(self._hear(one.messages)) for one in listeners]
                    ending = asyncio.Event()
                    keepers = [group.create_task(self._keep(number, ending)) for number in range(len(self.partitions))]
                    tasks += map(group.create_task, (self._track(clients[0]), self._watch(clients[0], show)))
                    if kill_every_s is not None:
                        tasks.append(group.create_task(self._kill(kill_every_s)))
                    await stop.wait()
                    for task in (tasks[len(listeners)], *tasks[len(listeners) + 2 :]):
                        task.cancel()  # the trackers and the kills
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(_END_S):  # a worker that begins again gives what was charged
                            while any(own.chunks != own.released for own in self.partitions):
                                await asyncio.sleep(_SCREEN_S)
                                self._read_ledgers()
                    ending.set()
                    await asyncio.wait(keepers)
                    await asyncio.sleep(_SCREEN_S)
                    at_work = set(tasks)
                    while at_work:  # again and again: the client takes some cancellations for an answer
                        for task in at_work:
                            task.cancel()
                        _, at_work = await asyncio.wait(at_work, timeout=_SCREEN_S)
                self._read_ledgers()
        except TimeoutError:
            raise LinkError(f"the servers have not come to terms within {_READY_S:g} s") from None
        finally:
            for worker in self._workers.values():
                if worker.returncode is None:
                    worker.kill()
                    await worker.wait()
            for server in self.servers:
                await asyncio.to_thread(server.kill)

    def _text(self) -> str:
        """The configuration of all workers."""
        pages = [one.page_url for one in self.servers]
        return "\n".join(
            (
                '[sidecar]\nname = "demo"',
                f'[private]\nurl = "{self.servers[0].mqtt_url}"',
                f"[fleet]\nservers = {json.dumps([one.url for one in self.servers])}",
                f'partitions = {len(self.partitions)}\nfolder = "./shards"\nmonitoring = {json.dumps(pages)}',
                f'[[stream]]\nwindow_s = 30.0\n[stream.privacy]\ncalibration = "{_CALIBRATION}"\nepsilon = 4.8',
                "[budget]\nsession_epsilon = 1e6\nday_epsilon = 1e6",
                *(f'[[device]]\nid = "{name}"' for name in self._names),
            )
        )

    async def _ready(self, stack: contextlib.AsyncExitStack) -> list[Client]:
        """A client at each server, when all of them work together and every shard is made."""
        for server in self.servers:
            await asyncio.to_thread(server.start, wait=False)

        async def joined(url: str) -> Client:
            return await stack.enter_async_context(connected([url]))

        clients = [await _patiently(functools.partial(joined, one.url)) for one in self.servers]
        for one in clients:
            await _patiently(one.jetstream(timeout=1.0).account_info)
        plan = load(self._config)

        async def founded(number: int) -> None:
            shutil.rmtree(self.folder / "shards" / f"shard-{number}", ignore_errors=True)  # of an attempt before
            await found_shard(plan, number, int(time.time()))

        for number in range(len(self.partitions)):
            await _patiently(functools.partial(founded, number))
        return clients

    async def _keep(self, number: int, stop: asyncio.Event) -> None:
        """One worker after the other, until `stop`; that one ends in order."""
        own, stopping = self.partitions[number], asyncio.create_task(stop.wait())
        given = ["--config", str(self._config), "--partition", str(number)]
        while not stop.is_set():
            with (self.folder / f"worker-{number}.log").open("ab") as log:
                worker = await asyncio.create_subprocess_exec(
                    *_COMMAND, *given, stdout=log, stderr=log, process_group=0
                )
            self._workers[number], own.pid, own.lives = worker, worker.pid, own.lives + 1
            ending = asyncio.create_task(worker.wait())
            await asyncio.wait([ending, stopping], return_when=asyncio.FIRST_COMPLETED)
            if worker.returncode is None:
                worker.terminate()
                await asyncio.wait([ending], timeout=_END_S)
            elif worker.returncode != -signal.SIGKILL:
                own.ended += 1
                await asyncio.sleep(_AGAIN_S)

    async def _track(self, client: Client) -> None:
        """All trackers, one after the other, each once in `_EVERY_S`."""
        calibration, rng = calibrations.load(_CALIBRATION), np.random.default_rng(1)
        loop, chunk = asyncio.get_running_loop(), 0
        due = loop.time()
        while True:
            for name in self._names:
                noise = rng.normal(0.0, 0.1, (calibration.n, len(calibration.names)))
                rows = (calibration.fill * (1.0 + noise)).astype(np.float32)
                topic = raw_topic(name, FEATURE_STREAM).replace("/", ".")
                with contextlib.suppress(Error, OSError):  # lost on a link that is cut, as at QoS 0
                    await client.publish(topic, encode_raw(1, chunk * calibration.n, rows, 1))
                due += _EVERY_S / len(self._names)
                await asyncio.sleep(max(0.0, due - loop.time()))
            chunk += 1

    async def _hear(self, messages: AsyncIterator[object]) -> None:
        """An application."""
        async for message in messages:
            device = message.subject.split(".")[2]  # type: ignore[attr-defined]
            self.partitions[self._own[device]].note(device, message.data)  # type: ignore[attr-defined]

    async def _watch(self, client: Client, show: Callable[[], None]) -> None:
        """Look at ledgers and leaders, and show what there is."""
        while True:
            await asyncio.to_thread(self._read_ledgers)
            for number, own in enumerate(self.partitions):
                try:
                    info = await client.jetstream(timeout=0.3).stream_info(f"EYESTREAM_RAW_{number}")
                    own.leader = (info.cluster.leader if info.cluster is not None else None) or ""
                except (Error, APIError, TimeoutError, OSError):
                    own.leader = ""
            show()
            await asyncio.sleep(_SCREEN_S)

    def _read_ledgers(self) -> None:
        for number, own in enumerate(self.partitions):
            odometers = read_ledger(self.folder / "shards" / f"shard-{number}" / "ledger").odometers.values()
            own.released = sum(one.released for one in odometers)
            own.epsilon = sum(one.epsilon for one in odometers) / EPSILON_UNITS

    async def _kill(self, every_s: float) -> None:
        number = 0
        while True:
            await asyncio.sleep(every_s)
            number += 1
            if number % _SERVER_EACH:
                self.kill_worker()
            else:
                await self.kill_server()

    def kill_worker(self) -> None:
        """One of them is gone at once; another one takes its place."""
        alive = [one for one in self._workers.values() if one.returncode is None]
        if alive:
            self._luck.choice(alive).kill()
            self.killed["workers"] += 1

    async def kill_server(self) -> None:
        """One of them is gone, and comes back with an empty memory; nothing is done while one is not whole yet."""
        if self._away or not all(await asyncio.gather(*(asyncio.to_thread(one.healthy) for one in self.servers))):
            return
        self._away += 1
        server = self._luck.choice(self.servers)
        self.killed["servers"] += 1
        await asyncio.to_thread(server.kill)
        await asyncio.sleep(_AGAIN_S)
        await asyncio.to_thread(server.start, wait=False)
        self._away -= 1

    def summary(self) -> list[str]:
        """What became of it, in lines."""
        heard, released = sum(one.chunks for one in self.partitions), sum(one.released for one in self.partitions)
        two, missing = sum(one.two for one in self.partitions), sum(one.missing for one in self.partitions)
        epsilon = sum(one.epsilon for one in self.partitions)
        return [
            f"{self.killed['workers']} workers and {self.killed['servers']} servers were killed",
            f"{released} chunks charged, {heard} heard, {two} with two byte strings",
            f"epsilon {epsilon:.1f} spent by {len(self._names)} devices",
            f"{missing} chunks are missing: their rows were lost while a partition had no leader",
            f"longest time of a partition without a chunk: {max(one.gap for one in self.partitions):.1f} s",
        ]


async def _patiently(call: Callable[[], Awaitable[Answer]]) -> Answer:
    """Until it works: servers elect a leader first."""
    while True:
        try:
            return await call()
        except (Error, LinkError, TimeoutError, OSError):
            await asyncio.sleep(0.2)
