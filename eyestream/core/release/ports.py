"""What stands around the order of effects, as it sees it: a ledger and a mechanism.

The ledger decides; whoever restores an old state asks it again. It grants a request at most once in its life, and
refuses it with ``rows`` from then on - unless the driver can prove that nothing has left under its reservation, as
`eyestream_fleet` does with an outbox: then the same request may be granted again, and is charged once.
"""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from eyestream.core.release_type import OutputSchema
from eyestream.core.reservation import LedgerPort as Ledger

__all__ = ["Ledger", "Mechanism", "Session"]


class Session(Protocol):
    """A mechanism with the state of one session."""

    def release(self, chunk: NDArray[np.float64], /) -> NDArray[np.float64]:
        """One private release of the session's next chunk (F, n)."""
        ...

    @property
    def awaits_baseline(self) -> bool:
        """Whether the next chunk is for `anchor` and never released."""
        ...

    def anchor(self, chunk: NDArray[np.float64], /) -> None:
        """Take one of the session's first chunks (F, n) into its baseline."""
        ...

    def erase(self) -> None:
        """Overwrite the history that is taken off it, where there is one."""
        ...

    @property
    def state(self) -> NDArray[np.float64] | None:
        """What it knows from released values and public figures alone."""
        ...

    def snapshot(self) -> bytes:
        """Its state, and its baseline where it has one: raw data then."""
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

    def faded(self, level: int) -> "Mechanism":
        """The mechanism with the epsilon of a level of a lifetime that fades; itself for level 0."""
        ...

    def continue_session(self, session: Any, /) -> Session:
        """A session of another level goes on with this mechanism: its baseline stays, its state begins again."""
        ...

    @property
    def baseline_chunks(self) -> int:
        """Chunks at the beginning of each session that make its baseline, and of which nothing is released."""
        ...

    @property
    def schema(self) -> OutputSchema:
        """What a release is."""
        ...

    @property
    def sessions(self) -> int:
        """Of a pseudonym, whose history is taken off its rows, the first one withheld; 0: there is no history."""
        ...

    def session_after(self, before: Any, /) -> Session:
        """The session after `before` of the same pseudonym, where there are histories; None: the first one."""
        ...

    def session(self, snapshot: bytes | None = None) -> Session:
        """A new session, or the one whose `snapshot` it was."""
        ...

    def hindsight(self, states: Sequence[NDArray[np.float64] | None]) -> list[NDArray[np.float64]] | None:
        """Chunks (F, n) of a whole session, given `Session.state` after each release; None: nothing better."""
        ...
