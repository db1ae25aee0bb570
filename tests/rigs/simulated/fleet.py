"""Workers of a fleet on copies of one shard, beside a log and a second place; without a loop.

A worker is a coroutine that stops at each answer of the second place and before each publication. The world lets one of
them take a step, or ends it at an effect.
"""

import contextlib
import itertools
import random
import types
from collections import deque
from collections.abc import Coroutine, Generator, Iterator
from typing import Any, ClassVar

from eyestream.core.charge import Ceilings
from eyestream.errors import EyestreamError, LinkError
from eyestream.rim.ledger.ledger import Ledger
from eyestream.rim.ledger.second_place import FilePlace, Lengths, Remembered
from eyestream.streams import StreamKey
from eyestream_fleet import second_place as fleet_place
from eyestream_fleet.directory import LIVES, create_shard, held_outbox, opened_shard
from eyestream_fleet.frames import ReleasedChunk
from eyestream_fleet.log import Bounds, Entry
from eyestream_fleet.second_place import Life, RevisedPlace, SecondPlace, recalled
from tests.rigs.simulated.disk import Killed, Place
from tests.rigs.simulated.history import COST, DAY, DAY_S, History

__all__ = ["Fleet"]

FILES = ("ledger", "outbox", LIVES)
SECOND: Any = Place("/place/second")


@types.coroutine
def pause() -> Generator[None, None, None]:
    yield


class Cells:
    """A store on a server: values with revisions; what is asked for may come late, and answers may be lost."""

    def __init__(self, luck: random.Random) -> None:
        self._luck, self.faulty = luck, luck.choice([0.0, 0.12, 0.5])
        self.revision, self.held = 0, dict[str, tuple[int, bytes]]()
        self._late: list[tuple[str, bytes, int]] = []

    def set(self, ledger: str, value: bytes, last: int) -> int | None:
        if self.held.get(ledger, (0, b""))[0] != last:
            return None
        self.revision += 1
        self.held[ledger] = self.revision, value
        return self.revision

    def ask(self, ledger: str, value: bytes, last: int) -> int | None:
        """As `set`, over a link. Raises LinkError."""
        if self._luck.random() < self.faulty:
            way = self._luck.choice(["late", "set", "lost"])
            if way == "late":
                self._late.append((ledger, value, last))
            elif way == "set":
                self.set(ledger, value, last)
            raise LinkError("no answer in time")
        return self.set(ledger, value, last)

    def arrive(self) -> None:
        """What was under way is here."""
        for one in self._late:
            self.set(*one)
        self._late.clear()


class _CellPlace(RevisedPlace):
    """One worker's view of the cells."""

    def __init__(self, cells: Cells) -> None:
        super().__init__()
        self._cells = cells

    async def _get(self, ledger: str) -> tuple[int, bytes] | None:
        await pause()
        held = self._cells.held.get(ledger)
        await pause()
        return held

    async def _set(self, ledger: str, value: bytes, last: int) -> int | None:
        await pause()
        try:
            return self._cells.ask(ledger, value, last)
        finally:
            await pause()


class _Worker:
    """One process that serves a folder, step by step."""

    def __init__(self, world: "Fleet", folder: str) -> None:
        self.world, self.folder, self.stack = world, folder, contextlib.ExitStack()
        self.shard: Any = None
        self.life: Life | None = None
        self.waiting: deque[ReleasedChunk] = deque()
        self.acknowledged: list[ReleasedChunk] = []
        self.at = 0
        self.doing: Coroutine[Any, Any, None] | None = self._start()

    async def _start(self) -> None:
        """As `run_shard`."""
        world, folder, enter = self.world, Place(self.folder), self.stack.enter_context
        place, path = enter(world.place()), Place(f"{self.folder}/{LIVES}")
        outbox = enter(held_outbox(folder, 0, 1))  # type: ignore[arg-type]
        remembered = await recalled(place, outbox.contents.ledger)
        shard: Any = enter(
            opened_shard(
                folder,  # type: ignore[arg-type]
                outbox,
                [(one, world.mechanism) for one in world.settings],  # type: ignore[misc]
                ceilings=world.ceilings,
                today=world.shown,
                levels=world.ceilings.levels,
                key=b"k" * 32,
                remembered=remembered,
            )
        )

        async def patiently(new: Remembered) -> None:
            while True:
                try:
                    return await place.write(shard.name, new)
                except LinkError:
                    await pause()

        token = await fleet_place.begin_life(path, remembered, patiently)  # type: ignore[arg-type]
        self.life = Life(place, shard.name, token)
        world.judge.weigh_marks(shard._ledger.mark)
        self.waiting += shard.waiting
        self.at = shard.begin(world.bounds)
        self.shard = shard

    @property
    def idle(self) -> bool:
        """Whether it has read the log, and nothing waits to be published."""
        return self.doing is None and not self.waiting and self.at >= self.world.offset

    def take(self, most: int, idle_s: float) -> None:
        world = self.world
        entries = world.log[max(0, self.at - world.log[0].offset) :] if world.log else []
        acknowledged, self.acknowledged = self.acknowledged, []
        self.shard.acknowledge(acknowledged)
        try:
            fresh = self.shard.position.recognised(entries[:most])
        except LinkError:
            self.at = self.shard.begin(world.bounds)
            return
        if entries:
            self.at = entries[:most][-1].offset + 1
        if idle_s and len(entries) <= most:
            world.now += idle_s  # what comes later is stamped later
        self.waiting += self.shard.take(fresh, world.now if idle_s and len(entries) <= most else None)

    async def publish(self, most: int, *, lost: bool) -> None:
        """As `ShardWorker`."""
        assert self.life is not None
        chunks = list(itertools.islice(self.waiting, most))
        await self.life.remember(self.shard.lengths)
        for chunk in chunks:
            await pause()
            self.world.serving = self.folder
            self.world.judge.hear(StreamKey(chunk.device, chunk.stream), chunk.payload)
        for chunk in () if lost else chunks:
            self.waiting.popleft()
            self.acknowledged.append(chunk)


_MOST_STEPS = 2000


class _Steady:
    """No luck: a worker publishes what waits, takes as much as it may, and lets as much time pass as it may."""

    random = staticmethod(lambda: 0.5)
    randint = staticmethod(lambda least, most: 4 * most)
    choice = staticmethod(lambda several: several[-1])


_UNEQUAL = frozenset({"losses", "ticks", "mechanism", "clock", "liar"})
"""Faults after which the log may give other chunks."""


class Fleet(History):
    """Workers on copies of a shard, beside a store on a server or a file.

    Some histories have no ceilings, and no fault after which the log may give other chunks: those are compared.
    """

    kinds: ClassVar[tuple[str, ...]] = (
        *("kill", "torn", "after", "full", "eio", "power", "copies", "clock", "mechanism", "again", "liar"),
        *("losses", "ticks", "unlocked"),
    )
    lengths = (20, 70)

    def __init__(self, seed: int, events: frozenset[int] | None = None, without: frozenset[str] = frozenset()) -> None:
        plain = random.Random(f"plain {seed}")
        self._plain = plain.random() < 0.3
        super().__init__(seed, events, without)
        if self._plain:
            self.on -= _UNEQUAL
            self.mechanism.fails = 0.0
            if plain.random() < 0.5:  # more chunks are released then, and compared
                self.mechanism.baseline_chunks *= self.judge.alone
        self.people.histories, self.mechanism.sessions = False, 0  # a shard keeps none
        self.cells, self.file = Cells(self.luck), self.luck.random() < 0.3
        self.log, self.offset, self.epoch, self.compares = list[Entry](), 0, 0, True
        self.folders, self.serving, self.workers = ["/h0/s"], "/h0/s", list[_Worker]()
        self.disks.of("/place").locks = "unlocked" not in self.on
        with self.simulated():
            folder: Any = Place("/h0/s")
            self.name = create_shard(folder, 0, 1, created=DAY * int(DAY_S))
            self.cells.set(self.name, b"0 0 life", 0)  # as of a version whose lives had no tokens
            if self.file:
                FilePlace.create(SECOND)
                with contextlib.closing(FilePlace(SECOND)) as place:
                    place.remember(self.name, Remembered(Lengths(0, 0)))

    def _ceilings(self, luck: random.Random) -> Ceilings:
        some = super()._ceilings(luck)
        return Ceilings(session=1000 * COST) if self._plain else some

    @contextlib.contextmanager
    def place(self) -> Iterator[SecondPlace]:
        if self.file:
            with contextlib.closing(FilePlace(SECOND)) as place:
                yield place
        else:
            yield _CellPlace(self.cells)

    @property
    def bounds(self) -> Bounds:
        first = self.log[0].offset if self.log else self.offset
        return Bounds(str(self.epoch), first, self.offset)

    def shown(self) -> int:
        """The day that a clock shows a worker."""
        self.judge.shown.add(self.today)
        return self.today

    def durable(self) -> bytes:
        return self.disks.of(self.serving).durable(f"{self.serving}/ledger")

    def act(self, luck: random.Random) -> str:
        chance = luck.random()
        free = [one for one in self.folders if not any(worker.folder == one for worker in self.workers)]
        if chance < 0.25:
            key, payload, said = self.message(luck)
            self.log.append(Entry(self.offset, key, payload, self.now))
            self.offset, self.now = self.offset + 1, self.now + 0.001
            return f"{key} {said}"
        if free and (chance < 0.32 or not self.workers):
            self.workers.append(_Worker(self, luck.choice(free)))
            return f"{self.workers[-1].folder} starts"
        if chance < 0.40:
            return self._rarely(luck)
        if chance < 0.44 and self.workers:
            return self.end(luck.choice(self.workers), luck)
        if not self.workers:
            return "nothing"
        worker, said = luck.choice(self.workers), ""
        for _ in range(luck.choice([1, 2, 4, 9])):  # others stand still meanwhile
            said = self.step(worker, luck)
            if worker not in self.workers or worker.idle:
                break
        return said

    def _rarely(self, luck: random.Random) -> str:
        what = luck.choice(["copy", "copy", "late", "clock", "loss"])
        if what == "clock":
            return self.clock(luck)
        if what == "late":
            self.cells.arrive()
            return "the second place hears what was late"
        if what == "copy" and "copies" in self.on and len(self.folders) < 4:
            source, target = luck.choice(self.folders), f"/h{len(self.folders)}/s"
            self.disks.of(source).copy(source, target, FILES, self.disks.of(target))
            self.folders.append(target)
            return f"{source} is copied to {target}"
        return self._lose(luck) if what == "loss" and "losses" in self.on and self.log else "nothing"

    def _lose(self, luck: random.Random) -> str:
        """The log forgets its oldest messages, or loses its newest ones, or all."""
        cut, how = luck.randint(1, min(4, len(self.log))), luck.choice(["old", "old", "new", "all"])
        if how == "old":
            self.log = self.log[cut:]
        elif how == "new":
            self.log, self.offset = self.log[:-cut], self.log[-cut].offset
        else:
            self.log, self.offset, self.epoch = [], 0, self.epoch + 1
        return f"the log loses {cut if how != 'all' else 'everything'}, {how}"

    def step(self, worker: _Worker, luck: random.Random) -> str:
        """Let a process go on, to its next answer."""
        said, self.disks.owner = worker.folder, worker
        said += self.arm(luck, 0.1)
        try:
            if worker.doing is None and worker.waiting and luck.random() < 0.6:
                worker.doing = worker.publish(luck.randint(1, 3), lost=luck.random() < 0.1)
            elif worker.doing is None:
                worker.take(luck.randint(1, 4), luck.choice([0, 0, 1.0, 12.0, 70.0]) if "ticks" in self.on else 0.0)
            else:
                worker.doing.send(None)
        except StopIteration:
            worker.doing = None
        except LinkError:
            worker.doing = None
            return self.end(worker) if worker.shard is None else said
        except EyestreamError as error:
            return f"{said} ends: {str(error)[-70:]}: {self.end(worker)}"
        except (Killed, OSError):
            return f"{said}: {self.end(worker, luck)}"
        finally:
            self.disks.left = None
        return f"{said} goes on"

    def end(self, worker: _Worker, luck: random.Random | None = None) -> str:
        self.disks.left = None
        if worker.doing is not None:
            worker.doing.close()
        worker.stack.close()
        self.disks.end(worker)
        self.workers.remove(worker)
        if luck is not None and "power" in self.on and luck.random() < 0.5:
            self.disks.of(worker.folder).lose_power(luck)
            return f"{worker.folder} loses its power"
        return f"{worker.folder} is gone"

    def close(self) -> None:
        for worker in list(self.workers):
            self.end(worker)

    def finish(self) -> None:
        """Some folder must go on, for a supervisor that tries them all; and it must come to the end of the log."""
        self.close()
        self.healed = True
        self.cells.arrive()
        self.cells.faulty = self.mechanism.fails = 0.0
        luck: Any = _Steady()
        went_on = False
        again = self.folders if len(self.folders) > 1 else []  # a copy that lost may win the second time
        for folder in [*self.folders, *again]:
            worker, idle = _Worker(self, folder), 0
            self.workers.append(worker)
            for _ in range(_MOST_STEPS):
                said = self.step(worker, luck)
                idle = idle + 1 if worker.idle else 0
                if worker not in self.workers or idle > (2 if "ticks" in self.on else 0):
                    break
            else:
                self.judge.fault(f"{folder} does not come to the end of the log")
            if worker not in self.workers:
                self.story.append(f"    {said}")
            went_on |= worker in self.workers and worker.life is not None
            self.compares &= worker.shard is None or not self._has_lost(worker.shard._ledger)
            if worker in self.workers:
                self.end(worker)
        if not went_on:
            self.judge.fault("no folder goes on")
        elif self.compares and not self.on & _UNEQUAL and self._must_be_equal():
            self._compare()

    def _has_lost(self, ledger: Ledger) -> bool:
        """Whether records cannot be read, and whole ones stand after them: they closed the sessions of their device.

        A loss of power does it, which may keep the later of two sectors that were not synced.
        """
        return any(odometer.unreadable for one in self.settings if (odometer := ledger.odometer(one.id)) is not None)

    def _must_be_equal(self) -> bool:
        """Whether every chunk must come, in this history and in one without faults: no ceiling withholds any."""
        ceilings = self.ceilings
        bound = (ceilings.lifetime, ceilings.wearer, ceilings.day)
        return bound == (None,) * 3 and ceilings.session == 1000 * 500_000_000_000 and not ceilings.window

    def _compare(self) -> None:
        """The same log without faults must give the same chunks."""
        other = type(self)(self.seed, None, frozenset(self.kinds))
        other.log, other.offset, other.now, other.people = self.log, self.offset, self.now, self.people
        other.ceilings, other.settings, other.mechanism = self.ceilings, self.settings, self.mechanism
        other.judge, other.compares = type(self.judge)(self.people, self.ceilings, None), False
        with other.simulated():
            other.finish()
            other.close()
        heard = {one[:3] for one in self.judge.chunks if one.session >= 0}
        wanted = {one[:3] for one in other.judge.chunks if one.session >= 0}
        if heard != wanted:
            self.judge.fault(f"without faults the log gives other chunks: {sorted(heard ^ wanted)[:3]}")
