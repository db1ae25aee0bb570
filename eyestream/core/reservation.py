"""Requests to a ledger and its answers: values, and the port that a ledger of any kind has. Pure."""

from collections.abc import Sequence
from typing import Literal, NamedTuple, Protocol

import msgspec

from eyestream.core.charge import Charge
from eyestream.streams import StreamKey

LAST_ROW = 2**64 - 1
"""The largest row number; a mark there closes the session."""

Obstacle = Literal["rows", "change", "window", "session", "day", "lifetime", "wearer", "owner"]
"""Why a chunk is withheld: its rows were reserved before; another n or w inside a session; a ceiling of the device or
its stream, by name; one of its wearer; another owner."""

NO_SLOT: frozenset[Obstacle] = frozenset({"rows", "change", "owner"})
"""Obstacles that leave no trace; with any other, the withheld chunk takes its slot."""


class Request(msgspec.Struct, frozen=True):
    """A chunk that has opened or has fallen due, and what its release would cost.

    Never ask for a chunk that may not come: a slot that never fell due moves the window on.

    Parameters
    ----------
    key
        Whose chunk; all streams of a device spend from the device's budget, whoever wears it.
    session, first_row, last_row
        The tracker's numbers (u64); both rows belong to the chunk.
    chunk
        n of the stream: the rows of a full chunk.
    charge
        The loss of the release; on level 0 of a lifetime that fades.
    later
        What it costs on each later level; none: it does not fade.
    unreleased
        Nothing is ever released of this chunk by itself: it takes a slot that costs nothing, and no ceiling forbids it.
    wearer
        Who wears the device through the session, and is charged beneath the device (`eyestream.core.wearers`): a
        handle that means nothing outside (u32); 0: not known.
    write_ahead
        The driver keeps the released bytes in an outbox before it publishes them: until `Ledger.settle` the
        ledger remembers the span as reserved and not released.

    Raises
    ------
    ValueError
        A number out of range, or more rows than a chunk has.
    """

    key: StreamKey
    session: int
    first_row: int
    last_row: int
    chunk: int
    charge: Charge
    wearer: int = 0
    write_ahead: bool = False
    unreleased: bool = False
    later: tuple[Charge, ...] = ()

    def __post_init__(self) -> None:
        if not (0 <= self.session <= LAST_ROW and 0 <= self.first_row <= self.last_row <= LAST_ROW):
            raise ValueError("expected a session and rows of 64 bits, the first row not after the last")
        if not 0 < self.chunk < 2**32:
            raise ValueError("expected a chunk of at least one row, fewer than 2^32")
        if self.last_row - self.first_row >= self.chunk:
            raise ValueError("expected at most a chunk of rows")
        if not 0 <= self.wearer < 2**32:
            raise ValueError("expected a wearer of 32 bits, 0 when it is not known")

    @property
    def charges(self) -> tuple[Charge, ...]:
        """Charges of the request on each level."""
        return (self.charge, *self.later)


class RowMark(NamedTuple):
    """Every row of an older session, and of this session up to `last_row`, is refused for ever."""

    session: int
    last_row: int


class Granted(msgspec.Struct, frozen=True):
    """The rows and the charge of `request` are durably spent: its chunk may be released, once.

    Where the request says that nothing is released of it, nothing is spent, and nothing may be released.
    """

    request: Request
    level: int = 0
    """On which level of the lifetime it is, and was charged: the release must cost no more than that."""

    @property
    def spent(self) -> Charge | None:
        """The charge; None: nothing was charged, and nothing is released."""
        return None if self.request.unreleased else self.request.charges[self.level]


class Withheld(msgspec.Struct, frozen=True):
    """The chunk of `request` must not be released, and `obstacle` says why."""

    request: Request
    obstacle: Obstacle


class LedgerPort(Protocol):
    """A ledger, as a release needs it."""

    def reserve(self, requests: Sequence[Request], day: int) -> list[Granted | Withheld]:
        """Reserve what the budget allows, durably before it returns; each answer stands at its request's place.

        `requests` in the order in which the chunks fell due; `day` in days since 1970, UTC.

        Raises
        ------
        LedgerError
            None of the requests may be released.
        """
        ...

    def mark(self, key: StreamKey) -> RowMark | None:
        """Up to where the rows of the stream are refused for ever; None: it has none."""
        ...


def refuse_above(granted: Granted, cost: Charge) -> None:
    """Raise RuntimeError where a release of `cost` would cost more than was `granted`, or nothing may be released."""
    spent = granted.spent
    if spent is None or cost.epsilon > spent.epsilon or cost.delta > spent.delta:
        raise RuntimeError("a release would cost more than its chunk was charged")
