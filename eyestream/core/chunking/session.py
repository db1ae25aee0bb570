"""One session of a tracker: row numbers in, chunks closed in order.

Theory of operation. A session is a list of chunks on the tracker's grid of row numbers. One of them is *current*; those
before it are closed, and none after it has begun. The current chunk is in one of two states:

======== ========================== ===================================================================================
state    what is known of it        what happens to it
======== ========================== ===================================================================================
awaited  its span and its due time  a row of it comes: open. The clock reaches its due time plus grace, or a row of a
                                    later chunk comes: it falls due without rows. The session ends: it is forgotten
open     a buffer with rows, too    its last row comes, the clock reaches its due time plus grace, a row of a later
                                    chunk comes, or the session ends: it falls due with the rows that it has
======== ========================== ===================================================================================

When a chunk falls due, the next one is awaited, a chunk's length later on the schedule. A row is then

=========== ===========================================================================================================
accepted    it is of the current chunk, or of a later one within the jump that is allowed; it then becomes current
duplicate   its place in the open chunk is taken: the first arrival of a row wins
late        its chunk is closed, and so it is in no release
left over   it lies too far ahead, or too many chunks wait for the clock: the device stops the session
=========== ===========================================================================================================

So each row is in one chunk at most, whatever the order and the pieces in which rows arrive: `_current` only grows, a
chunk is closed once, and only rows of the current chunk are put anywhere.
"""

import math
from collections import deque
from dataclasses import dataclass

import msgspec
import numpy as np
from numpy.typing import NDArray

from eyestream.core.chunking.chunks import ChunkBuffer, DueChunk, RowSpan, SessionState
from eyestream.core.chunking.settings import DeviceSettings
from eyestream.wire.envelope import MAX_U64

_SLACK = 1.01  # a tracker may be one per cent slower than it says before rows come after the due time


@dataclass(slots=True)
class RowCounters:
    """Rows by what became of them; numbers and order decide, never values.

    At any moment ``rows == accepted + duplicate + late + refused + stale_session + jump + wearer``.

    Attributes
    ----------
    rows
        All that came in.
    accepted
        Went into a chunk.
    duplicate
        Their number had arrived already in the open chunk.
    late
        Their chunk was closed.
    refused
        At or before the mark: what an earlier process, or this one before the session stopped, may have released, and
        what lies too near to it.
    stale_session
        Their session is over, or older than the current one.
    jump
        Stopped their session by their number; or came when too many chunks waited for the clock.
    wearer
        Named another wearer than their session did at its beginning.
    """

    rows: int = 0
    accepted: int = 0
    duplicate: int = 0
    late: int = 0
    refused: int = 0
    stale_session: int = 0
    jump: int = 0
    wearer: int = 0


class WaitingChunk(msgspec.Struct, frozen=True):
    """A closed chunk and the time at which the clock alone would let it out."""

    at: float
    chunk: DueChunk


class SessionChunker:
    """Rows of one session, chunk by chunk; the *current* chunk is the open one, or else the one awaited.

    A session begins with a row: the chunk of that row has index 0.

    Parameters
    ----------
    settings
        Those of the device.
    number
        The tracker's session.
    first_row
        The row that begins it.
    counters
        Those of the device; this session counts into them.
    closed
        Where closed chunks go, in order.
    wearer
        Who wears the device until the session stops; 0: not known.
    """

    def __init__(
        self,
        settings: DeviceSettings,
        number: int,
        first_row: int,
        counters: RowCounters,
        closed: deque[WaitingChunk],
        *,
        wearer: int = 0,
    ) -> None:
        self.number, self.wearer = number, wearer
        self.last_arrival = 0.0
        self._settings = settings
        self._counters = counters
        self._closed = closed
        # Chunks that may wait for the clock: those of one jump, and those that are complete before their time. That is
        # the grace, and less than half of it, a step of the schedule (`_await`), after their last row.
        self._room = settings.jump_chunks + math.ceil(1.5 * settings.grace_s / settings.chunk_s) + 2
        self._first = first_row // settings.n
        self._move_to(self._first)
        self._buffer: ChunkBuffer | None = None
        self._newest = -1
        self._scheduled = self._due = 0.0
        self._origin: float | None = None
        self._none = np.full((settings.features, settings.n), np.nan)
        self._none.flags.writeable = False

    def state(self) -> SessionState:
        """All of it, as numbers and bytes."""
        return SessionState(
            number=self.number,
            last_arrival=self.last_arrival,
            first=self._first,
            current=self._current,
            newest=self._newest,
            scheduled=self._scheduled,
            due=self._due,
            origin=self._origin,
            buffer=None if self._buffer is None else self._buffer.state(),
            wearer=self.wearer,
        )

    def border(self) -> SessionState:
        """The state without the rows of the current chunk, which is awaited again.

        Where the clock has run ahead of the tracker, the newest row lies further back: late rows tell that again.
        """
        newest = min(self._newest, self._span.first_row - 1)
        return msgspec.structs.replace(self.state(), buffer=None, newest=newest)

    @classmethod
    def restore(
        cls, settings: DeviceSettings, state: SessionState, counters: RowCounters, closed: deque[WaitingChunk]
    ) -> "SessionChunker":
        """The session whose `state` it was; raises ValueError where the settings are others."""
        session = cls(settings, state.number, state.first * settings.n, counters, closed, wearer=state.wearer)
        session._move_to(state.current)
        session.last_arrival, session._newest = state.last_arrival, state.newest
        session._scheduled, session._due, session._origin = state.scheduled, state.due, state.origin
        if state.buffer is not None:
            session._buffer = ChunkBuffer.restore(settings.n, settings.features, state.buffer)
        return session

    @property
    def closes_at(self) -> float:
        """When the clock closes the current chunk: its due time plus grace."""
        return self._due + self._settings.grace_s

    @property
    def idle_at(self) -> float:
        """When the session stops for want of rows."""
        return self.last_arrival + self._settings.idle_s

    @property
    def open_chunk(self) -> RowSpan | None:
        """The current chunk, if a row of it has come."""
        return None if self._buffer is None else self._span

    @property
    def last_row(self) -> int:
        """Number of the last row of the last closed chunk; -1 when there was none."""
        return self._current * self._settings.n - 1 if self._current > self._first else -1

    def take(self, seq: int, rows: NDArray[np.floating], time: float, t: NDArray[np.float64] | None = None) -> int:
        """Take (m, F) consecutive rows from number `seq` that arrive at `time`; returns how many were left over.

        `t` (m,) is the tracker's own time of each, where it tells it.

        Rows are left over where their number jumps so far that the session must stop.
        """
        n = self._settings.n
        row, stop = seq, seq + len(rows)
        self.last_arrival = time  # whatever becomes of the rows: late ones are a sign of life too
        while row < stop:  # once for each chunk that the rows touch, so that no split of them matters
            chunk = row // n
            if chunk < self._current:
                until = min(stop, self._current * n)
                self._count_late(row, until, time)
            elif self._advance(chunk, time):
                until = min(stop, (chunk + 1) * n)
                self._put(row, rows[row - seq : until - seq], time, None if t is None else float(t[row - seq]))
            else:
                return stop - row
            self._newest = max(self._newest, until - 1)
            row = until
        return 0

    def close_current(self, ends_session: bool = False) -> None:
        """The current chunk falls due as it is; the next one, if there is one, is awaited a chunk's length later."""
        # One shared array of NaN for chunks without rows: thousands may fall due at once when a tracker was away.
        values = self._none if self._buffer is None else self._buffer.values()
        t0 = self._span.index * self._settings.chunk_s
        at = None if self._origin is None else self._origin + t0
        chunk = DueChunk(self._span, t0, values, ends_session, at, self._due)
        self._closed.append(WaitingChunk(self.closes_at, chunk))
        self._buffer = None
        self._move_to(self._current + 1)
        more = self._current <= MAX_U64 // self._settings.n  # after the last row number nothing is awaited
        self._scheduled = self._due = self._due + self._settings.chunk_s if more else math.inf

    def end(self) -> None:
        """The session is over: an open chunk falls due, an awaited one does not."""
        if self._buffer is not None:
            self.close_current(ends_session=True)

    def _put(self, row: int, rows: NDArray[np.floating], time: float, tracker_time: float | None) -> None:
        n = self._settings.n
        if self._buffer is None:
            self._buffer = ChunkBuffer(n, self._settings.features)
            self._await(time + self._time_left(row))
        # One time of the tracker enters a session: each further one would be a raw value, which `at` publishes.
        if self._origin is None and tracker_time is not None:
            self._origin = tracker_time - (row - self._first * n) / self._settings.rate_hz
        duplicates = self._buffer.put(row % n, rows)
        self._counters.duplicate += duplicates
        self._counters.accepted += len(rows) - duplicates
        if (row + len(rows)) % n == 0:
            self.close_current()

    def _count_late(self, row: int, until: int, time: float) -> None:
        """Rows of closed chunks. The tracker's newest row among them means that the clock has run ahead of the tracker.

        The awaited chunk is then waited for until the tracker can have reached its end: else a step of the clock by
        more than a chunk would leave every later row late, for ever.
        """
        self._counters.late += until - row
        if until - 1 > self._newest:  # then the current chunk has no row yet
            self._await(max(self._scheduled, time + self._time_left(until - 1)))

    def _advance(self, chunk: int, time: float) -> bool:
        """Make `chunk` the current one; False where that is too far, or too many chunks wait for the clock.

        Those whose time has come wait for the caller alone, which may be late: that is no fault of the tracker.
        """
        gap = chunk - self._current
        if gap > self._settings.jump_chunks:
            return False
        opens = gap > 0 or self._buffer is None
        if opens and not self.has_room(time, gap):
            return False
        for _ in range(gap):  # they fall due without rows: a gap in the rows is no gap in the chunks
            self.close_current()
        return True

    def has_room(self, time: float, chunks: int = 0) -> bool:
        """Whether a chunk may open after `chunks` more that wait for the clock."""
        waiting = sum(closed.at > time for closed in self._closed) if self._settings.release == "on_clock" else 0
        return self._settings.release == "on_row" or waiting + chunks < self._room

    def _time_left(self, row: int) -> float:
        """Seconds from `row` to the last row of the current chunk, with slack."""
        return _SLACK * (self._span.last_row - row) / self._settings.rate_hz

    def _await(self, until: float) -> None:
        """Let the current chunk be due when its rows can be there, which is at `until`: on the session's schedule.

        The session's first row decides the schedule, a chunk's length for each chunk. It moves by whole steps of half
        the grace, when the tracker has drifted so far: so what a row takes on its way, and what work it makes, is not
        in the moment of a release.
        """
        step = self._settings.grace_s / 2
        if self._current == self._first or step == 0:
            self._due = until
        elif self._scheduled < math.inf:
            self._due = self._scheduled + step * math.trunc((until - self._scheduled) / step)

    def _move_to(self, chunk: int) -> None:
        """Make `chunk` the current one."""
        n = self._settings.n
        self._current = chunk
        self._span = RowSpan(self.number, chunk - self._first, chunk * n, chunk * n + n - 1, self.wearer)


def border_of(chunk: DueChunk, settings: DeviceSettings, time: float) -> SessionState:
    """The state of the session of `chunk` when `chunk` was awaited; `time` is now."""
    span = chunk.span
    current = span.first_row // settings.n
    return SessionState(
        number=span.session,
        last_arrival=time,
        first=current - span.index,
        current=current,
        newest=span.first_row - 1,
        scheduled=chunk.due,
        due=chunk.due,
        origin=None if chunk.at is None else chunk.at - chunk.t0,
        buffer=None,
        wearer=span.wearer,
    )
