"""A shard under test: a log in memory, a second place in memory, and a process that may end at any effect.

`Points` counts the effects of a life and ends it at one of them; everything that outlives a process is in `ShardHost`.
"""

import asyncio
import itertools
import random
import secrets
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import numpy as np
from numpy.typing import NDArray

from eyestream.core.charge import Ceilings
from eyestream.core.chunking.settings import DeviceSettings
from eyestream.core.mechanism import Mechanism
from eyestream.rim.ledger import second_place
from eyestream.rim.ledger.file import LedgerFile, put
from eyestream.rim.ledger.records import RECORD_BYTES, RELEASED
from eyestream.rim.ledger.second_place import Lengths, Remembered
from eyestream.streams import StreamKey
from eyestream.wire.raw import encode_raw
from eyestream_fleet.directory import LEDGER, LIVES, create_shard, held_outbox, opened_shard
from eyestream_fleet.log import Bounds, Entry, Publication
from eyestream_fleet.second_place import Life, begin_life, recalled
from eyestream_fleet.shard import Shard
from eyestream_fleet.worker import ShardWorker

__all__ = [
    "BASELINE",
    "DAY",
    "BaselineMechanism",
    "CountingMechanism",
    "Killed",
    "MemoryLog",
    "MemoryPlace",
    "Points",
    "ShardHost",
    "damage",
    "damage_from_last_reservation",
    "kinds",
    "raw_log",
    "shard_settings",
]

DAY = 20_000


N = 4
"""Rows of a chunk."""


def shard_settings(device: str) -> DeviceSettings:
    """4 rows a chunk, 2 rows a second, 3 features; so patient that rows alone close its chunks."""
    return DeviceSettings(device, "features", 1, ("a", "b", "c"), 2.0, N, grace_s=9.0, idle_s=60.0, jump_chunks=3)


class Killed(Exception):  # noqa: N818  no error: a process ends so
    """The process is gone."""


class Points:
    """Counts effects; the one with the number `kill` ends the process, and so does whatever it does after that.

    `torn`: a write that ends the process leaves half of its bytes, as a loss of power may.
    """

    def __init__(self, kill: int | None = None, *, torn: bool = False) -> None:
        self.kill, self.torn, self.names = kill, torn, list[str]()

    def __call__(self, name: str) -> None:
        self.names.append(name)
        if self.kill is not None and len(self.names) > self.kill:
            raise Killed(name)


class MemoryLog:
    """A log of one partition; what was published is kept in the order in which it came.

    Parameters
    ----------
    entries
        All messages; `fetch` gives them in small pieces.
    """

    def __init__(self, entries: Sequence[Entry], *, epoch: str = "one", piece: int = 5) -> None:
        self.entries, self.epoch, self.piece = list(entries), epoch, piece
        self.first = 0
        self.end: asyncio.Event
        self.published: list[tuple[str, StreamKey, bytes]] = []
        self.point: Callable[[str], None] = lambda name: None
        self._at = 0

    async def bounds(self) -> Bounds:
        end = max((entry.offset for entry in self.entries), default=self.first - 1) + 1
        return Bounds(self.epoch, self.first, end)

    async def seek(self, offset: int) -> None:
        self._at = next((i for i, one in enumerate(self.entries) if one.offset >= offset), len(self.entries))

    async def fetch(self, most: int, wait_s: float) -> list[Entry]:
        if self._at >= len(self.entries):
            self.end.set()  # all before was taken
            await asyncio.sleep(0.001)
        found = self.entries[self._at : self._at + min(most, self.piece)]
        self._at += len(found)
        return found

    async def secret(self) -> None:
        raise AssertionError("a world has the key")

    async def publish(self, publications: Sequence[Publication]) -> None:
        for one in publications:
            self.point("publish")
            self.published.append((one.id, one.key, one.payload))
        self.point("acknowledgement")


class MemoryPlace:
    """A second place that outlives the process, for one process after the other."""

    def __init__(self) -> None:
        self.held: dict[str, Remembered] = {}
        self.point: Callable[[str], None] = lambda name: None

    async def read(self, ledger: str) -> Remembered | None:
        return self.held.get(ledger)

    async def write(self, ledger: str, remembered: Remembered) -> None:
        held = self.held.get(ledger)
        self.point("token" if held is not None and held.life != remembered.life else "second place")
        self.held[ledger] = remembered

    def forget_lengths(self) -> None:
        """As if nothing had been published; the last life is known."""
        self.held = {name: held._replace(lengths=Lengths(0, 0)) for name, held in self.held.items()}


def raw_log(devices: Sequence[str], chunks: int, *, seed: int = 2, most: int = 9) -> list[Entry]:
    """Messages of two sessions of every device, mixed: whole chunks in all, one to `most` rows each, two a second."""
    luck, entries = random.Random(seed), list[tuple[float, StreamKey, bytes]]()
    for device in devices:
        start = 0.0
        for session in (1, 2):
            row, end = 0, chunks * N // 2
            while row < end:
                rows = np.full((min(luck.randint(1, most), end - row), 3), 0.5, np.float32)
                row += len(rows)
                payload = encode_raw(session, row - len(rows), rows, 1, end=row == end)
                entries.append((start + row / 2, StreamKey(device, "features"), payload))
            start += end / 2
    entries.sort(key=lambda one: one[0])
    return [Entry(offset, key, payload, at) for offset, (at, key, payload) in enumerate(entries)]


class CountingSession:
    """Releases its turn, how many values were missing, and noise: a row of each."""

    awaits_baseline = False
    state = None

    def __init__(self, noise: Callable[[NDArray[np.float64]], float], turn: int) -> None:
        self._noise, self._turn = noise, turn

    def release(self, chunk: NDArray[np.float64], /) -> NDArray[np.float64]:
        self._turn += 1
        said = (self._turn, np.isnan(chunk).sum(), self._noise(chunk))
        return np.repeat(np.array(said, np.float64)[:, None], chunk.shape[1], axis=1)

    def anchor(self, chunk: NDArray[np.float64], /) -> None:
        raise AssertionError("there is no baseline")

    def snapshot(self) -> bytes:
        return self._turn.to_bytes(4, "big")


_DRAWS = itertools.count(1)
"""Noise that was never drawn before, and is a float32. Of random numbers of 20 bits two of 12 are equal in one world of
16,000, and a test may play 130 worlds."""


class CountingMechanism:
    """Of three features; what it releases says how the shard treated its session. `noise` may be a fault."""

    epsilon, delta = 0.5, 0.0
    baseline_chunks = 0
    sessions = 0

    def __init__(self, noise: Callable[[NDArray[np.float64]], float] = lambda chunk: next(_DRAWS)) -> None:
        self._noise = noise

    def session(self, snapshot: bytes | None = None) -> CountingSession:
        return CountingSession(self._noise, 0 if snapshot is None else int.from_bytes(snapshot, "big"))

    def faded(self, level: int) -> "CountingMechanism":
        assert level == 0
        return self

    def continue_session(self, session: CountingSession, /) -> CountingSession:
        return session


class BaselineSession(CountingSession):
    """Takes two chunks into its baseline, which is a random number; releases it in the place of what was missing."""

    def __init__(self, turn: int, taken: int, tag: float) -> None:
        super().__init__(lambda chunk: next(_DRAWS), turn)
        self._taken, self.tag = taken, tag

    @property
    def awaits_baseline(self) -> bool:  # type: ignore[override]
        return self._taken < 2

    def anchor(self, chunk: NDArray[np.float64], /) -> None:
        assert not np.isnan(chunk).any()
        self._taken, self.tag = self._taken + 1, float(secrets.randbits(20))

    def release(self, chunk: NDArray[np.float64], /) -> NDArray[np.float64]:
        assert not self.awaits_baseline
        said = super().release(chunk)
        said[1] = self.tag
        return said

    def snapshot(self) -> bytes:
        return super().snapshot() + bytes([self._taken]) + BASELINE + np.float64(self.tag).tobytes()


BASELINE = b"raw baseline"
"""Stands in every snapshot with a baseline: what may be in no file."""


class BaselineMechanism(CountingMechanism):
    """Takes a baseline off each session."""

    baseline_chunks = 2

    def session(self, snapshot: bytes | None = None) -> BaselineSession:
        if snapshot is None:
            return BaselineSession(0, 0, 0.0)
        turn, taken = int.from_bytes(snapshot[:4], "big"), snapshot[4]
        return BaselineSession(turn, taken, float(np.frombuffer(snapshot[-8:])[0]))


class ShardHost:
    """What outlives a process: a directory, a log, a second place.

    Parameters
    ----------
    folder
        For the shard's files.
    log
        Its partition.
    streams
        What it serves.
    """

    def __init__(
        self,
        folder: Path,
        log: MemoryLog,
        streams: Sequence[tuple[DeviceSettings, Mechanism]],
        *,
        ceilings: Ceilings | None = None,
        kind: type[Shard] = Shard,
    ) -> None:
        folder.mkdir(exist_ok=True)
        self.folder, self.log, self.streams, self.kind = folder, log, list(streams), kind
        self.ceilings = ceilings or Ceilings()
        self.place = MemoryPlace()
        self.place.held[create_shard(folder, 0, 1, created=DAY * 86_400)] = Remembered(Lengths(0, 0))
        self.today = DAY
        self.key: bytes | None = secrets.token_bytes(32)
        self.shard: Shard | None = None
        self.guarded = True

    def live(self, points: Points | None = None) -> bool:
        """One life, to the end of the log unless it is killed; says whether it came there."""
        point = points or Points()
        self.log.point = self.place.point = point
        try:
            with _effects_of(point, self.folder), self.opened() as shard:
                asyncio.run(self._work(shard))
        except BaseExceptionGroup as group:
            if group.subgroup(Killed) is None:
                raise
            return False
        except Killed:
            return False
        return True

    @contextmanager
    def opened(self) -> Iterator[Shard]:
        """The shard, not at work."""
        with (
            mock.patch("eyestream_fleet.directory.Shard", self.kind),
            held_outbox(self.folder, 0, 1) as outbox,
            opened_shard(
                self.folder,
                outbox,
                self.streams,
                ceilings=self.ceilings,
                today=lambda: self.today,
                key=self.key,
                remembered=asyncio.run(recalled(self.place, outbox.contents.ledger)) if self.guarded else None,
            ) as self.shard,
        ):
            yield self.shard

    async def _work(self, shard: Shard) -> None:
        self.log.end, stop = asyncio.Event(), asyncio.Event()
        running = asyncio.create_task(ShardWorker(shard, self.log, await self._begun(shard)).run(stop))
        at_the_end = asyncio.create_task(self.log.end.wait())
        await asyncio.wait([running, at_the_end], return_when=asyncio.FIRST_COMPLETED)
        at_the_end.cancel()
        stop.set()
        await running

    async def _begun(self, shard: Shard) -> Life | None:
        if not self.guarded:
            return None
        remembered = await recalled(self.place, shard.name)
        token = await begin_life(self.folder / LIVES, remembered, lambda new: self.place.write(shard.name, new))
        return Life(self.place, shard.name, token)

    def payloads(self) -> dict[str, set[bytes]]:
        """By the id of a chunk: every byte string that the log was given."""
        found: dict[str, set[bytes]] = defaultdict(set)
        for name, _, payload in self.log.published:
            found[name].add(payload)
        return found

    def spent(self, device: str) -> int:
        """Epsilon of a device in the ledger, in its units."""
        with self.opened() as shard:
            odometer = shard._ledger.odometer(device)
        return 0 if odometer is None else odometer.epsilon


def kinds(path: Path) -> list[int]:
    """Of the records of a ledger without a snapshot."""
    data = path.read_bytes()
    return [int.from_bytes(data[at : at + 2], "little") for at in range(RECORD_BYTES, len(data), RECORD_BYTES)]


def damage(path: Path, numbers: Iterable[int]) -> None:
    """Records with these numbers, of a ledger without a snapshot, cannot be read any more."""
    data = bytearray(path.read_bytes())
    for number in numbers:
        data[RECORD_BYTES * (1 + number) + 9] ^= 1
    path.write_bytes(data)


def damage_from_last_reservation(path: Path) -> None:
    """No record of a ledger without a snapshot can be read from there on."""
    found = kinds(path)
    damage(path, range(max(number for number, kind in enumerate(found) if kind == RELEASED), len(found)))


@contextmanager
def _effects_of(point: Points, folder: Path) -> Iterator[None]:
    """Every write, sync and replacement of the shard's files is a point, before and after it."""

    def watched(name: str, effect: Callable[..., object]) -> Callable[..., object]:
        def carry_out(self: LedgerFile, *given: object) -> object:
            where = "ledger" if self._path == folder / LEDGER else "outbox"
            point(f"before {name} of {where}")
            if name == "append" and point.torn and point.kill == len(point.names):
                given = tuple(data[: len(data) // 2] for data in given if isinstance(data, bytes))
            done = effect(self, *given)
            point(f"after {name} of {where}")
            return done

        return carry_out

    def watched_put(path: Path, data: bytes) -> None:
        point("before the tokens")
        put(path, data)
        point("after the tokens")

    with (
        mock.patch.object(second_place, "put", watched_put),
        mock.patch.object(LedgerFile, "append", watched("append", LedgerFile.append)),
        mock.patch.object(LedgerFile, "sync", watched("sync", LedgerFile.sync)),
        mock.patch.object(LedgerFile, "prepare", watched("prepare", LedgerFile.prepare)),
        mock.patch.object(LedgerFile, "replace", watched("replace", LedgerFile.replace)),
        mock.patch("os.fsync", return_value=None),
        mock.patch("os.fdatasync", return_value=None),
    ):
        yield
