"""Time in tests: a clock that is moved by hand, and waiting for a condition on the real one."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["Clock", "until"]


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


async def until(holds: Callable[[], bool], seconds: float = 10.0) -> None:
    """Wait until `holds()`; TimeoutError when it does not in time."""
    async with asyncio.timeout(seconds):
        while not holds():  # noqa: ASYNC110  the conditions of tests have no events
            await asyncio.sleep(0.005)
