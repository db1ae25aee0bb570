"""Lives of a sidecar whose gaze is full of canaries, one for each kind of source, with faults inside."""

import asyncio
import contextlib
import re
import signal
import socket
import struct
import sys
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eyestream.rim.config import BrokerSettings
from eyestream.rim.mqtt.endpoint import Endpoint
from eyestream.rim.mqtt.transport import Message, connect
from eyestream.wire.gaze import encode_gaze
from eyestream.wire.topics import gaze_topic, private_topic
from eyestream_lab.testing.gaze_lives import FakeTracker, TrackerClock
from tests.rigs.core import FakeCapture, datum
from tests.rigs.lsl import FakeOutlet
from tests.rigs.neon import FakeNeon, payload_of
from tests.rigs.tainting.canary import Canary
from tests.rigs.tainting.capture import Process, Proxy
from tests.rigs.tainting.lives import PLAIN, Ended, Life, configuration

__all__ = ["BRIEF_LIVES", "GAZE_LIVES", "GazeLife", "gaze_canary", "gaze_live", "in_own_namespace"]

SEED = 5
DEVICE = "hmd-0"
SPEED = 8.0
"""Seconds of gaze in one: a window and a chunk last 46 s."""

STREAMS = ("features", "gaze")
_EPSILONS = {"everyday-tile": 3.3, "kaleido-r2": 360.5}
_SLOTS = """
[[stream]]
name = "gaze"
schema = 2
[stream.privacy]
calibration = "{calibration}"
epsilon = {epsilon}
"""
_FAST = f"import eyestream.rim.sources.registry as registry\nregistry.HOST_SPEED = {SPEED}\n"
_FAULT = """
from {module} import {name}
real, calls = {name}.{method}, 0
def fault(self, *given):
    global calls
    calls += 1
    if calls > {after}:
        raise RuntimeError([getattr(one, 'gaze', one) for one in given], [getattr(one, 'time', one) for one in given])
    return real(self, *given)
{name}.{method} = fault
"""
_UNFORESEEN = "RuntimeError .its message is kept back"


@dataclass(frozen=True)
class GazeLife:
    """One life: `kind` of source, and a fault planted at `module:name.method`; a `brief` one ends before a chunk.

    Its stream `gaze` has this `calibration`.
    """

    kind: str
    fault: str = ""
    after: int = 50
    brief: bool = False
    end: signal.Signals = signal.SIGTERM
    calibration: str = "everyday-tile"

    @property
    def name(self) -> str:
        """For messages."""
        return f"gaze by {self.kind}, {self.calibration}{', ' + self.fault if self.fault else ''}"

    def code(self) -> str:
        """Python that the sidecar's process runs first."""
        fast = "" if self.kind == "openxr" else _FAST  # its samples have the times of this machine
        if not self.fault:
            return fast
        module, _, rest = self.fault.partition(":")
        name, _, method = rest.partition(".")
        return fast + _FAULT.format(module=module, name=name, method=method, after=self.after)


GAZE_LIVES = (
    GazeLife("mqtt"),
    GazeLife("neon"),
    GazeLife("core", end=signal.SIGABRT),
    GazeLife("lsl"),
    GazeLife("recording"),
    GazeLife("mqtt", "eyestream.rim.sources.gaze:GazeFeeder.take"),
    GazeLife("mqtt", "eyestream.rim.sources.gaze:GazeFeeder.samples_of", after=2),
    GazeLife("neon", "eyestream.rim.sources.gaze:GazeFeeder.take"),
    GazeLife("core", "eyestream.gaze.live:LiveFrontEnd.take", after=2),
    GazeLife("mqtt", calibration="kaleido-r2", end=signal.SIGABRT),
    GazeLife("openxr", brief=True),
    GazeLife("openxr", "eyestream_openxr.source:OpenXrSource._take"),
)

BRIEF_LIVES = (
    GazeLife("mqtt", brief=True),
    GazeLife("neon", "eyestream.rim.sources.gaze:GazeFeeder.take"),
)
"""For the ordinary tests."""


def gaze_canary() -> Canary:
    """Gaze that can be recognised: five columns, of which a source takes the first ones."""
    return Canary(4096, 5, SEED)


def in_own_namespace() -> bool:
    """Whether this process has the loopback alone: LSL, whose sockets are open to every interface, may be used."""
    return {name for _, name in socket.if_nameindex()} <= {"lo"}


class _MqttTracker:
    """Gaze on a broker."""

    def __init__(self, port: int, canary: Canary) -> None:
        self.clock, self._port, self._rows = TrackerClock(), port, canary.rows[:, :3]
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._task = asyncio.create_task(self._send())

    async def stop(self) -> None:
        assert self._task is not None
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task

    async def flood(self) -> None:
        await self._say([encode_gaze(np.arange(128.0), self._rows[:128], 1)] * 200)

    async def nonsense(self) -> None:
        good = encode_gaze(np.arange(64.0), self._rows[:64], 1)
        text = str(self._rows[:8].tolist()).encode()
        await self._say([good[:-3], good + text, text, encode_gaze(np.zeros(64), self._rows[:64, :1], 1)])

    async def _say(self, payloads: list[bytes]) -> None:
        async with _linked(self._port, lambda message: None) as link:
            for payload in payloads:
                await link.publish(gaze_topic(DEVICE), payload, qos=1)

    async def _send(self) -> None:
        loop, number = asyncio.get_running_loop(), 0
        async with _linked(self._port, lambda message: None) as link:
            while True:
                t = SPEED * loop.time() - np.arange(8)[::-1] / 200.0
                at = np.arange(number, number + 8) % len(self._rows)
                await link.publish(gaze_topic(DEVICE), encode_gaze(t, self._rows[at], 1), qos=1)
                number += 8
                await asyncio.sleep(8 / 200.0 / SPEED)


def _message(rows: NDArray[np.float32]) -> bytes:
    """Samples of now, as the layer for OpenXR packs them."""
    times = time.monotonic_ns() - np.arange(len(rows))[::-1] * 1000
    samples = [struct.pack("<qff", t, x, y) for t, (x, y) in zip(times.tolist(), rows[:, :2].tolist(), strict=True)]
    return struct.pack("<IHH", 0x47585945, 1, len(rows)) + b"".join(samples)


class _Program:
    """A program with the layer for OpenXR."""

    def __init__(self, path: Path, canary: Canary) -> None:
        self.clock, self._path, self._rows = TrackerClock(), path, canary.rows
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._task = asyncio.create_task(self._send())

    async def stop(self) -> None:
        assert self._task is not None
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task

    async def flood(self) -> None:
        await self._say([_message(self._rows[:32])] * 200)

    async def nonsense(self) -> None:
        good = _message(self._rows[:32])
        await self._say([good[:-3], good + b"x", str(self._rows[:8].tolist()).encode(), good[4:]])

    async def _say(self, messages: list[bytes]) -> None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as program:
            program.connect(str(self._path))
            for message in messages:
                program.send(message)
                await asyncio.sleep(0.001)

    async def _send(self) -> None:
        number = 0
        while True:
            with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as program:
                program.connect(str(self._path))
                program.setblocking(False)
                while True:
                    program.send(_message(self._rows[np.arange(number, number + 8) % len(self._rows)]))
                    number += 8
                    await asyncio.sleep(8 / 200.0)
            await asyncio.sleep(0.05)


@contextlib.asynccontextmanager
async def _linked(port: int, deliver: Callable[[Message], None]) -> AsyncIterator[Any]:
    endpoint = Endpoint.of(BrokerSettings(f"mqtt://127.0.0.1:{port}"))
    async with connect(endpoint, client_id=None, deliver=deliver) as link:
        yield link


def _source(life: GazeLife, folder: Path, canary: Canary, port: int) -> tuple[FakeTracker | None, str, bytes]:
    """The tracker, the source's table, and some of what the tracker sends."""
    rows = canary.rows.astype(np.float64)
    if life.kind == "mqtt":
        sent = encode_gaze(np.arange(64.0), canary.rows[:64, :3], 1)
        return _MqttTracker(port, canary), 'kind = "mqtt"\nrate_hz = 200.0\n', sent
    if life.kind == "neon":
        phone = FakeNeon(200.0 * SPEED, gaze=rows)
        sent = b"".join(payload_of(65, x, y, pupils=pupils) for x, y, *pupils in rows[:64, :4].tolist())
        options = f'host = "127.0.0.1"\nport = {phone.port}\n'
        return phone, f'kind = "neon"\n[source.options]\n{options}', sent
    if life.kind == "core":
        capture = FakeCapture(200.0 * SPEED, gaze=rows)
        sent = b"".join(datum(1.0, point=rows[i, :3].tolist()) for i in range(64))
        return capture, f'kind = "core"\n[source.options]\nport = {capture.port}\n', sent
    if life.kind == "openxr":
        place = folder.parent / f"{folder.name}-openxr"
        options = f'folder = "{place}"\n'
        table = f'kind = "eyestream_openxr.source:OPENXR"\nrate_hz = 200.0\n[source.options]\n{options}'
        return _Program(place / "gaze.sock", canary), table, _message(canary.rows[:32]) + _message(canary.rows[32:64])
    if life.kind == "lsl":
        outlet = FakeOutlet("canary", 200.0, seed=SEED, speed=SPEED)
        return outlet, 'kind = "lsl"\nrate_hz = 200.0\n[source.options]\nname = "canary"\n', rows[:64].tobytes()
    path = folder.parent / f"{folder.name}.csv"
    lines = [f"{50 + i / 100:.2f},{x!r},{y!r}" for i, (x, y) in enumerate(np.resize(rows, (6000, 5))[:, :2].tolist())]
    path.write_text("\n".join(["t_s,x_deg,y_deg", *lines]) + "\n")
    options = f'file = "{path}"\nspeed = {SPEED}\n'
    table = f'kind = "recording"\nprofile = "degrees"\nrate_hz = 100.0\n[source.options]\n{options}'
    return None, table, path.read_bytes()


def gaze_live(life: GazeLife, folder: Path, broker_port: int, canary: Canary, *, trace: bool) -> Ended:
    """Live it to its end."""
    folder.mkdir()
    proxy = Proxy(broker_port)
    path = configuration(Life(life.name, "everyday-klt-32"), folder, proxy.port, 0)
    tracker, table, sent = _source(life, folder, canary, broker_port)
    slots = _SLOTS.format(calibration=life.calibration, epsilon=_EPSILONS[life.calibration])
    path.write_text(f"{path.read_text()}{slots}\n[source]\nstreams = {list(STREAMS)}\n{table}")
    if tracker is not None:
        tracker.clock.speed = SPEED
    process = Process([sys.executable, "-c", life.code() + PLAIN, "run", "--config", str(path)], folder, trace=trace)
    wrong: list[str] = []
    try:
        released = asyncio.run(_play(life, process, tracker, broker_port, wrong))
    finally:
        if process.alive:
            process.signal(life.end)
        code, dumped = process.end()
    proxy.close()
    expected = 1 if life.fault else 0 if life.end is signal.SIGTERM else -life.end
    if code != expected or dumped or any(folder.rglob("core*")):
        wrong.append(f"ended with {code}, not {expected}{', and left a core' if dumped else ''}")
    if life.fault and not re.search(_UNFORESEEN, process.said()):
        wrong.append(f"did not say {_UNFORESEEN!r}: {process.said()[-300:]}")
    written = {
        "strace": lambda: list(process.strings()),
        "links": lambda: [b"".join(proxy.sent)],
        "files": lambda: list(process.left()),
    }
    return Ended(written, {"tracker of gaze": sent}, wrong, released)


async def _play(life: GazeLife, process: Process, tracker: FakeTracker | None, port: int, wrong: list[str]) -> int:
    """Gaze until a chunk is out, then all that is hostile; or until the fault has ended the process."""
    topics = [private_topic(DEVICE, stream) for stream in STREAMS]
    released = dict.fromkeys(topics, 0)

    def hear(message: Message) -> None:
        released[message.topic] += 1

    async with _linked(port, hear) as link, contextlib.AsyncExitStack() as stack:
        await link.subscribe_all(topics, 1)
        if tracker is not None:
            await tracker.start()
            stack.push_async_callback(tracker.stop)
        try:
            async with asyncio.timeout(40):
                while life.brief and process.alive and "private broker: connected" not in process.said():  # noqa: ASYNC110
                    await asyncio.sleep(0.05)
                if life.brief:
                    await asyncio.sleep(2.0)
                while process.alive and (life.fault or not (all(released.values()) or life.brief)):  # noqa: ASYNC110  no event
                    await asyncio.sleep(0.05)
        except TimeoutError:
            wrong.append(f"released {released}" if not life.fault else "the fault has not ended it")
        if tracker is not None and not life.fault:
            await tracker.nonsense()
            await tracker.flood()
            await tracker.stop()
            await tracker.start()
            await asyncio.sleep(0.2 if life.brief else 1.0)
    return sum(released.values())
