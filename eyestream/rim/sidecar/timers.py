"""When to look at which of many things again, without asking all of them each time."""

import heapq
import math
from collections.abc import Hashable
from typing import Generic, TypeVar

__all__ = ["Timers"]

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
