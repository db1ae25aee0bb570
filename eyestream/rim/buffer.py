"""Bounded queues that forget their oldest items when they are full, and count what they forgot."""

import asyncio
from collections import OrderedDict, deque
from typing import Generic, TypeVar

Item = TypeVar("Item")
Sender = TypeVar("Sender")


class DropOldest(Generic[Item]):
    """Queue of at most `length` items between a client that must never wait and one consumer that may be slow.

    >>> queue = DropOldest(2)
    >>> for item in "abc":
    ...     queue.put(item)
    >>> queue.pop(), queue.pop(), queue.pop(), queue.dropped
    ('b', 'c', None, 1)
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

    def pop(self) -> Item | None:
        """Remove and return the oldest item, or None when there is none."""
        return self._items.popleft() if self._items else None


class FairQueue(Generic[Sender, Item]):
    """Items of many senders, one of each in turn; who sends too many loses their own oldest, and nobody else's.

    >>> queue = FairQueue(3)
    >>> [queue.put(sender, item) for sender, item in [("a", 1), ("a", 2), ("b", 3), ("a", 4)]]
    [None, None, None, 'a']
    >>> [queue.pop() for _ in range(len(queue))]
    [2, 3, 4]

    Every call takes the same short time, however many wait, but one: to make room for a sender with few items, `put`
    looks for the sender with the most.

    Parameters
    ----------
    length
        Items held at most, of all senders together.
    """

    def __init__(self, length: int) -> None:
        self._ready: OrderedDict[Sender, deque[Item]] = OrderedDict()  # whose turn it is comes first; none is empty
        self._paused: dict[Sender, deque[Item]] = {}
        self._length, self._held = length, 0
        self.dropped = 0
        """Items forgotten since the start."""

    def __len__(self) -> int:
        return self._held

    @property
    def next_sender(self) -> Sender | None:
        """Sender of the item that `pop` returns; None when nothing waits but items of senders that are paused."""
        return next(iter(self._ready), None)

    def holds(self, sender: Sender) -> bool:
        """Whether an item of `sender` waits, paused or not: a later one must not go past it."""
        return sender in self._ready or bool(self._paused.get(sender))

    def put(self, sender: Sender, item: Item) -> Sender | None:
        """Append an item of `sender`; returns whose oldest item was dropped for it, None when there was room."""
        dropped = self._make_room(sender) if self._held == self._length else None
        items = self._paused.get(sender)
        (self._ready.setdefault(sender, deque()) if items is None else items).append(item)
        self._held += 1
        return dropped

    def pop(self) -> Item:
        """Remove and return the oldest item of `next_sender`, whose next turn comes last; KeyError: none is ready."""
        sender, items = self._ready.popitem(last=False)
        if len(items) > 1:
            self._ready[sender] = items
        self._held -= 1
        return items.popleft()

    def pause(self, sender: Sender) -> None:
        """Let what `sender` has sent and will send wait until `resume`."""
        self._paused[sender] = self._ready.pop(sender, deque())

    def resume(self, sender: Sender) -> None:
        """Let a sender that was paused have turns again."""
        items = self._paused.pop(sender)
        if items:
            self._ready[sender] = items

    def clear(self) -> int:
        """Forget all items, of senders that are paused too; how many."""
        held, self._held = self._held, 0
        self._ready.clear()
        for items in self._paused.values():
            items.clear()
        return held

    def _make_room(self, sender: Sender) -> Sender:
        """Drop the oldest item of the sender with the most: of `sender`, when that has more than an equal share."""
        most = sender
        if len(self._items(sender)) * (len(self._ready) + len(self._paused)) <= self._held:
            most = max((*self._ready, *self._paused), key=lambda other: len(self._items(other)))
        items = self._items(most)
        items.popleft()
        if not items and most in self._ready:
            del self._ready[most]
        self._held -= 1
        self.dropped += 1
        return most

    def _items(self, sender: Sender) -> deque[Item]:
        return self._paused[sender] if sender in self._paused else self._ready.get(sender, deque())
