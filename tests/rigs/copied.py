"""Histories of copies of a shard, and of a sidecar's ledger: what `tests.rigs.histories` plays."""

import contextlib
import itertools
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from pathlib import Path

from eyestream.core.charge import Ceilings, Charge
from eyestream.core.reservation import Granted, Request
from eyestream.errors import EyestreamError, LinkError
from eyestream.rim.ledger.guarded import accept, guarded
from eyestream.rim.ledger.ledger import Ledger
from eyestream.rim.ledger.reading import create_ledger
from eyestream.rim.ledger.second_place import FilePlace, Lengths, Remembered, check_not_overtaken
from eyestream.streams import StreamKey
from eyestream_fleet.directory import LIVES, create_shard, held_outbox, opened_shard
from eyestream_fleet.frames import ReleasedChunk
from eyestream_fleet.log import Bounds
from eyestream_fleet.second_place import Life, SecondPlace, begin_life, recalled
from eyestream_fleet.shard import Shard
from tests.rigs.histories import CellPlace, Cells, History, pause
from tests.rigs.shards import DAY, CountingMechanism, Killed, raw_log, shard_settings

__all__ = ["LedgerHistory", "ShardHistory"]


class _Worker:
    """One process that serves a folder, step by step."""

    def __init__(self, world: "ShardHistory", folder: Path) -> None:
        self.world, self.folder, self.stack = world, folder, contextlib.ExitStack()
        self.shard: Shard | None = None
        self.waiting: deque[ReleasedChunk] = deque()
        self.acknowledged: list[ReleasedChunk] = []
        self.life: Life | None = None
        self.doing: Coroutine[None, None, None] | None = self._start()

    async def _start(self) -> None:
        """As `run_shard`."""
        place = self.stack.enter_context(self.world.place())
        outbox = self.stack.enter_context(held_outbox(self.folder, 0, 1))
        remembered = await recalled(place, outbox.contents.ledger)
        if self.world.hasty:
            check_not_overtaken("", self.folder / LIVES, remembered)
            await self._begin(place, outbox.contents.ledger, remembered)
            assert self.life is not None
            remembered = remembered._replace(life=self.life.token)
        shard = self.stack.enter_context(
            opened_shard(
                self.folder,
                outbox,
                self.world.streams,  # type: ignore[arg-type]
                ceilings=Ceilings(),
                today=lambda: DAY,
                remembered=remembered,
            )
        )
        if not self.world.hasty:
            await self._begin(place, shard.name, remembered)
        self.waiting += shard.waiting
        self.at = shard.begin(self.world.bounds)
        self.shard = shard

    async def _begin(self, place: SecondPlace, name: str, remembered: Remembered) -> None:
        async def patiently(new: Remembered) -> None:
            while True:
                try:
                    return await place.write(name, new)
                except LinkError:
                    await pause()

        token = await self.world.begin(self.folder / LIVES, remembered, patiently)
        self.life = Life(place, name, token)

    def take(self, most: int) -> None:
        assert self.shard is not None
        entries = [one for one in self.world.log[: self.world.fed] if one.offset >= self.at][:most]
        acknowledged, self.acknowledged = self.acknowledged, []
        self.shard.acknowledge(acknowledged)
        fresh = self.shard.position.recognised(entries)
        if entries:
            self.at = entries[-1].offset + 1
        self.waiting += self.shard.take(fresh)

    async def publish(self, most: int) -> None:
        """As `ShardWorker`."""
        assert self.shard is not None
        assert self.life is not None
        chunks = list(itertools.islice(self.waiting, most))
        await self.life.remember(self.shard.lengths)
        for chunk in chunks:
            await pause()
            self.world.hear(chunk, self.life)
        for chunk in chunks:
            self.waiting.popleft()
            self.acknowledged.append(chunk)

    def end(self) -> None:
        if self.doing is not None:
            self.doing.close()
        self.stack.close()


class ShardHistory(History):
    """Workers on copies of a shard, beside a store on a server or a file.

    Attributes
    ----------
    fed : how many messages the log has.
    said : by the id of a chunk: every byte string that was heard.
    wanted : chunks that are to be heard.
    begin : how a life begins; may be a fault.
    hasty : whether a life begins before the lengths were compared, which is a fault.
    """

    def __init__(self, seed: int, root: Path) -> None:
        super().__init__(seed, root)
        self.begin: Callable[..., Awaitable[str]] = begin_life
        self.hasty = False
        devices = ("d", "e")[: self.luck.choice([1, 2])]
        self.streams = [(shard_settings(device), CountingMechanism()) for device in devices]
        chunks = self.luck.choice([2, 4, 6])
        self.log, self.wanted = raw_log(devices, chunks, seed=seed), chunks * len(devices)
        self.fed = len(self.log)
        self.bounds = Bounds("one", 0, len(self.log))
        self.cells = Cells(self.luck)
        self.file = self.luck.random() < 0.3
        self.copies = self.luck.choice([0.0, 0.05, 0.1])
        self.workers: list[_Worker] = []
        self.said: dict[str, set[bytes]] = defaultdict(set)
        self.folders[0].mkdir()
        self.name = create_shard(self.folders[0], 0, 1, created=DAY * 86_400)
        if self.file:
            FilePlace.create(self.root / "place")
            with contextlib.closing(FilePlace(self.root / "place")) as place:
                place.remember(self.name, Remembered(Lengths(0, 0)))
        else:
            self.cells.set(self.name, b"0 0 life", 0)  # as of a version whose lives had no tokens

    @contextlib.contextmanager
    def place(self) -> Iterator[SecondPlace]:
        if self.file:
            with contextlib.closing(FilePlace(self.root / "place")) as place:
                yield place
        else:
            yield CellPlace(self.cells)

    def hear(self, chunk: ReleasedChunk, life: Life) -> None:
        """What an outsider hears."""
        self.heard += 1
        self.said[chunk.id].add(chunk.payload)
        if len(self.said[chunk.id]) > 1:
            self.fault(f"two byte strings for the chunk of {chunk.device} that ends at row {chunk.last_row}")

    def act(self) -> None:
        luck = self.luck
        free = [one for one in self.folders if not any(worker.folder == one for worker in self.workers)]
        what = luck.random()
        if free and (what < 0.12 or not self.workers):
            self.workers.append(_Worker(self, luck.choice(free)))
            self.story.append(f"{self.workers[-1].folder.name} starts")
        elif what < 0.12 + self.copies and len(self.folders) < 4:
            starting = [worker.folder for worker in self.workers if worker.shard is None or worker.life is None]
            self.begin_copy(luck.choice(starting or self.folders))
        elif what < 0.22 and self._copying:
            self.go_on_copying()
        elif what < 0.26:
            self.cells.arrive()
        elif what < 0.26 + self.kills and self.workers:
            self.kill(luck.choice(self.workers), power=luck.random() < 0.5)
        elif self.workers:
            worker = luck.choice(self.workers)
            for _ in range(luck.choice([1, 1, 2, 9])):  # others stand still meanwhile
                if worker in self.workers:
                    self.step(worker, kill=luck.random() < self.kills)

    def supervise(self, rounds: int) -> None:
        """Let all folders have a worker that takes turns with the others, and is started again whenever it ends."""
        with self._watched():
            for turn in range(rounds):
                self.fed = turn * len(self.log) // (rounds // 2)
                folder = self.luck.choice(self.folders)
                if not any(worker.folder == folder for worker in self.workers):
                    self.workers.append(_Worker(self, folder))
                for worker in [one for one in self.workers if one.folder == folder] * self.luck.randint(1, 25):
                    if worker in self.workers:
                        self.step(worker)
            self.close()

    def step(self, worker: _Worker, *, kill: bool = False) -> None:
        """Let a process go on, to its next answer."""
        self.disk.left, self.disk.torn = (self.luck.randint(0, 6), self.luck.random() < 0.5) if kill else (None, False)
        try:
            if worker.doing is None:
                if worker.waiting and self.luck.random() < 0.6:
                    worker.doing = worker.publish(self.luck.randint(1, 3))
                else:
                    worker.take(self.luck.randint(1, 4))
            else:
                worker.doing.send(None)
        except StopIteration:
            worker.doing = None
        except LinkError:
            worker.doing = None
            if worker.shard is None:
                self.kill(worker, power=False)
        except EyestreamError as error:
            self.story.append(f"{worker.folder.name} ends: {str(error)[-90:]}")
            self.kill(worker, power=False)
        except Killed:
            self.kill(worker, power=self.luck.random() < 0.5)
        finally:
            self.disk.left = None

    def kill(self, worker: _Worker, *, power: bool) -> None:
        worker.end()
        self.workers.remove(worker)
        self.story.append(f"{worker.folder.name} is gone" + " with its power" * power)
        if power:
            self.disk.lose_power(worker.folder)

    def close(self) -> None:
        for worker in list(self.workers):
            self.kill(worker, power=False)

    def finish(self) -> None:
        self.cells.arrive()
        self.cells.faulty = 0.0
        for worker in list(self.workers):
            self.kill(worker, power=False)
        for folder in [*self.folders, *self.folders]:
            worker = _Worker(self, folder)
            self.workers.append(worker)
            for _ in range(600):
                if worker in self.workers:
                    self.step(worker)
            if worker in self.workers:
                self.kill(worker, power=False)
        if not self.faults and len(self.said) != self.wanted:
            self.fault(f"{len(self.said)} of {self.wanted} chunks were heard; no folder goes on")


class LedgerHistory(History):
    """Lives of a sidecar's ledger, and of copies of it, beside a second place in a file."""

    def __init__(self, seed: int, root: Path) -> None:
        super().__init__(seed, root)
        self.locks = True
        self.folders[0].mkdir()
        create_ledger(self.folders[0] / "ledger", created=DAY * 86_400)
        with Ledger(self.folders[0] / "ledger", ceilings=Ceilings()) as ledger:
            accept(ledger, self.folders[0] / "ledger", root / "place")
        self.kills = self.luck.choice([0.02, 0.1])
        self.granted: dict[StreamKey, dict[int, Path]] = {StreamKey(one, "features"): {} for one in ("d", "e")}
        self._serves: Path | None = None
        self._stack = contextlib.ExitStack()

    def act(self) -> None:
        what = self.luck.random()
        kill = self.luck.random() < 3 * self.kills
        self.disk.left, self.disk.torn = (self.luck.randint(0, 5), self.luck.random() < 0.5) if kill else (None, False)
        try:
            if what < 0.15 and len(self.folders) < 5:
                self.disk.left = None
                self.begin_copy(self.luck.choice(self.folders))
            elif what < 0.2 and self._copying:
                self.go_on_copying()
            elif self._serves is None:
                self.start(self.luck.choice(self.folders))
            elif what < 0.35:
                self.end(power=self.luck.random() < 0.5)
            else:
                self.reserve()
        except EyestreamError as error:
            self.story.append(f"it ends: {str(error)[-90:]}")
            self.end(power=False)
        except Killed:
            self.end(power=self.luck.random() < 0.5)
        finally:
            self.disk.left = None

    def start(self, folder: Path) -> None:
        """A life; raises what ends it."""
        self._serves = folder
        self.story.append(f"{folder.name} starts")
        ledger = self._stack.enter_context(Ledger(folder / "ledger", ceilings=Ceilings()))
        self._own = self._stack.enter_context(guarded(ledger, folder / "ledger", self.root / "place"))
        self._ledger = ledger

    def reserve(self) -> None:
        """Of a tracker that sends the next rows, or those before once more."""
        assert self._serves is not None
        key, granted = self.luck.choice(list(self.granted.items()))
        chunk = max(0, max(granted, default=-1) + 1 - self.luck.choice([0, 0, 0, 1, 2]))
        request = Request(key, 1, 4 * chunk, 4 * chunk + 3, 4, Charge.of(1.0))
        if not isinstance(self._own.reserve([request], DAY)[0], Granted):
            return
        self.heard += 1
        if chunk in granted:
            self.fault(f"chunk {chunk} of {key} is released by {self._serves.name}, and was by {granted[chunk].name}")
        granted[chunk] = self._serves
        odometer = self._ledger.odometer(key.device)
        if odometer is None or odometer.released < len(granted):
            self.fault(f"{len(granted)} chunks of {key} were released, the ledger has fewer")

    def end(self, *, power: bool) -> None:
        self._stack.close()
        if power and self._serves is not None:
            self.disk.lose_power(self._serves)
        self._serves = None

    def close(self) -> None:
        self.end(power=False)

    def finish(self) -> None:
        self.end(power=False)
        went_on = 0
        for folder in [*self.folders, *self.folders]:
            try:
                self.start(folder)
                went_on += 1
            except EyestreamError as error:
                self.story.append(f"it ends: {str(error)[-90:]}")
            self.end(power=False)
        if not went_on:
            self.fault("no folder goes on")
