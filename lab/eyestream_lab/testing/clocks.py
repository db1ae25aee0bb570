"""Time in tests: a clock moved by hand, a loop that does not wait, and waiting for a condition on the real clock."""

import asyncio
import math
import selectors
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

__all__ = ["Clock", "simulated", "until"]

Result = TypeVar("Result")

PATIENCE_S = 30.0
"""How long a test waits for what comes at once where nothing is wrong: a machine that is busy may take seconds."""


@dataclass
class Clock:
    """A clock that stands still until it is moved.

    Attributes
    ----------
    now
        Seconds, as of an event loop.
    day
        Days since 1970, UTC.

    Examples
    --------
    >>> clock = Clock(now=5.0)
    >>> clock.now += 1.5
    >>> clock.now, clock.today()
    (6.5, 20000)
    """

    now: float = 0.0
    day: int = 20_000

    def today(self) -> int:
        """The day, for what asks by a call."""
        return self.day


def simulated(work: Coroutine[Any, Any, Result]) -> Result:
    """Run what waits for time alone on a loop whose clock, from 0 on, goes on to what is awaited next, at once.

    The clock counts nanoseconds, so that it shows a whole number of microseconds exactly, however often it was read.

    Raises
    ------
    RuntimeError
        Nothing is awaited any more that time brings.
    """
    with asyncio.Runner(loop_factory=_SimulatedLoop) as runner:
        return runner.run(work)


class _Passing(selectors.DefaultSelector):
    """Lets time pass instead of waiting."""

    def __init__(self) -> None:
        super().__init__()
        self.now_ns = 0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready and timeout is None:
            raise RuntimeError("expected something that time brings")
        if not ready and timeout is not None and timeout > 0:
            self.now_ns += math.ceil(1e9 * timeout - 1e-3)
        return ready


class _SimulatedLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._passing = _Passing()
        super().__init__(self._passing)

    def time(self) -> float:
        return self._passing.now_ns / 1e9


async def until(holds: Callable[[], bool], seconds: float = PATIENCE_S) -> None:
    """Wait until `holds()`; TimeoutError when it does not in time."""
    async with asyncio.timeout(seconds):
        while not holds():  # noqa: ASYNC110  the conditions of tests have no events
            await asyncio.sleep(0.005)
