"""Moments at which messages leave: what is ready waits for the clock, and nothing that depends on rows delays it.

The clock closes a chunk, or makes the row that completes it. Then the chunk is released: projected, its noise drawn,
its bytes written. How long that takes, and what else the process does meanwhile, may depend on what eyes do. So the
bytes do not leave then, but at a moment of a fixed grid:

    moment = the first multiple of `GRID_S` on the host's clock that is `LEAD_S` or more after the nominal time

The nominal time is the one at which the clock made the chunk due, not the one at which the process came to it. So the
delay is 10 to 20 ms, and it is a function of the schedule alone. Where one row is a chunk, as a slot of coarse gaze,
the ledger is asked only when the chunk is due. Its nominal time is put off by `DISK_S`, in which the disk must have
answered. What is not ready by then leaves at the next moment of the grid, and so does all that waits when other work
lets a moment pass. All devices share the grid: messages of one moment are ready before the first of them leaves, and
they leave in the order of their streams.

**The quiet before a moment.** `QUIET_S` before a moment the loop goes to sleep until the moment has come. So no message
is read, no row is made and no chunk is released in that time, and what began before has come to its end. What arrives
waits in its socket. The sleep has an absolute end in the kernel. A timer of the loop would not do: its selector counts
milliseconds from when it was last asked, and so from the last row that came.

**Why bytes that wait keep the law on noise.** No drawn noise may survive a wait in which the process can be copied,
because two copies could add it to two different chunks. Noise is drawn and bound to its chunk in one step, before the
wait. What waits is a released chunk. A copy of the process has the same bytes, and sends those or nothing.
"""

import asyncio
import heapq
import math
import time
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from eyestream.streams import StreamKey

GRID_S = 0.01
"""From one moment to the next. Where every one of them is used, the loop sleeps for `QUIET_S` of each."""

LEAD_S = 0.01
"""Seconds for a release to become ready."""

DISK_S = 0.04
"""Seconds for the ledger to write to the disk, where a chunk is reserved only when it is due."""

QUIET_S = 0.004
"""Seconds for work that has begun to come to its end; a batch of 64 messages takes half of it."""

_ROUNDING_S = 1e-6


class Moments:
    """Holds what leaves by the clock.

    Not to be used outside the event loop.

    Parameters
    ----------
    over
        Called when everything of a moment has left.
    sleep
        Sleeps for some seconds; the loop does not turn meanwhile.
    """

    def __init__(self, over: Callable[[], None], sleep: Callable[[float], None] = time.sleep) -> None:
        self._over, self._sleep = over, sleep
        self._held: dict[float, list[tuple[StreamKey, Callable[[], None]]]] = {}
        self._last: dict[StreamKey, float] = {}
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        """How many calls are held."""
        return sum(map(len, self._held.values()))

    def hold(self, key: StreamKey, due: float | None, leave: Callable[[], None]) -> None:
        """Call `leave` at the moment of what was due at `due`, on the loop's clock; None: of now.

        What is held of one stream leaves in the order in which it came here.
        """
        now = asyncio.get_running_loop().time()
        earliest = max(now, (now if due is None else due) + LEAD_S)
        moment = max(_next_moment(earliest), self._last.get(key, 0.0))
        self._last[key] = moment
        self._held.setdefault(moment, []).append((key, leave))
        self._set_timer()

    def leave_all(self) -> None:
        """The process ends: everything leaves now, in the order of its moments."""
        while self._held:
            self._leave(min(self._held))
        self._set_timer()

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        first = min(self._held, default=None)
        self._timer = None if first is None else asyncio.get_running_loop().call_at(first - QUIET_S, self._wait, first)

    def _wait(self, moment: float) -> None:
        now = asyncio.get_running_loop().time()
        if now > moment:  # work took longer than the quiet: how much longer must not be seen
            missed, moment = self._held.pop(moment), _next_moment(now)
            self._held[moment] = missed + self._held.get(moment, [])
        self._sleep(max(0.0, moment - now))  # stops the loop on purpose: what else could run depends on rows
        self._leave(moment)
        self._set_timer()

    def _leave(self, moment: float) -> None:
        for _, leave in sorted(self._held.pop(moment), key=lambda one: one[0]):
            leave()
        self._over()


def _next_moment(at: float) -> float:
    """The first moment of the grid that is not before `at`."""
    return GRID_S * math.ceil((at - _ROUNDING_S) / GRID_S)


Item = TypeVar("Item", bound=Hashable)


class Timers(Generic[Item]):
    """One alarm for each item, never later than the item last asked for; `set` and `due` cost the log of their number.

    An item that asks for a later time keeps its earlier alarm, and is looked at once in vain: a deadline that every
    message puts off would otherwise leave an entry for each.

    >>> timers = Timers()
    >>> for item, at in [("a", 5.0), ("b", 3.0), ("a", 9.0)]:
    ...     timers.set(item, at)
    >>> timers.next(), timers.due(5.0)
    (3.0, ['b', 'a'])
    """

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Item]] = []
        self._at: dict[Item, float] = {}
        self._count = 0

    def set(self, item: Item, at: float | None) -> None:
        """`item` wants to be looked at by `at`; None: it does not care."""
        if at is not None and at < self._at.get(item, math.inf):
            self._at[item] = at
            self._count += 1
            heapq.heappush(self._heap, (at, self._count, item))

    def next(self) -> float | None:
        """The earliest alarm."""
        return self._heap[0][0] if self._heap else None

    def due(self, now: float) -> list[Item]:
        """Items whose alarm is due by `now`, earliest first; they have none any more."""
        items = []
        while self._heap and self._heap[0][0] <= now:
            at, _, item = heapq.heappop(self._heap)
            if self._at.get(item) == at:  # else an earlier one replaced it
                del self._at[item]
                items.append(item)
        return items
