"""A bounded queue that forgets its oldest item when it is full, and counts what it forgot."""

import asyncio
from collections import deque
from typing import Generic, TypeVar

__all__ = ["DropOldest"]

Item = TypeVar("Item")


class DropOldest(Generic[Item]):
    """Between a client that must never wait and a consumer that may be slow; one consumer.

    Parameters
    ----------
    length
        Items held at most.
    """

    def __init__(self, length: int) -> None:
        self._items: deque[Item] = deque()
        self._length = length
        self._filled = asyncio.Event()
        self.dropped = 0
        """Items forgotten since the start."""

    def __len__(self) -> int:
        return len(self._items)

    def put(self, item: Item) -> None:
        """Append `item`; of a full buffer the oldest one is dropped and counted."""
        if len(self._items) == self._length:
            self._items.popleft()
            self.dropped += 1
        self._items.append(item)
        self._filled.set()

    async def wait(self) -> None:
        """Wait until there is an item."""
        if not self._items:
            self._filled.clear()
            await self._filled.wait()

    async def get(self) -> Item:
        """Take the oldest item, waiting for one. Cancellation takes nothing."""
        while not self._items:
            await self.wait()
        return self._items.popleft()

    def take(self) -> Item | None:
        """Take the oldest item, or None when there is none."""
        return self._items.popleft() if self._items else None

    def take_most(self, count: int) -> list[Item]:
        """Take the oldest items, `count` at most."""
        return [self._items.popleft() for _ in range(min(count, len(self._items)))]
