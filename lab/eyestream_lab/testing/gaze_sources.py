"""For tests of sources of gaze: what one delivers, and when, on the host's clock.

Examples
--------
>>> from eyestream_lab.testing.clocks import until
>>> class Still:
...     async def run(self, deliver):
...         deliver(GazeColumns(time=np.array([5.0, 5.1]), gaze=np.zeros((2, 2))))
>>> async def heard_of(source):
...     async with hearing(source) as heard:
...         await until(lambda: heard.samples == 2)
...     return heard.column("time").tolist()
>>> asyncio.run(heard_of(Still()))
[5.0, 5.1]
"""

import asyncio
import contextlib
import math
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from eyestream.errors import LinkError
from eyestream.rim.files.gaze_columns import GazeColumns
from eyestream.rim.sources.gaze import GazeSource

__all__ = ["Heard", "hearing"]


@dataclass
class Heard:
    """Everything that a source delivered.

    Attributes
    ----------
    records, arrived
        In order, and when each came on the loop's clock.
    away
        What was said each time that the source was away.
    stands
        How often it has said anything.
    recovery_s
        From the return of a tracker that had been killed to its first gaze.
    """

    records: list[GazeColumns] = field(default_factory=list)
    arrived: list[float] = field(default_factory=list)
    away: list[str] = field(default_factory=list)
    stands: int = 0
    recovery_s: float = math.inf

    def take(self, records: GazeColumns) -> None:
        """Take records, as the source calls it."""
        self.stands += 1
        if len(records.time):
            self.records.append(records)
            self.arrived.append(asyncio.get_running_loop().time())

    @property
    def samples(self) -> int:
        """How many came."""
        return sum(len(part.time) for part in self.records)

    def column(self, name: str) -> NDArray[np.float64]:
        """One attribute of all records, joined."""
        return np.concatenate([getattr(part, name) for part in self.records])


@contextlib.asynccontextmanager
async def hearing(source: GazeSource, again_s: float = 0.1) -> AsyncIterator[Heard]:
    """Run a source beside the body, again when it is away, as a sidecar does."""
    heard = Heard()
    task = asyncio.create_task(_keep(source.run, heard, again_s))
    try:
        yield heard
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def _keep(run: Callable[[Callable[[GazeColumns], None]], Awaitable[None]], heard: Heard, again_s: float) -> None:
    while True:
        try:
            await run(heard.take)
        except LinkError as error:
            heard.away.append(str(error))
            await asyncio.sleep(again_s)
        else:
            return
