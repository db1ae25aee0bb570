"""Devices that come, go and move between the shards of two fleets, without a loop.

Fleet A has two partitions, and fleet B one. An operator enrols devices, removes them, and moves them from one fleet to
the other. Workers follow their rolls, and sometimes read an old one, or one that a hand has written wrongly. A log may
give rows to a partition that is not theirs.
"""

import contextlib
import functools
import random
from collections.abc import Callable
from typing import Any, ClassVar

from eyestream.core.reservation import RowMark
from eyestream.errors import EyestreamError, LedgerError, ShardError
from eyestream.rim.ledger.operating import OperatedLedger
from eyestream.rim.ledger.snapshot import DeviceExport
from eyestream.streams import StreamKey
from eyestream_fleet import roll as rolls
from eyestream_fleet.directory import create_shard, held_outbox, opened_shard
from eyestream_fleet.frames import ReleasedChunk
from eyestream_fleet.log import Bounds, Entry, partition_of
from eyestream_fleet.roll import Roll
from tests.rigs.simulated.disk import Killed, Place
from tests.rigs.simulated.history import DAY, DAY_S, History

__all__ = ["Moves"]

PARTITIONS = {"a": 2, "b": 1}
_PARTITION_OF = functools.cache(partition_of)


class _Shard:
    """What outlives a worker: files, a log, and all rolls that were ever written."""

    def __init__(self, fleet: str, partition: int) -> None:
        self.fleet, self.partition, self.partitions = fleet, partition, PARTITIONS[fleet]
        self.folder = f"/{fleet}{partition}/s"
        self.name = create_shard(
            Place(self.folder),  # type: ignore[arg-type]
            partition,
            self.partitions,
            created=DAY * int(DAY_S),
        )
        self.log: list[Entry] = []
        self.roll = Roll(partition, self.partitions)
        self.written = [self.roll.pack()]
        self.worker: _Worker | None = None

    def write(self, roll: Roll) -> None:
        self.roll = roll
        self.written.append(roll.pack())


class _Worker:
    """One life of a shard."""

    def __init__(self, world: "Moves", own: _Shard, data: bytes) -> None:
        self.world, self.own, self.stack = world, own, contextlib.ExitStack()
        self.roll = self.newest = rolls.read_roll(data, own.partition, own.partitions)
        folder: Any = Place(own.folder)
        with contextlib.ExitStack() as stack:
            outbox = stack.enter_context(held_outbox(folder, own.partition, own.partitions))
            self.shard: Any = stack.enter_context(
                opened_shard(
                    folder,
                    outbox,
                    self._streams(),
                    ceilings=world.ceilings,
                    today=world.shown,
                    levels=world.ceilings.levels,
                    key=b"k" * 32,
                )
            )
            self.stack.push(stack.pop_all())
        self.waiting: list[ReleasedChunk] = list(self.shard.waiting)
        self.at = self.shard.begin(Bounds("log", 0, len(own.log)))
        marked = world.judge._last.keys() & self.shard.streams.keys()
        world.judge.weigh_marks(lambda key: self.shard._ledger.mark(key) if key in marked else RowMark(1 << 64, 0))

    def _streams(self) -> list[Any]:
        return [(one, self.world.mechanism) for one in self.world.settings if one.id in self.roll.devices]

    def follow(self, data: bytes) -> None:
        """Look at the roll."""
        with contextlib.suppress(ShardError):
            fresh = rolls.read_roll(data, self.own.partition, self.own.partitions)
            self.newest = max(self.newest, fresh, key=lambda one: one.serial)
        with contextlib.suppress(ShardError):
            self.roll = rolls.followed(self.roll, data)
            self.shard.serve(self._streams())

    def take(self, most: int, idle_s: float) -> None:
        entries = self.own.log[self.at : self.at + most]
        self.at += len(entries)
        if idle_s and self.at == len(self.own.log):
            self.world.now += idle_s
        fresh = self.shard.take(
            self.shard.position.recognised(entries), self.world.now if idle_s and self.at == len(self.own.log) else None
        )
        for chunk in fresh:
            if chunk.device not in self.newest.devices:
                self.world.judge.fault(f"{chunk.device}: is served by {self.own.folder}, whose roll has removed it")
        self.waiting += fresh

    def publish(self) -> None:
        """All that waits."""
        for chunk in self.waiting:
            self.world.serving = self.own.folder
            self.world.judge.hear(StreamKey(chunk.device, chunk.stream), chunk.payload)
        self.shard.acknowledge(self.waiting)
        self.waiting = []


class Moves(History):
    """Two fleets and an operator."""

    kinds: ClassVar[tuple[str, ...]] = (
        *("kill", "torn", "after", "full", "eio", "power", "clock", "mechanism", "again", "liar"),
        *("stray", "old", "wrong", "ticks"),
    )
    lengths = (25, 80)

    def __init__(self, seed: int, events: frozenset[int] | None = None, without: frozenset[str] = frozenset()) -> None:
        super().__init__(seed, events, without)
        self.people.histories, self.mechanism.sessions = False, 0
        self.serving = "/a0/s"
        with self.simulated():
            self.shards = [_Shard("a", 0), _Shard("a", 1), _Shard("b", 0)]
        self.home = dict.fromkeys(sorted({one.id for one in self.settings}), "a")
        self.moving: dict[str, tuple[_Shard, _Shard, DeviceExport | None]] = {}
        self.exports: list[tuple[_Shard, DeviceExport]] = []
        for device in self.home:
            self._enrol(device, "a")

    def _of(self, device: str, fleet: str) -> _Shard:
        own = _PARTITION_OF(device, PARTITIONS[fleet])
        return next(one for one in self.shards if one.partition == own and one.fleet == fleet)

    def _enrol(self, device: str, fleet: str) -> None:
        own = self._of(device, fleet)
        own.write(own.roll.changed([device], [], 0))

    def shown(self) -> int:
        self.judge.shown.add(self.today)
        return self.today

    def durable(self) -> bytes:
        return self.disks.of(self.serving).durable(f"{self.serving}/ledger")

    def act(self, luck: random.Random) -> str:
        chance = luck.random()
        if chance < 0.28:
            return self._send(luck)
        own = luck.choice(self.shards)
        if chance < 0.36:
            return self._operate(luck)
        if own.worker is None:
            return self._start(own, luck)
        if chance < 0.40:
            return self._end(own, luck)
        if chance < 0.42:
            return self.clock(luck)
        return self._step(own, luck)

    def _send(self, luck: random.Random) -> str:
        key, payload, said = self.message(luck)
        to = {self._of(key.device, self.home[key.device]).folder}
        if "stray" in self.on and luck.random() < 0.4:
            to |= {one.folder for one in luck.sample(self.shards, 2)}
        for own in self.shards:
            if own.folder in to:
                own.log.append(Entry(len(own.log), key, payload, self.now))
        self.now += 0.001
        return f"{key} {said} to {', '.join(sorted(to))}"

    def _operate(self, luck: random.Random) -> str:
        device, what = luck.choice(list(self.home)), luck.choice(["move", "move", "move", "roll", "wrong", "import"])
        if what == "import" and self.exports:  # bytes that were taken before, or never
            target, export = luck.choice(self.exports)
            return f"{export.line.device} is imported once more: {self._import(target, export)}"
        if device in self.moving:
            return self._move_on(device, luck)
        own = self._of(device, self.home[device])
        if what == "move":
            other = self._of(device, "ab".replace(self.home[device], ""))
            own.write(own.roll.changed([], [device], 0))
            self.moving[device] = own, other, None
            return f"{device} is to move from {own.folder} to {other.folder}"
        if what == "wrong" and "wrong" in self.on:
            strange = luck.choice(self.shards[:2])
            strange.write(strange.roll.changed(list(self.home), [], 0))
            return f"a hand writes all devices into the roll of {strange.folder}"
        remove = device in own.roll.devices
        own.write(own.roll.changed([] if remove else [device], [device] if remove else [], 0))
        return f"{device} is {'removed from' if remove else 'enrolled in'} {own.folder}"

    def _move_on(self, device: str, luck: random.Random) -> str:
        """The next step of a move; one that fails is tried again."""
        own, other, export = self.moving[device]
        target = other if export is not None else own
        if target.worker is not None:
            return self._end(target)
        self.disks.owner, said = self, self.arm(luck, 0.2)
        try:
            if export is None:
                worker = _Worker(self, own, Roll(own.partition, own.partitions).pack())
                with worker.stack:
                    worker.publish()  # what waits in its outbox comes before what the other fleet releases
                    worker.shard.take([])
                export = self._operated(
                    own, lambda ledger: ledger.export_device(device, other.name, must_be_known=False)
                )
                self.exports.append((other, export))
                self.moving[device] = own, other, export
                return f"{device} leaves {own.folder}{said}"
            came = self._import(other, export)
            del self.moving[device]
            self.home[device] = other.fleet
            self._enrol(device, other.fleet)
            return f"{device} is in {other.folder}: {came}{said}"
        except LedgerError as error:
            return f"{device} stays: {str(error)[-50:]}{said}"
        except (Killed, OSError):
            self._lose(target, luck)
            return f"{device} stays, the operator is gone{said}"
        finally:
            self.disks.left = None
            self.disks.end(self)

    def _operated(self, own: _Shard, change: Callable[[OperatedLedger], Any]) -> Any:
        with OperatedLedger(Place(f"{own.folder}/ledger"), ceilings=self.ceilings) as ledger:  # type: ignore[arg-type]
            return change(ledger)

    def _import(self, target: _Shard, export: DeviceExport) -> str:
        if target.worker is not None:
            return "in use"
        try:
            self._operated(target, lambda ledger: ledger.import_device(export))
        except LedgerError as error:
            if not any(words in str(error) for words in ("in it already", "exported again")):
                raise
            return "refused"
        return "taken"

    def _start(self, own: _Shard, luck: random.Random) -> str:
        data = (
            luck.choice(own.written)
            if "old" in self.on and not self.healed and luck.random() < 0.5
            else own.written[-1]
        )
        said = f"{own.folder} starts"
        try:
            self.disks.owner = own
            own.worker = _Worker(self, own, data)
        except ShardError as error:
            return f"{said}: refused: {str(error)[-60:]}"
        return f"{said} with {', '.join(own.worker.roll.devices)}"

    def _step(self, own: _Shard, luck: random.Random) -> str:
        worker = own.worker
        assert worker is not None
        self.disks.owner, said = own, own.folder + self.arm(luck, 0.1)
        what = luck.choice(["take", "take", "take", "publish", "follow"])
        try:
            if what == "publish":
                worker.publish()
            elif what == "follow":
                data = (
                    luck.choice(own.written)
                    if "old" in self.on and not self.healed and luck.random() < 0.5
                    else own.written[-1]
                )
                worker.follow(data)
                said += f" follows its roll: {', '.join(worker.roll.devices)}"
            else:
                idle_s = luck.choice([0, 0, 1.0, 12.0, 70.0]) if "ticks" in self.on else 0.0
                worker.take(luck.randint(1, 4), idle_s)
        except EyestreamError as error:
            return f"{said} ends: {str(error)[-70:]}: {self._end(own)}"
        except (Killed, OSError):
            return f"{said}: {self._end(own, luck)}"
        finally:
            self.disks.left = None
        return f"{said} does {what}"

    def _end(self, own: _Shard, luck: random.Random | None = None) -> str:
        self.disks.left = None
        if own.worker is not None:
            own.worker.stack.close()
            own.worker = None
        self.disks.end(own)
        return self._lose(own, luck)

    def _lose(self, own: _Shard, luck: random.Random | None) -> str:
        if luck is not None and "power" in self.on and luck.random() < 0.5:
            self.disks.of(own.folder).lose_power(luck)
            return f"{own.folder} loses its power"
        return f"{own.folder} is gone"

    def close(self) -> None:
        for own in self.shards:
            self._end(own)

    def finish(self) -> None:
        """Moves come to their end; then every device that is enrolled is served where it is."""
        self.close()
        self.healed, self.mechanism.fails = True, 0.0
        luck = random.Random(1)
        for device in list(self.moving):
            for _ in range(4):
                if device in self.moving:
                    self.story.append(f"    {self._move_on(device, luck)}")
        if self.moving:
            self.judge.fault(f"{', '.join(self.moving)}: does not come to the end of a move")
        for own in self.shards:
            own.write(Roll(own.partition, own.partitions, own.roll.serial + 1))
        for device, fleet in self.home.items():
            self._enrol(device, fleet)
        for tracker in self.trackers:
            tracker.begin(luck)
            tracker.session += 1000
            for _ in range(5):
                key, payload = tracker.settings.key, tracker.send(4)
                self.now += 2.0
                own = self._of(key.device, self.home[key.device])
                own.log.append(Entry(len(own.log), key, payload, self.now))
        before = {one.key for one in self.judge.chunks}
        heard = len(self.judge.chunks)
        for own in self.shards:
            self.story.append(f"    {self._start(own, luck)}")
            while own.worker is not None and own.worker.at < len(own.log):
                own.worker.take(16, 0.0)
                own.worker.publish()
            if own.worker is not None:
                own.worker.take(4, 70.0)  # what waits for a clock
                own.worker.publish()
        self._must_have_spoken({one.key for one in self.judge.chunks[heard:]}, before)

    def _must_have_spoken(self, heard: set[StreamKey], before: set[StreamKey]) -> None:
        ceilings = self.ceilings
        bound = (ceilings.lifetime, ceilings.wearer, ceilings.day)
        if bound != (None,) * 3 or ceilings.window or ceilings.streams or self.on & {"liar", "clock", "ticks"}:
            return
        for tracker in self.trackers:
            if tracker.settings.key not in heard and ceilings.session == 1000 * 500_000_000_000:
                self.judge.fault(f"{tracker.settings.key}: is enrolled, and nothing of it is heard")
