"""What stands around the order of effects, as it sees it: a ledger, a mechanism, and a memory of released bytes."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from eyestream.chunking.chunks import RowSpan
from eyestream.privacy.accountant import Granted, Request, RowMark, Withheld
from eyestream.streams.key import StreamKey

__all__ = ["Ledger", "Mechanism", "Outbox", "Session"]


class Ledger(Protocol):
    """Durable memory of what was spent. It decides; whoever restores an old state asks it again.

    A request is granted at most once in the life of the ledger, and refused with ``rows`` from then on - unless the
    ledger can prove that nothing has left under its reservation, which takes an `Outbox` that is written before
    anything is published: then it may grant the same request again, and charges it once.
    """

    def reserve(self, requests: Sequence[Request], day: int) -> Sequence[Granted | Withheld]:
        """An answer at the place of each request, durable before it is given; `day` counts from 1970 in UTC."""
        ...

    def mark(self, key: StreamKey) -> RowMark | None:
        """Up to where rows are refused for ever; None: nothing of the stream was ever reserved."""
        ...


class Outbox(Protocol):
    """Released bytes by the rows that they came from. What is in it is sent again; it is never drawn again."""

    def put(self, key: StreamKey, span: RowSpan, payload: bytes) -> None:
        """Keep the bytes of a release, durably before they are published."""
        ...

    def get(self, key: StreamKey, span: RowSpan) -> bytes | None:
        """The bytes that were kept; None: nothing was released."""
        ...


class Session(Protocol):
    """A mechanism with the state of one session."""

    def release(self, chunk: NDArray[np.float64], /) -> NDArray[np.float64]:
        """One private release of the session's next chunk (F, n)."""
        ...

    def snapshot(self) -> bytes:
        """Its state: a function of released values and public figures alone."""
        ...


class Mechanism(Protocol):
    """What of a mechanism the order of effects needs."""

    @property
    def epsilon(self) -> float:
        """Loss of one chunk."""
        ...

    @property
    def delta(self) -> float:
        """Of one chunk."""
        ...

    def session(self, snapshot: bytes | None = None) -> Session:
        """A new session, or the one whose `snapshot` it was."""
        ...
