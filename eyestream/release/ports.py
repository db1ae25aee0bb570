"""What stands around the order of effects, as it sees it: a ledger, a mechanism, and a memory of released bytes.

The ledger decides; whoever restores an old state asks it again. It grants a request at most once in its life, and
refuses it with ``rows`` from then on - unless it can prove that nothing has left under its reservation, which takes an
`Outbox` that is written before anything is published: then it may grant the same request again, and charges it once.
"""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from eyestream.chunking.chunks import RowSpan
from eyestream.privacy.reservation import LedgerPort as Ledger
from eyestream.streams.key import StreamKey

__all__ = ["Ledger", "Mechanism", "Outbox", "Session"]


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
