"""The inside of one sidecar without its loop: pipeline, order of effects, ledger, days, disk, second place."""

import contextlib
import random
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from eyestream.core.meter import Odometer
from eyestream.core.reservation import Granted, Request, RowMark, Withheld
from eyestream.errors import EyestreamError
from eyestream.rim.ledger.guarded import accept, guarded
from eyestream.rim.ledger.ledger import Ledger
from eyestream.rim.ledger.reading import create_ledger
from eyestream.rim.ledger.records import RECORD_BYTES, read_header
from eyestream.rim.sidecar.pipeline import Arrival, Pipeline
from eyestream.rim.sidecar.spending import SpendingLedger
from eyestream.streams import StreamKey
from eyestream.wire.topics import raw_topic
from tests.rigs.simulated.disk import Killed, Place
from tests.rigs.simulated.history import COST, DAY, DAY_S, History, driven
from tests.rigs.simulated.people import N, Tracker

__all__ = ["Inside", "Noted"]

FILES = ("ledger", "ledger.lives", "ledger.paused", "ledger.worn")
SECOND: Any = Place("/place/second")


class Noted:
    """A ledger that is spent from, whose process opens its files, and what the clock showed when it was asked."""

    def __init__(self, ledger: SpendingLedger, world: History, owner: object = None) -> None:
        self._ledger, self._world, self._owner = ledger, world, owner

    def mark(self, key: StreamKey) -> RowMark | None:
        return self._ledger.mark(key)

    def odometer(self, device: str) -> Odometer | None:
        return self._ledger.odometer(device)

    def reserve(self, requests: Sequence[Request], day: int) -> list[Granted | Withheld]:
        judge = self._world.judge
        judge.shown.add(day)
        self._world.disks.owner = self._owner
        answers = self._ledger.reserve(requests, day)
        for one in answers:
            judge.note(f"{one.request.first_row} {getattr(one, 'obstacle', 'granted')}")
            if isinstance(one, Granted):
                chunk = one.request.key, one.request.session, one.request.first_row // N
                judge.asked[chunk], judge.under[chunk] = day, self._world.ceilings
        return answers


class _Life:
    """One process; raises what keeps it from starting."""

    def __init__(self, world: "Inside", folder: str) -> None:
        self.folder, self.stack = folder, contextlib.ExitStack()
        path: Any = Place(f"{folder}/ledger")
        try:
            self.ledger = self.stack.enter_context(
                Ledger(path, ceilings=world.ceilings, passed=lambda: world.now + world.slept)
            )
            own: SpendingLedger = self.ledger
            if world.guarded:
                own = self.stack.enter_context(guarded(self.ledger, path, SECOND))
            world.serving = folder
            self.pipeline = Pipeline(
                [(settings, world.mechanism) for settings in world.settings],  # type: ignore[misc]
                Noted(own, world),
                today=lambda: world.today,
                publish=world.publish,
                changed=lambda: None,
                levels=world.ceilings.levels,
            )
        except BaseException:
            self.stack.close()
            raise


class Inside(History):
    """Lives of one sidecar's ledger and of copies of it, one after the other."""

    life: _Life | None

    kinds: ClassVar[tuple[str, ...]] = (
        *("kill", "torn", "after", "full", "eio", "power", "lies", "rot", "copies", "clock", "mechanism", "again"),
        "liar",
    )

    def __init__(self, seed: int, events: frozenset[int] | None = None, without: frozenset[str] = frozenset()) -> None:
        super().__init__(seed, events, without)
        self.guarded = bool(self.on & {"lies", "copies"}) or self.luck.random() < 0.3
        self.serving, self.folders = "/host/f0", ["/host/f0"]
        self.life = None
        self.rotten = False
        with self.simulated():
            path: Any = Place("/host/f0/ledger")
            create_ledger(path, created=DAY * int(DAY_S))
            if self.guarded:
                with Ledger(path, ceilings=self.ceilings, passed=lambda: self.now + self.slept) as ledger:
                    accept(ledger, path, SECOND)
        self.disks.of("/host").lies = "lies" in self.on
        self._raw = {one.key: raw_topic(*one.key) for one in self.settings}
        self._topics = {topic.replace("/raw", "/private"): key for key, topic in self._raw.items()}

    def durable(self) -> bytes:
        return self.disks.of(self.serving).durable(f"{self.serving}/ledger")

    def publish(self, topic: str, payload: bytes) -> None:
        self.judge.hear(self._topics[topic], payload)

    def act(self, luck: random.Random) -> str:
        chance = luck.random()
        if self.life is None and chance < 0.6:
            newest = self.folders[-1] if luck.random() < 0.7 else luck.choice(self.folders)
            return self.guard(luck, f"{newest} starts", lambda: self.start(newest), often=0.6)
        if chance < 0.66:
            key, payload, said = self.message(luck)
            return self.guard(luck, f"{key} {said}", lambda: self.take(key, payload))
        if chance < 0.76:
            self.now += luck.choice([0.5, 2.0, 10.0, 70.0])
            return self.guard(luck, "time passes", self.take)
        if chance < 0.82:
            return self.clock(luck)
        if chance < 0.92 or "copies" not in self.on or len(self.folders) > 3:
            return self.end(luck, stop=luck.random() < 0.3) + self.rot(luck)
        return f"{(source := luck.choice(self.folders))} is copied to {self.copy(source)}"

    def copy(self, source: str) -> str:
        """A copy of a folder; where it is."""
        target = f"/host/f{len(self.folders)}"
        self.disks.of("/host").copy(source, target, FILES)
        self.folders.append(target)
        return target

    def guard(self, luck: random.Random, said: str, step: Callable[[], None], often: float = 0.25) -> str:
        """A step of the process, in which an effect may go wrong; it may end the process."""
        said += self.arm(luck, often)
        try:
            step()
        except Killed:
            return f"{said}: {self.end(luck)}"
        except EyestreamError as error:
            said = f"{said}: {str(error)[-70:]}: {self.end(luck)}"
        except OSError:
            said = f"{said}: the disk fails: {self.end(luck)}"
        finally:
            self.disks.left = None
        return said

    def start(self, folder: str) -> None:
        """A life; raises what keeps it from beginning."""
        self.serving = folder
        self.life = _Life(self, folder)
        self.judge.weigh_marks(self.life.ledger.mark)

    def take(self, key: StreamKey | None = None, payload: bytes = b"") -> None:
        """Let the process take a message, and the time."""
        if self.life is not None:
            messages = [] if key is None else [Arrival(self._raw[key], payload, self.now)]
            driven(self.life.pipeline.run_turn(messages, self.now))

    def end(self, luck: random.Random | None = None, *, stop: bool = False) -> str:
        """The process is gone, perhaps in order, perhaps with the power of its host."""
        if self.life is not None and stop:
            self.life.pipeline.close(self.now)
        if self.life is not None:
            self.judge.weigh_disk()
            self.life.stack.close()
        self.life = None
        self.disks.end(None)
        if luck is not None and "power" in self.on and luck.random() < 0.5:
            for disk in self.disks.disks.values():
                disk.lose_power(luck)
            return "the power is lost"
        return "stopped" if stop else "killed"

    def rot(self, luck: random.Random) -> str:
        """One of the newest records can no longer be read: it is zeros, or has another bit."""
        if "rot" not in self.on or self.rotten or self.guarded or luck.random() < 0.5:
            return ""
        inode = self.disks.of(self.serving).names[f"{self.serving}/ledger"]
        data = bytearray(inode.data)
        records = (len(data) - RECORD_BYTES - read_header(bytes(data[:RECORD_BYTES])).snapshot_bytes) // RECORD_BYTES
        if records < 1:
            return ""
        at = len(data) // RECORD_BYTES * RECORD_BYTES - RECORD_BYTES * luck.randint(1, min(3, records))
        data[at + luck.randrange(RECORD_BYTES)] ^= 1
        inode.data = inode.durable = bytes(data)
        self.rotten = True
        return f", record {at // RECORD_BYTES} rots"

    def finish(self) -> None:
        self.end()
        self.disks.of("/host").lies, self.mechanism.fails, self.ahead = False, 0.0, 0
        self.day = max(self.day, max((one for one in self.judge.shown if one < self.day + 300), default=0)) + 2
        self.slept += 5 * DAY_S
        self.heal()
        for folder in reversed(self.folders):
            try:
                self.start(folder)
                break
            except EyestreamError as error:
                self.disks.end(None)
                self.story.append(f"    {folder} is refused: {str(error)[-90:]}")
        if self.life is None:
            if not (self.rotten or "lies" in self.on):
                self.judge.fault("no ledger goes on")
            return
        for device in sorted({one.id for one in self.settings}):
            self._go_on(device)

    def heal(self) -> None:
        """Nothing goes wrong from now on."""

    def _go_on(self, device: str) -> None:
        """A new session of an honest tracker: what the budget allows is heard."""
        assert self.life is not None
        tracker = next(one for one in self.trackers if one.settings.id == device)
        odometer, most = self.life.ledger.odometer(device), self.allowed(tracker)
        heard, own = len(self.judge.chunks), self.judge.spent(device)
        if odometer is not None and odometer.epsilon < own:
            self.judge.fault(f"{device}: {own / COST:g} chunks were heard, the ledger has {odometer.epsilon / COST:g}")
        if odometer is None and own:
            self.judge.fault(f"{device}: {own / COST:g} chunks were heard, the ledger does not know it")
        for _ in range(2 if self.people.histories else 1):
            tracker.session = max((row.session for row in self.people.rows.values()), default=0) + 1
            tracker.row = tracker.wearer = 0
            count = 4 + self.mechanism.baseline_chunks
            for number in range(count):
                self.now += 2.0
                self.take(tracker.settings.key, tracker.send(N, end=number == count - 1))
        self.now += 70.0
        self.take()
        found = sum(one.key == tracker.settings.key for one in self.judge.chunks[heard:])
        if most is not None and found != most:
            self.judge.fault(f"{tracker.settings.key}: of a session on a new day {found} chunks are heard, not {most}")

    def allowed(self, tracker: Tracker) -> int | None:
        """How many chunks of a new session the budget allows, by a plain account; None: it is not so plain."""
        assert self.life is not None
        ceilings, key = self.ceilings, tracker.settings.key
        odometer = self.life.ledger.odometer(key.device)
        wrong = {day for day in self.judge.shown if day > self.day}
        if (
            ceilings.levels > 1
            or ceilings.window
            or len(wrong) > 3
            or self.rotten
            or (odometer and odometer.unreadable)
        ):
            return None
        stream = None if odometer is None else odometer.streams.get(key.stream)
        others = (odometer.session_epsilon if odometer else 0) - (stream.session_epsilon if stream else 0)
        own = ceilings.streams.get(key.stream)
        left = [
            (ceilings.session, others),
            (ceilings.day, 0),
            (ceilings.lifetime, odometer.epsilon if odometer else 0),
            (own.lifetime if own else None, stream.epsilon if stream else 0),
        ]
        return max(0, min([4, *((ceiling - spent) // COST for ceiling, spent in left if ceiling is not None)]))

    def close(self) -> None:
        self.end()
