"""Released bytes that wait for the broker: in order, bounded, each until it is acknowledged or too old."""

from collections import deque
from dataclasses import dataclass

__all__ = ["Outbox", "Parcel"]


@dataclass(frozen=True, slots=True, eq=False)
class Parcel:
    """One released chunk. A retry sends these very bytes."""

    topic: str
    payload: bytes
    deadline: float


class Outbox:
    """Parcels in the order of their release.

    Parameters
    ----------
    length
        Parcels held at most; of a full outbox the oldest is dropped.
    lifetime_s
        Seconds after which a parcel is dropped rather than delivered late.
    """

    def __init__(self, length: int, lifetime_s: float) -> None:
        self._parcels: deque[Parcel] = deque()
        self._length = length
        self._lifetime_s = lifetime_s
        self.overflow = 0
        """Parcels dropped because too many waited."""
        self.expired = 0
        """Parcels dropped because they waited for too long."""
        self.delivered = 0
        """Parcels that the broker acknowledged."""

    def __len__(self) -> int:
        return len(self._parcels)

    def put(self, topic: str, payload: bytes, now: float) -> None:
        """Append a released chunk."""
        if len(self._parcels) == self._length:
            self._parcels.popleft()
            self.overflow += 1
        self._parcels.append(Parcel(topic, payload, now + self._lifetime_s))

    def first(self, now: float) -> Parcel | None:
        """The oldest parcel that is not too old; it stays until `acknowledge`."""
        while self._parcels and self._parcels[0].deadline <= now:
            self._parcels.popleft()
            self.expired += 1
        return self._parcels[0] if self._parcels else None

    def acknowledge(self, parcel: Parcel) -> None:
        """The broker has it. Had it been dropped while it was under way, it counts as dropped."""
        if self._parcels and self._parcels[0] is parcel:
            self._parcels.popleft()
            self.delivered += 1
