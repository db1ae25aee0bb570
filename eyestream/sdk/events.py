"""What happens on a stream, in the order in which an application takes it: `Chunks.events`.

Besides a `Chunk`, the sidecar's own words come as they are: `Status` (how the stream is) and `Budget` (what is left).
"""

from dataclasses import dataclass

from eyestream.sdk.chunk import Chunk
from eyestream.wire.messages import Budget, Status

__all__ = ["Connection", "Event", "Gap", "Silence", "gap_between"]


@dataclass(frozen=True, slots=True)
class Gap:
    """Chunks of a session that did not come: withheld, or lost on the way. The next event is the chunk after them.

    Attributes
    ----------
    session
        The sidecar's number of the session.
    first
        Number of the first chunk that is missing.
    count
        How many are missing.
    """

    session: int
    first: int
    count: int


@dataclass(frozen=True, slots=True)
class Silence:
    """No chunk for three chunk lengths, although the sidecar says that the stream is online. Said once.

    The tracker is off, or its headset is, or the sidecar was lost without a word.
    """

    seconds: float


@dataclass(frozen=True, slots=True)
class Connection:
    """The link to the broker was lost, or stands again."""

    up: bool


Event = Chunk | Gap | Silence | Connection | Status | Budget


def gap_between(last: Chunk | None, chunk: Chunk) -> Gap | None:
    """What is missing between two chunks; a session that begins, or that one joins, has no gap."""
    if last is None or last.session != chunk.session or chunk.index == last.index + 1:
        return None
    return Gap(chunk.session, last.index + 1, chunk.index - last.index - 1)
