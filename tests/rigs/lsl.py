"""An outlet of the Lab Streaming Layer in a process of its own: a tracker that can be killed. Needs pylsl.

    python -m tests.rigs.lsl NAME RATE_HZ OFFSET_S PPM SEED SPEED

reads lines from its input: `offset S`, `flood`, `nonsense`, `silent`, `seen`. LSL's sockets are open to every
interface: give it a network namespace of its own.
"""

import asyncio
import sys
import threading
import time
from typing import Any

import numpy as np

from eyestream.rim.sources.lsl import pylsl_module
from eyestream_lab.testing.gaze_lives import TrackerClock
from tests.rigs.tainting.canary import Canary

__all__ = ["FakeOutlet", "outlet_info"]


class FakeOutlet:
    """One outlet, in a child process.

    With a `seed`, its gaze is that of a canary; with a `speed`, so many of its seconds pass in one.
    """

    def __init__(self, name: str = "gaze", rate_hz: float = 200.0, seed: int = -1, speed: float = 1.0) -> None:
        self.name, self.rate_hz, self._seed, self._speed = name, rate_hz, seed, speed
        self.clock = TrackerClock(offset_s=9.5e4)
        self._process: asyncio.subprocess.Process | None = None
        self._showing: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin to send."""
        words = [self.name, self.rate_hz, self.clock.offset_s, self.clock.ppm, self._seed, self._speed]
        self._process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.rigs.lsl", *map(str, words), stdin=asyncio.subprocess.PIPE
        )
        self._showing = asyncio.create_task(self._show())

    async def stop(self) -> None:
        """Killed."""
        assert self._process is not None
        assert self._showing is not None
        self._showing.cancel()
        if self._process.returncode is None:
            self._process.kill()
        await self._process.wait()

    async def flood(self) -> None:
        """As fast as it can, for a moment."""
        await self._tell("flood")

    async def nonsense(self) -> None:
        """Values and times that are none."""
        await self._tell("nonsense")

    async def see(self, seen: bool) -> None:
        """Send gaze; or nothing, as of an eye that is lost, with the outlet still there."""
        await self._tell("seen" if seen else "silent")

    async def _tell(self, line: str) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n".encode())
        await self._process.stdin.drain()

    async def _show(self) -> None:
        """The child computes what this clock shows: both read the same clock of the system."""
        told = self.clock.offset_s
        while True:
            if self.clock.offset_s != told:
                told = self.clock.offset_s
                await self._tell(f"offset {told}")
            self.clock.show(time.monotonic())
            await asyncio.sleep(0.01)


def outlet_info(pylsl: Any, name: str, rate_hz: float, unit: str = "degrees", kind: str = "type") -> Any:
    """A description by the convention: gaze of both eyes, two pupils in mm, confidence."""
    info = pylsl.StreamInfo(name, "Gaze", 5, rate_hz, pylsl.cf_double64, f"{name}-source")
    channels = info.desc().append_child("channels")
    for label, what, one in (
        ("x", "ScreenX", unit),
        ("y", "ScreenY", unit),
        ("pupil_right", "Diameter", "mm"),
        ("pupil_left", "Diameter", "mm"),
        ("confidence", "Confidence", "normalized"),
    ):
        channel = channels.append_child("channel")
        for key, value in (("label", label), (kind, what), ("unit", one), ("eye", "both")):
            channel.append_child_value(key, value)
    return info


def _main(name: str, *numbers: float) -> None:
    rate_hz, offset_s, ppm, seed, speed = numbers
    rows = [[1.0, 2.0, 3.0, 3.5, 0.9]]
    if seed >= 0:
        rows = Canary(4096, 5, int(seed)).rows.astype(np.float64).tolist()
    pylsl = pylsl_module()
    outlet = pylsl.StreamOutlet(outlet_info(pylsl, name, rate_hz))
    clock, asked = TrackerClock(offset_s, ppm, speed), ""

    def listen() -> None:
        nonlocal asked
        for line in sys.stdin:
            asked = line.strip()

    threading.Thread(target=listen, daemon=True).start()
    began, number, silent = time.monotonic(), 0, False
    while True:
        now = time.monotonic()
        t = clock.show(now)
        clock.shown.clear()
        if not silent:
            outlet.push_sample(rows[number % len(rows)], t)
        if asked.startswith("offset"):
            clock.offset_s = float(asked.split()[1])
        elif asked in ("silent", "seen"):
            silent = asked == "silent"
        elif asked == "flood":
            for _ in range(20_000):
                outlet.push_sample([1.0, 2.0, 3.0, 3.5, 0.9], clock.show(time.monotonic()))
        elif asked == "nonsense":
            for wrong in (np.nan, np.inf, -1e308, 1e308):
                outlet.push_sample([wrong] * 5, t + 1e-3)
                outlet.push_sample([wrong] * 5, wrong if np.isfinite(wrong) else 1.0)
        asked = ""
        number += 1
        time.sleep(max(0.0, began + number / rate_hz / speed - time.monotonic()))


if __name__ == "__main__":
    _main(sys.argv[1], *map(float, sys.argv[2:]))
