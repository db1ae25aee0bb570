"""A whole sidecar with its asyncio layer, two brokers, trackers and applications, in virtual time."""

import asyncio
import contextlib
import contextvars
import dataclasses
import random
from types import SimpleNamespace
from typing import Any

import numpy as np

from eyestream.core.charge import charges_of
from eyestream.core.reservation import LAST_ROW
from eyestream.errors import EyestreamError
from eyestream.rim.config import BrokerSettings
from eyestream.rim.ledger.guarded import guarded
from eyestream.rim.ledger.ledger import Ledger
from eyestream.rim.sidecar.assembly import Assembly
from eyestream.rim.sidecar.sidecar import Sidecar
from eyestream.streams import StreamKey
from eyestream.wire.release import Meta
from eyestream.wire.status import decode_budget, decode_status
from eyestream.wire.topics import budget_topic, parse_topic, raw_topic, sidecar_status_topic
from tests.rigs.simulated.disk import Place
from tests.rigs.simulated.history import COST
from tests.rigs.simulated.inside import SECOND, Inside, Noted
from tests.rigs.simulated.listening import Application, Listener
from tests.rigs.simulated.network import PROCESS, Broker, Link, Process, VirtualLoop
from tests.rigs.simulated.people import EPSILON, N

__all__ = ["Running", "Whole"]


_META = Meta(
    names=("a", "b", "c"),
    units=("1", "1", "1"),
    rate_hz=2.0,
    n=N,
    mechanism="cfpa",
    k=(1, 1, 1),
    epsilon=EPSILON,
    delta=0.0,
    noise_sd=np.zeros(3, np.float32),
    guarantee="whose rows they are",
    calibration="00",
)


def _spent(ledger: Any, key: StreamKey) -> int:
    odometer = ledger.odometer(key.device)
    return 0 if odometer is None or key.stream not in odometer.streams else odometer.streams[key.stream].epsilon


class Running:
    """A sidecar's process; raises what keeps it from starting."""

    def __init__(self, world: "Whole", folder: str) -> None:
        self.world, self.folder, self.stack = world, folder, contextlib.ExitStack()
        self.process, self.stop = Process(self.killed), asyncio.Event()
        world.disks.owner = self
        path: Any = Place(f"{folder}/ledger")
        try:
            self.ledger: Any = self.stack.enter_context(
                Ledger(path, ceilings=world.ceilings, passed=lambda: world.now + world.slept)
            )
            own: Any = self.ledger
            if world.guarded:
                own = self.stack.enter_context(guarded(self.ledger, path, SECOND))
            self.sidecar = Sidecar(
                world.plan,
                Noted(own, world, self),
                today=lambda: world.today,
                ledger_id=self.ledger.header.ledger_id,
                former_ledgers=self.ledger.former_ledgers,
                beside=world.beside(path),
            )
        except BaseException:
            self.stack.close()
            world.disks.end(self)
            raise
        self.pipeline = self.sidecar.pipeline
        self.sidecar._moments._sleep = world.loop.advance
        self.context = contextvars.copy_context()
        self.context.run(PROCESS.set, self.process)
        self.task = world.loop.create_task(self.sidecar.run(self.stop), context=self.context)
        self.task.add_done_callback(self.over)

    def killed(self) -> None:
        """The process ends at an effect, or from outside: nothing of it does anything any more."""
        self.process.alive = False
        self.world.disks.left = None
        for link in self.process.links:
            if not link.gone:
                link.cut()
        self.task.cancel()

    def over(self, task: "asyncio.Task[None]") -> None:
        """Its files are closed."""
        self.process.alive = False
        self.stack.close()
        self.world.disks.end(self)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.world.story.append(f"    {self.folder} ends: {str(error)[-90:]}")
            if not isinstance(error, EyestreamError):
                self.world.judge.fault(f"the sidecar ends with {error!r}")


class Whole(Inside):
    """Sidecars at work, perhaps on copies of one ledger at once."""

    kinds = (
        *(*Inside.kinds, "cuts", "silence", "brokers", "slow", "doubles", "deaf", "unlocked", "reload", "restore"),
        *("sessions", "colluder"),
    )
    lengths, threads = (8, 32), True

    def __init__(self, seed: int, events: frozenset[int] | None = None, without: frozenset[str] = frozenset()) -> None:
        self.loop, self.ever = VirtualLoop(random.Random(f"loop {seed}")), list[Running]()
        super().__init__(seed, events, without)
        self.raw, self.private = Broker(self.loop, self.luck), Broker(self.loop, self.luck)
        self.loop.ports = {"/raw": self.raw, "/private": self.private}
        for broker in (self.raw, self.private):
            broker.slow_s = 0.5 if "slow" in self.on else 0.01
            broker.doubles = 0.2 if "doubles" in self.on else 0.0
        self.private.hears = self.hear
        self.disks.of("/place").locks = "unlocked" not in self.on
        self.most, self.plan = self.ceilings, self._plan()
        self.cut_in: tuple[int, float, Link] | None = None
        self.listener, self.older, self.restored = Listener(self.judge), b"", False
        self.application = Application(self.loop, self.judge, self.settings[0].key, kept="sessions" in self.on)
        self.application.honest = "copies" not in self.on

    def _plan(self) -> Any:
        devices = sorted({one.id for one in self.settings})
        streams = {one.stream: SimpleNamespace(name=one.stream, mechanism=self.mechanism) for one in self.settings}
        for stream in streams.values():
            stream.charges = charges_of(self.mechanism, self.ceilings.levels)
        settings = SimpleNamespace(
            sidecar=SimpleNamespace(name="sidecar"),
            limits=SimpleNamespace(released_chunks=64, deadline_s=60.0, raw_messages=64),
            budget=SimpleNamespace(levels=self.ceilings.levels),
            device=[SimpleNamespace(id=device) for device in devices],
            raw_broker=BrokerSettings("unix:///raw", version="5"),
            private=BrokerSettings("unix:///private", version="5"),
        )
        return SimpleNamespace(
            settings=settings,
            ceilings=self.ceilings,
            streams=streams,
            metas={one.key: _META for one in self.settings},
            served={one.key: (one, streams[one.stream]) for one in self.settings},
            streams_of=lambda device: [streams[one.stream] for one in self.settings if one.id == device.id],
        )

    def beside(self, path: Any) -> Any:
        """The ledger beside which is kept what a wearer has said; None: no wearer says anything."""
        return None

    @property
    def now(self) -> float:
        return self.loop.time()

    @now.setter
    def now(self, at: float) -> None:
        """Let the world go on until then."""
        if at > self.loop.time():
            self.loop.run_until_complete(asyncio.sleep(at - self.loop.time()))

    def hear(self, topic: str, payload: bytes, process: Process | None, again: bool) -> None:
        """An application that keeps everything; what a resumed session sends again may be old."""
        known = parse_topic(topic) if "/sidecar/" not in topic else None
        self.judge.weigh_bytes(topic, payload)
        if known is None or process is None:
            return
        key = StreamKey(known.device, known.stream)
        if known.leaf == "private":
            self.serving = next(one.folder for one in self.ever if one.process is process)
            if key == self.application.key:
                self.application.hear(payload, healed=self.healed)
            if self.judge.hear(key, payload):
                self.listener.hear_chunk(key, payload)
                self._collude(key)
        elif known.leaf == "odometer":
            self.listener.hear(key, payload)
            if self.listener.back and not (self.restored or "copies" in self.on):
                self.judge.fault(f"{key}: the ledger is said to have gone back")
        elif known.leaf == "budget" and not (self.restored or again):
            left, lifetime = decode_budget(payload), self.most.lifetime
            told = left.ceiling == "lifetime" and lifetime is not None and self.ceilings.levels == 1
            if told and left.chunks * COST + self.judge.spent(key.device) > (lifetime or 0):
                self.judge.fault(f"{key}: {left.chunks} chunks are said to be left, which is too many")

    def _collude(self, key: StreamKey) -> None:
        """Who hears a chunk has its tracker send those rows with other values, or rows that cost more, at once."""
        heard = self.judge.chunks[-1]
        if "colluder" not in self.on or self.healed or heard.session < 0 or self.luck.random() < 0.5:
            return
        tracker = next(one for one in self.trackers if one.settings.key == key)
        more = self.luck.choice([(0, 0), (0, 0), (0, 1), (1, 0)])
        session, first_row = heard.session + more[0], (heard.chunk + more[1]) * N
        if max(session, first_row + N) > LAST_ROW:
            return  # after a lie about the last rows none has a number
        payload = tracker.send_again(session, first_row)
        self.loop.call_later(self.luck.random() * 0.3, self.say, key, payload)

    def start(self, folder: str) -> None:
        running = Running(self, folder)
        self.ever.append(running)
        self.judge.weigh_marks(running.ledger.mark)

    def say(self, key: StreamKey, payload: bytes) -> None:
        """A tracker sends a message."""
        self.raw.say(raw_topic(*key), payload)

    def take(self, key: StreamKey | None = None, payload: bytes = b"") -> None:
        if key is not None:
            self.say(key, payload)
        if self.cut_in is not None:  # while what a message completes is on its way
            left, delay_s, link = self.cut_in
            self.cut_in = (left - 1, delay_s, link) if left else None
            if not left:
                self.loop.call_later(delay_s, link.cut)
        self.now += 0.05 + self.loop.disk_s

    @property
    def life(self) -> Any:
        """Who was started last of those that are at work."""
        return next((one for one in reversed(self.ever) if one.process.alive), None)

    @life.setter
    def life(self, life: object) -> None:
        assert life is None

    def act(self, luck: random.Random) -> str:
        if "restore" in self.on and luck.random() < 0.1:
            self.older = self.disks.of("/host").names["/host/f0/ledger"].data
        if self.life is not None and "reload" in self.on and luck.random() < 0.1:
            return self._reload(luck)
        # A copy beside one that no lock keeps away is rare, so it comes more often.
        often = 0.3 if "unlocked" in self.on else 0.12
        if self.life is not None and "copies" in self.on and luck.random() < often:
            fresh = len(self.folders) < 4 and luck.random() < 0.5
            folder = self.copy(self.life.folder) if fresh else luck.choice(self.folders)
            return self.guard(luck, f"{folder} starts beside", lambda: self.start(folder), often=0.1)
        if luck.random() < 0.2 and (said := self._network(luck)):
            return said if self.life is None else f"{said}; {self._burst(luck)}"
        if self.life is not None and luck.random() < 0.4:
            return self._burst(luck)
        return super().act(luck)

    def _burst(self, luck: random.Random) -> str:
        """Some messages, one after the other: so that a life has done something by the time it is disturbed."""
        said = list[str]()

        def send() -> None:
            for _ in range(luck.choice([2, 3, 5])):
                key, payload, what = self.message(luck)
                said.append(f"{key} {what}")
                self.take(key, payload)

        return self.guard(luck, "a burst", send, often=0.1) + ": " + "; ".join(said)

    def _network(self, luck: random.Random) -> str:
        """Something that networks and brokers do."""
        kinds = [one for one in ("cuts", "silence", "brokers", "deaf") if one in self.on]
        if not kinds:
            return ""
        broker, kind = luck.choice([self.raw, self.private, self.private]), luck.choice(kinds)
        broker = self.private if kind == "deaf" else broker
        links = [one for one in broker.links if kind != "deaf" or one.will is not None]
        if kind == "brokers":
            self._restart(broker, luck.choice([0.1, 3.0, 30.0]), forget=luck.random() < 0.3)
            return "a broker starts again"
        if not links:
            return ""
        link = luck.choice(links)
        if kind == "cuts":
            self.cut_in = luck.randint(0, 3), luck.random() * 0.1, link
            return "a link is about to be cut"
        if kind == "deaf":  # and mostly the broker starts again then, with what was under way
            link.deaf = True
            if (lasts_s := luck.choice([None, 1.0, 4.0, 12.0, 40.0])) is not None:
                forget = luck.random() < 0.7
                self.loop.call_later(lasts_s, lambda: self._restart(broker, 0.1, forget=forget))
            return "what comes over a link is no longer acknowledged"
        link.silent = True
        return "a link is silent"

    def _restart(self, broker: Broker, away_s: float, *, forget: bool) -> None:
        if self.healed:
            return
        if forget and broker is self.private:
            self.application.forget()
        broker.stop(forget=forget)
        self.loop.call_later(away_s, setattr, broker, "away", False)

    def _reload(self, luck: random.Random) -> str:
        """Lower ceilings come into force at work, and stay for later lives."""
        life, old = self.life, self.ceilings
        some = {
            name: max(COST, getattr(old, name) - luck.randint(1, 3) * COST)
            for name in ("session", "day", "lifetime")
            if getattr(old, name) is not None and luck.random() < 0.5
        }

        def lowered(settings: object) -> Any:
            self.ceilings = dataclasses.replace(old, **some)
            self.plan = self._plan()
            return self.plan

        assembly = Assembly(SimpleNamespace(lowered=lowered), life.ledger, life.sidecar)  # type: ignore[arg-type]
        reloading = self.loop.create_task(assembly.reload(None), context=life.context)  # type: ignore[arg-type]
        self.now += 0.05 + self.loop.disk_s
        reloading.cancel()
        return f"{', '.join(some)} are lower"

    def end(self, luck: random.Random | None = None, *, stop: bool = False) -> str:
        alive = [one for one in self.ever if one.process.alive]
        for one in alive if luck is None else alive[:1]:
            self.judge.weigh_disk()
            if stop:
                one.stop.set()
                self.now += 4.0
            if one.process.alive:
                one.killed()
        self.loop.run_until_complete(asyncio.sleep(0))
        self.disks.end(None)
        if luck is not None and "power" in self.on and luck.random() < 0.5:
            for one in [one for one in self.ever if one.process.alive]:
                one.killed()
            self.loop.run_until_complete(asyncio.sleep(0))
            for disk in self.disks.disks.values():
                disk.lose_power(luck)
            return "the power is lost"
        return "stopped" if stop else "killed"

    def heal(self) -> None:
        self.healed, self.cut_in = True, None
        for broker in (self.raw, self.private):
            broker.away, broker.slow_s, broker.doubles = False, 0.01, 0.0
            for link in list(broker.links):
                link.cut()
        self.now += 1.0

    def finish(self) -> None:
        super().finish()
        life = self.life
        if life is None:
            return
        life.stop.set()
        self.now += 10.0
        counters, outbox = life.pipeline.counters, life.sidecar.outbox
        settled = counters.released + counters.withheld.total() + counters.dropped.total()
        if life.process.alive or counters.due != settled or outbox.delivered != counters.released:
            self.judge.fault(f"at the end {counters}, {outbox.delivered} delivered")
        said = decode_status(self.private.retained[sidecar_status_topic("sidecar")])
        if (said.state, said.reason) != ("offline", "stopped"):
            self.judge.fault(f"at the end the sidecar is said to be {said.state}: {said.reason}")
        for name, inode in self.disks.of("/host").names.items():
            self.judge.weigh_bytes(name, inode.data)
        for one in self.settings:
            left, lifetime = decode_budget(self.private.retained[budget_topic(*one.key)]), self.ceilings.lifetime
            told = left.ceiling == "lifetime" and lifetime is not None and self.ceilings.levels == 1
            if told and left.chunks and left.chunks * COST + self.judge.spent(one.key.device) > (lifetime or 0):
                self.judge.fault(f"{one.key}: {left.chunks} chunks are said to be left of a lower ceiling")
        if missing := self.application.missing():
            self.judge.fault(f"{self.application.key}: the SDK does not give the chunks {sorted(missing)}")
        if self.older:
            self._put_older_back(life.ledger)

    def _put_older_back(self, ledger: Any) -> None:
        """An older copy of the ledger is put in its place, and no second place is asked: who has listened hears it."""
        self.disks.of("/host").put("/host/f0/ledger", self.older)
        self.application.honest = False
        self.restored, self.judge.durable = True, None  # from here on the disk has less than was published
        self.guarded, before = False, self.listener.back | self.listener.doubted
        try:
            self.ever.append(Running(self, "/host/f0"))
        except EyestreamError:
            return
        self.now += 3.0
        for key in [one.key for one in self.settings]:
            has, whole = (_spent(one, key) for one in (self.ever[-1].ledger, ledger))
            known = self.listener.back | self.listener.doubted  # nothing is released, so a doubt stays one
            if has < self.listener.spent(key) and key not in known:
                self.judge.fault(f"{key}: an older ledger is put in place, and who listens does not know")
            if has >= whole and key in known - before:
                self.judge.fault(f"{key}: the ledger is as it was, and is said to have gone back")

    def close(self) -> None:
        self.end()
        self.now += 5.0
        self.application.end()
        self.judge.faults += self.loop.faults[:1]
        self.loop.close()
