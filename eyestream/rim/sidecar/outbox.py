"""Released bytes that wait for the broker: in order, bounded, each until it is acknowledged or too old."""

from collections import deque
from dataclasses import dataclass

__all__ = ["Outbox", "OutboxEntry"]

UNDER_WAY = 16
"""Entries that may be with the broker unacknowledged: with a round trip of 50 ms, 320 chunks a second."""

SOON = 1 / 8
"""Part of an entry's lifetime within which a link that keeps up acknowledges it."""


@dataclass(frozen=True, slots=True, eq=False)
class OutboxEntry:
    """One released chunk. A retry sends these very bytes."""

    topic: str
    payload: bytes
    deadline: float


class Outbox:
    """Entries in the order of their release: those under way to the broker, then those that wait.

    An entry is not sent past its deadline, but what is with the socket cannot be taken back. So a link begins with one
    entry under way, gets one more with each that is acknowledged soon, falls back to one when an acknowledgement comes
    late, and gets none while one is overdue: a slow link or a blocked one holds little that goes stale.

    Parameters
    ----------
    length
        Entries held at most, those under way included; of a full outbox the oldest that waits is dropped.
    lifetime_s
        Seconds after which an entry that waits is dropped rather than sent late.
    """

    def __init__(self, length: int, lifetime_s: float) -> None:
        self._waiting: deque[OutboxEntry] = deque()
        self._under_way: deque[tuple[OutboxEntry, float]] = deque()
        self._length = length
        self._most_under_way = max(1, min(UNDER_WAY, length // 2))
        self._window = 1
        self._lifetime_s = lifetime_s
        self.overflow = 0
        """Entries dropped because too many waited."""
        self.expired = 0
        """Entries dropped because they waited for too long."""
        self.delivered = 0
        """Entries that the broker acknowledged."""
        self.refused = 0
        """Entries that the broker said it would not take."""

    def __len__(self) -> int:
        return len(self._waiting) + len(self._under_way)

    @property
    def waits(self) -> bool:
        """Whether an entry is not under way yet."""
        return bool(self._waiting)

    @property
    def oldest_under_way(self) -> OutboxEntry | None:
        """What a link that is lost now was lost over, perhaps."""
        return self._under_way[0][0] if self._under_way else None

    def put(self, topic: str, payload: bytes, now: float) -> None:
        """Append a released chunk."""
        self._waiting.append(OutboxEntry(topic, payload, now + self._lifetime_s))
        if len(self) > self._length:
            self._waiting.popleft()
            self.overflow += 1

    def first(self, now: float) -> OutboxEntry | None:
        """The oldest entry that waits and is not too old; it stays until `sent` or `acknowledge`."""
        while self._waiting and self._waiting[0].deadline <= now:
            self._waiting.popleft()
            self.expired += 1
        return self._waiting[0] if self._waiting else None

    def has_room(self, now: float) -> bool:
        """Whether another entry may be sent before one is acknowledged."""
        if not self._under_way:
            return True
        return len(self._under_way) < self._window and self._soon(self._under_way[0][1], now)

    def sent(self, entry: OutboxEntry, now: float) -> None:
        """`entry`, the first one, is under way: it is held until it is acknowledged, and sent again after `recall`."""
        self._waiting.popleft()
        self._under_way.append((entry, now))

    def recall(self) -> None:
        """A new link: what was under way waits again, in its old order and before all others."""
        self._waiting.extendleft(entry for entry, _ in reversed(self._under_way))
        self._under_way.clear()
        self._window = 1

    def acknowledge(self, entry: OutboxEntry, now: float) -> None:
        """The broker has it. Had it been dropped since it was sent, it counts as dropped."""
        self.delivered += self._settle(entry, now)

    def refuse(self, entry: OutboxEntry, now: float) -> None:
        """The broker does not take it, and will not: it is gone."""
        self.refused += self._settle(entry, now)

    def _settle(self, entry: OutboxEntry, now: float) -> bool:
        """No longer hold `entry`; whether it was held."""
        for pair in self._under_way:
            if pair[0] is entry:
                self._under_way.remove(pair)
                self._window = min(self._window + 1, self._most_under_way) if self._soon(pair[1], now) else 1
                return True
        if self._waiting and self._waiting[0] is entry:  # recalled, and yet answered
            self._waiting.popleft()
            return True
        return False

    def _soon(self, sent_at: float, now: float) -> bool:
        return now - sent_at < SOON * self._lifetime_s
