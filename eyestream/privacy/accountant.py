"""What one device has spent, and whether it may spend more: exact integers, no clock, no file.

Slots and windows
-----------------
Every chunk of a (device, stream) that falls due takes one *slot*, released or withheld (cost 0), in one sequence across
sessions and restarts. A chunk is released only when it and the w - 1 slots before it sum to at most the ceiling E; as
each slot is checked when it is taken, and costs are not negative, no w consecutive slots ever sum above E. Session
numbers, chunk indices and the clock play no part.

*Forgetting a withheld slot is safe.* Take a slot of cost 0 away from the sequence: any w consecutive slots of the true
sequence lie among at most w consecutive ones of what is left, with the same sum. So a withheld slot need not be
durable.

*Merging two neighbouring slots, costs added, is safe* for the same reason. A slot that never fell due would not be
safe: it moves the window on.

Another chunk length or window
------------------------------
(n1, w1, E1) gives way to (n2, w2, E2) only with a new session, and the window then counts as full: the first
m = max(w1, w2, ceil(w1 n1 / n2)) slots are withheld. So

(a) w1 consecutive slots that hold an old spend hold at most w1 - 1 < m new slots, all of cost 0: at most E1, as before;
(b) w2 consecutive slots that hold a new spend begin behind the last old slot, as m >= w2: at most E2;
(c) the same holds for the old window read as a span of w1 n1 rows, as m n2 >= w1 n1.

A change during such a wait keeps what is left of it, in slots and in rows; w = 0 (no window) asks for no wait. A device
without a slot stands at the n and w of the ledger's header.
"""

import dataclasses
from collections import deque
from typing import Literal, NamedTuple

from eyestream.privacy.charge import Ceilings, Charge
from eyestream.streams.key import StreamKey

__all__ = ["LAST_ROW", "Account", "Granted", "Obstacle", "Odometer", "Request", "RowMark", "Withheld"]

LAST_ROW = 2**64 - 1
"""The largest row number; a mark there closes the session."""

Obstacle = Literal["rows", "change", "window", "session", "day", "lifetime"]
"""Why a chunk is withheld: its rows were reserved before; another n or w inside a session; a ceiling."""


@dataclasses.dataclass(frozen=True, slots=True)
class Request:
    """A chunk that has opened or has fallen due, and what its release would cost.

    Never ask for a chunk that may not come: a slot that never fell due moves the window on.

    Parameters
    ----------
    key
        Whose.
    session, first_row, last_row
        The tracker's numbers (u64); both rows belong to the chunk.
    chunk
        n, the rows of a full chunk of this stream.
    charge
        The loss of the release.
    """

    key: StreamKey
    session: int
    first_row: int
    last_row: int
    chunk: int
    charge: Charge

    def __post_init__(self) -> None:
        if not (0 <= self.session <= LAST_ROW and 0 <= self.first_row <= self.last_row <= LAST_ROW):
            raise ValueError("expected a session and rows of 64 bits, the first row not behind the last")


@dataclasses.dataclass(frozen=True, slots=True)
class Granted:
    """The rows and the charge of `request` are durably spent: its chunk may be released, once."""

    request: Request


@dataclasses.dataclass(frozen=True, slots=True)
class Withheld:
    """The chunk of `request` must not be released, and `obstacle` says why."""

    request: Request
    obstacle: Obstacle


class RowMark(NamedTuple):
    """Every row of an older session, and of this session up to `last_row`, is refused for ever."""

    session: int
    last_row: int


@dataclasses.dataclass(frozen=True, slots=True)
class Odometer:
    """What one (device, stream) has spent, in fixed point.

    `epsilon` and `delta` since the ledger began; of them `session_epsilon` in the last session, `window_epsilon` in the
    last `window` slots, `day_epsilon` on `day` (days since 1970). `unreadable` counts torn records, which are in the
    sums; `wait` the slots still to be withheld after a change of chunk length or window.
    """

    mark: RowMark | None
    epsilon: int
    delta: int
    session_epsilon: int
    window_epsilon: int
    day: int
    day_epsilon: int
    released: int
    withheld: int
    unreadable: int
    chunk: int
    window: int
    wait: int


class Account:
    """The budget of one (device, stream): it is told of slots, and asked about the next.

    Parameters
    ----------
    chunk, window
        n and w of the ledger's header.
    """

    __slots__ = (
        "_chunk",
        "_day",
        "_day_epsilon",
        "_delta",
        "_epsilon",
        "_last_row",
        "_released",
        "_session",
        "_session_epsilon",
        "_slots",
        "_unreadable",
        "_wait",
        "_window",
        "_window_epsilon",
        "_withheld",
    )

    def __init__(self, chunk: int, window: int) -> None:
        self._chunk, self._window, self._wait = chunk, window, 0
        self._slots: deque[int] = deque(maxlen=window)
        self._session, self._last_row, self._day = -1, -1, 0
        self._epsilon = self._delta = self._session_epsilon = self._window_epsilon = self._day_epsilon = 0
        self._released = self._withheld = self._unreadable = 0

    @property
    def mark(self) -> RowMark | None:
        """The last reserved row; None before the first."""
        return None if self._session < 0 else RowMark(self._session, self._last_row)

    def day_of(self, today: int) -> int:
        """The day that a slot taken `today` belongs to: days never go backwards."""
        return max(today, self._day)

    def obstacle(self, request: Request, chunk: int, ceilings: Ceilings, today: int) -> Obstacle | None:
        """What forbids the release, or None. "rows" and "change" take no slot, the others do. Changes nothing."""
        same_session = request.session == self._session
        if (request.session, request.first_row) <= (self._session, self._last_row):
            return "rows"
        changed = (chunk, ceilings.window_chunks) != (self._chunk, self._window)
        if changed and same_session:
            return "change"
        if (self._wait_after_change(chunk, ceilings.window_chunks) if changed else self._wait) > 0:
            return "window"
        spent: tuple[tuple[Obstacle, int | None, int], ...] = (
            ("window", ceilings.window, self._newest_slots()),
            ("session", ceilings.session, self._session_epsilon if same_session else 0),
            ("day", ceilings.day, self._day_epsilon if today <= self._day else 0),
        )
        for name, ceiling, sum_so_far in spent:
            if ceiling is not None and sum_so_far + request.charge.epsilon > ceiling:
                return name
        return None

    def take(
        self, session: int, last_row: int, *, chunk: int, window: int, day: int, epsilon: int = 0, delta: int = 0
    ) -> None:
        """Take one slot; `epsilon` is 0 when its chunk is withheld."""
        if chunk != self._chunk or window != self._window:
            self._wait = self._wait_after_change(chunk, window)
            self._chunk, self._window = chunk, window
            self._slots, self._window_epsilon = deque(maxlen=window), 0
        if self._wait:
            self._wait -= 1
        if session != self._session:
            self._session, self._session_epsilon = session, 0
        self._last_row = last_row
        if day > self._day:
            self._day, self._day_epsilon = day, 0
        if window:
            self._window_epsilon = self._newest_slots() + epsilon
            self._slots.append(epsilon)
        if epsilon:
            self._released += 1
            self._add(epsilon, delta)
        else:
            self._withheld += 1

    def take_unreadable(self, session: int | None, epsilon: int, delta: int) -> None:
        """Count a record that cannot be read in full as spent, and close the session, or `session` when that is later.

        The cost joins the newest slot: merging is safe whether the record was a slot of its own or not.
        """
        if session is not None and session > self._session:
            self._session, self._session_epsilon = session, 0
        if self._session >= 0:
            self._last_row = LAST_ROW
        if self._slots:
            self._slots[-1] += epsilon
            self._window_epsilon += epsilon
        elif self._window:
            self._slots.append(epsilon)
            self._window_epsilon = epsilon
        self._unreadable += 1
        self._add(epsilon, delta)

    def odometer(self) -> Odometer:
        """What has been spent so far."""
        return Odometer(
            mark=self.mark,
            epsilon=self._epsilon,
            delta=self._delta,
            session_epsilon=self._session_epsilon,
            window_epsilon=self._window_epsilon,
            day=self._day,
            day_epsilon=self._day_epsilon,
            released=self._released,
            withheld=self._withheld,
            unreadable=self._unreadable,
            chunk=self._chunk,
            window=self._window,
            wait=self._wait,
        )

    def _add(self, epsilon: int, delta: int) -> None:
        self._epsilon += epsilon
        self._delta += delta
        self._session_epsilon += epsilon
        self._day_epsilon += epsilon

    def _newest_slots(self) -> int:
        """Sum of the newest w - 1 slots: those that share a window with the next one."""
        full = self._slots and len(self._slots) == self._window
        return self._window_epsilon - (self._slots[0] if full else 0)

    def _wait_after_change(self, chunk: int, window: int) -> int:
        """Slots to withhold when (chunk, window) take over; derived in the docstring of the module."""
        old_rows = max(self._window, self._wait) * self._chunk
        return max(self._window, window, self._wait, -(-old_rows // chunk))
