"""One hard life of a source of gaze beside a fake tracker: started late, set, flooding, talking nonsense, killed.

Every protocol brings a `FakeTracker`; what must hold is the same for all: samples are placed on the host's clock to
5 ms, or to the length of the portions that the source takes; nothing but a fault of ours ends the source, and gaze is
there again within 5 s of the tracker's return.

Examples
--------
The time in what a fake tracker sends is what its clock shows. Here it is 10 s ahead, and fast by 100 millionths.

>>> clock = TrackerClock(offset_s=10.0, ppm=100.0)
>>> clock.show(1000.0)
1010.1

A test awaits ``hard_life(source, tracker)``; it takes some ten seconds.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from eyestream.rim.sources.gaze import GazeSource
from eyestream_lab.testing.clocks import until
from eyestream_lab.testing.gaze_sources import Heard, hearing

__all__ = ["FakeTracker", "TrackerClock", "hard_life", "lost_ms"]

WITHIN_S = 0.005
RECOVERY_S = 5.0


@dataclass
class TrackerClock:
    """A tracker's clock: what it shows when the host's shows `host_s`.

    Attributes
    ----------
    offset_s, ppm
        Ahead of the host's by so much, and faster by so many millionths.
    speed
        The host's own seconds that pass in one: more than one only beside a source that hurries as much.
    shown
        Every pair of a host's time and what was shown then, since the clock was set last.
    """

    offset_s: float = 1.7e5
    ppm: float = 100.0
    speed: float = 1.0
    shown: list[tuple[float, float]] = field(default_factory=list)

    def show(self, host_s: float) -> float:
        """Read it, and remember."""
        t = self.speed * host_s * (1.0 + self.ppm * 1e-6) + self.offset_s
        self.shown.append((host_s, t))
        return t

    def set(self, step_s: float) -> None:
        """Set it by so many seconds."""
        self.offset_s += step_s
        self.shown.clear()


class FakeTracker(Protocol):
    """A fake tracker, as a life needs it: it sends samples by its clock from `start` to `stop`."""

    clock: TrackerClock

    async def start(self) -> None:
        """Begin, at the place where the source looks for it."""

    async def stop(self) -> None:
        """Be gone at once, without a goodbye."""

    async def flood(self) -> None:
        """Send many times what is due, for a moment."""

    async def nonsense(self) -> None:
        """Send what is no message of the protocol, or none of gaze."""


async def hard_life(source: GazeSource, tracker: FakeTracker, portion_s: float = 0.0) -> Heard:
    """Live it; raises AssertionError where something does not hold, TimeoutError where nothing comes back.

    Parameters
    ----------
    portion_s
        So long the source lets samples wait for others.
    """
    async with hearing(source) as heard:
        await asyncio.sleep(0.3)
        async with _running(tracker):
            await _more(heard, 60)
            assert lost_ms(heard, tracker.clock) < 1e3 * (WITHIN_S + portion_s)
            tracker.clock.set(-37.25)
            await asyncio.sleep(0.1)
            heard_before = len(heard.arrived)
            await _more(heard, 60)
            assert lost_ms(heard, tracker.clock, heard_before) < 1e3 * (WITHIN_S + portion_s)
            await tracker.nonsense()
            await tracker.flood()
            await _more(heard, 60)
        await _quiet(heard)
        loop = asyncio.get_running_loop()
        async with _running(tracker):
            back = loop.time()
            await until(lambda: heard.arrived[-1] > back, RECOVERY_S)
            heard.recovery_s = heard.arrived[-1] - back
            await _more(heard, 60)
        return heard


@contextlib.asynccontextmanager
async def _running(tracker: FakeTracker) -> AsyncIterator[None]:
    await tracker.start()
    try:
        yield
    finally:
        await tracker.stop()


async def _quiet(heard: Heard) -> None:
    """Wait until nothing comes any more: what a flood has left behind is no recovery."""
    samples = -1
    while samples != heard.samples:
        samples = heard.samples
        await asyncio.sleep(0.3)


async def _more(heard: Heard, samples: int) -> None:
    """Wait until so many more have come."""
    least = heard.samples + samples
    await until(lambda: heard.samples >= least, RECOVERY_S + 5.0)


def lost_ms(heard: Heard, clock: TrackerClock, since: int = 0) -> float:
    """How far samples are placed from where they were taken, in ms: the 95th percentile, of a busy machine.

    They are placed by the median of their delays. The samples of before the clock was set do not count.
    """
    sizes = [len(part.time) for part in heard.records]
    begin = sum(sizes[:since])
    host, shown = np.array(clock.shown).T
    t, arrived = heard.column("time")[begin:], np.repeat(heard.arrived, sizes)[begin:]
    counts = (t >= shown[0] - 1e-3) & (t <= shown[-1] + 1e-3)
    assert counts.sum() > 20
    t, arrived = t[counts], arrived[counts]
    errors = np.abs(t + np.median(arrived - t) - np.interp(t, shown, host))
    return float(1e3 * np.percentile(errors, 95))
