"""Second places that several workers reach, and the beginning of a shard's life beside one."""

import secrets
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import NamedTuple, Protocol

from eyestream.errors import LinkError, ShardError
from eyestream.rim.ledger.second_place import Lengths, Remembered, announce, settle


class SecondPlace(Protocol):
    """Remembers by the name of a ledger. An object of this kind serves one process, and one call at a time."""

    async def read(self, ledger: str) -> Remembered | None:
        """Read what was written last; None: nothing. Raises LinkError, LedgerError or ShardError."""
        ...

    async def write(self, ledger: str, remembered: Remembered) -> None:
        """Remember, durably before it returns, if nobody else wrote since this object has read or written.

        Raises
        ------
        LinkError
            It may be written or not, now or later. Call again, with the same or with what is true by then.
        LedgerError, ShardError
            Somebody else wrote, or it cannot be written. Nothing may be published any more.
        """
        ...


async def recalled(place: SecondPlace, shard: str) -> Remembered:
    """Read the second place's memory of a shard. Raises LinkError, LedgerError; ShardError: nothing."""
    remembered = await place.read(shard)
    if remembered is None:
        raise ShardError(
            f"shard {shard}: the second place knows nothing of it; `eyestream shard --new` makes both, and one that "
            "was lost must be put back, or, if this is the newest copy of the shard, made by `eyestream shard --accept`"
        )
    return remembered


class Life(NamedTuple):
    """A life that has begun: it may publish what its second place remembers."""

    place: SecondPlace
    ledger: str
    token: str

    async def remember(self, lengths: Lengths) -> None:
        """Let the second place know how long the files are; raises as `SecondPlace.write`."""
        await self.place.write(self.ledger, Remembered(lengths, self.token))


async def begin_life(path: Path, remembered: Remembered, write: Callable[[Remembered], Awaitable[None]]) -> str:
    """Steps 3 to 5, for files that passed the first two; gives the token.

    Parameters
    ----------
    path
        Of the tokens.
    remembered
        What the second place holds.
    write
        Writes into it on the condition that it holds that still, and returns when it has.

    Raises
    ------
    LedgerError
        The tokens cannot be written.
    """
    life = announce(path, remembered)
    await write(remembered._replace(life=life))
    settle(path, life)
    return life


class RevisedPlace(ABC):
    """A second place in a store whose values have revisions, of which a new one can be made a condition.

    **A lost answer** leaves open whether a value was written, or will be once it has travelled. Then the next writing
    finds another revision than it names, and reads. What it finds is its own only if it is, bit for bit, what this
    object tried: each try has a stamp of 64 random bits, since a snapshot of a whole machine has two processes with one
    token. What travels still names a revision that is gone, and fails.
    """

    def __init__(self) -> None:
        self._revision = 0
        self._tried: dict[Remembered, bytes] = {}

    @abstractmethod
    async def _get(self, ledger: str) -> tuple[int, bytes] | None:
        """The newest revision and its value; None: there is none. Raises LinkError."""

    @abstractmethod
    async def _set(self, ledger: str, value: bytes, last: int) -> int | None:
        """Write durably if the newest revision is `last` (0: none), and give the new one; None: it is another.

        Raises LinkError: it may be written or not, now or later.
        """

    async def read(self, ledger: str) -> Remembered | None:
        """See `SecondPlace`."""
        self._tried.clear()
        held = await self._get(ledger)
        self._revision = 0 if held is None else held[0]
        return None if held is None else _unpacked(ledger, held[1])

    async def write(self, ledger: str, remembered: Remembered) -> None:
        """See `SecondPlace`."""
        if remembered not in self._tried:
            self._tried[remembered] = _packed(remembered)
        revision = await self._set(ledger, self._tried[remembered], self._revision)
        if revision is not None:
            self._revision = revision
            self._tried.clear()
            return
        held = await self._get(ledger)
        if held is not None and held[1] in self._tried.values():
            self._revision = held[0]
            self._tried.clear()
        elif held is None or held[0] > self._revision:
            raise ShardError(f"shard {ledger}: another worker is at work on a copy of it; stop one of them")
        raise LinkError("the answer of the second place was lost")  # or a server that is behind has answered


def _packed(remembered: Remembered) -> bytes:
    return b"life %s %d %d %s" % (
        remembered.life.encode(),
        *remembered.lengths,
        secrets.token_hex(8).encode(),
    )


def _unpacked(ledger: str, value: bytes) -> Remembered:
    """The value in this form, or in that before lives had tokens: two lengths, and a word."""
    try:
        match value.split(b" "):
            case [b"life", life, has, steps, _]:
                return Remembered(Lengths(int(has), int(steps)), life.decode())
            case [has, steps, _]:
                return Remembered(Lengths(int(has), int(steps)))
    except ValueError:
        pass
    raise ShardError(f"shard {ledger}: the second place holds something else")
