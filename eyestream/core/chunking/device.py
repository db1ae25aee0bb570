"""One device: its sessions in order, its clock, and the chunks that fall due.

The rules, in the order in which they are applied to a message (privacy core, sections 5 and 6):

1. Time first: what the clock closes by now is closed before the rows are looked at. So the chunks depend on the rows
   and on when each arrived, and neither on how rows are split into messages nor on when somebody asked.
2. Sessions strictly increase. A row (or an end) of a newer one ends the current one; rows of older or ended ones are
   refused.
3. Rows up to the mark are refused. It is the last row that an earlier process may have released, rounded up to the end
   of a chunk, so that no chunk has rows on both sides of it; it moves on to the last row of the last chunk that was
   opened or fell due, whenever a session stops. In both cases `apart` rows more lie before the mark.
4. Chunk i of the tracker's grid holds rows i n to (i + 1) n - 1. It opens at its first row and closes at its last one,
   at a row of a later chunk, when its session stops, or at its due time plus grace. Chunks in between fall due without
   rows.
5. A session stops after `idle_s` seconds without a row, and at a row more than `jump_chunks` chunks ahead: the open
   chunk falls due, and that row is not taken. Later rows after the mark begin it again, as after a restart: the tracker
   may not know that it was not heard. Under ``on_clock`` so it is with a tracker that runs that far ahead of the clock.
6. A session has one wearer, whom its first row names. Rows that name another one are refused until the session stops:
   a tracker begins a session with each wearer, and its rows share no gaze with the session before.

A session here is a tracker's session as seen by this process, from where it begins to where it stops: chunk 0 is the
first chunk of it that a row was taken for, each next chunk follows it on the nominal grid without a hole, and `t0`
counts from there.
"""

import dataclasses
import math
from collections import deque

from eyestream.core.chunking.chunks import (
    VERSION,
    DeviceState,
    DueChunk,
    RowSpan,
    chunk_of,
    chunk_state,
    decode,
    encode,
)
from eyestream.core.chunking.session import RowCounters, SessionChunker, WaitingChunk, border_of
from eyestream.core.chunking.settings import DeviceSettings
from eyestream.core.reservation import RowMark
from eyestream.errors import PayloadError
from eyestream.wire.envelope import MAX_U64
from eyestream.wire.raw import RawRows

_LONGEST_STEP_S = 86_400.0
_ROUNDING_S = 1e-6


class Clock:
    """Seconds since the first reading.

    A reading that is not finite, or lies before the last one, is no progress; one more than a day ahead is a day.
    Afterwards time goes on from the new reading, so that one wrong reading does not stop it.

    >>> clock = Clock()
    >>> [clock.read(now) for now in (100.0, 101.5, 90.0, 91.0, float("nan"))]
    [0.0, 1.5, 1.5, 2.5, 2.5]
    """

    def __init__(self) -> None:
        self.time = 0.0
        self._offset: float | None = None

    @property
    def offset(self) -> float | None:
        """Seconds that are added to the caller's readings; None before the first."""
        return self._offset

    @classmethod
    def restore(cls, time: float, offset: float | None) -> "Clock":
        """The clock that showed `time` at `offset`."""
        clock = cls()
        clock.time, clock._offset = time, offset
        return clock

    def read(self, now: float) -> float:
        """Take a reading of the caller's clock; returns the time."""
        if not math.isfinite(now):
            return self.time
        if self._offset is None:
            self._offset = -now
        ahead = now + self._offset
        latest = self.time + _LONGEST_STEP_S
        if not self.time <= ahead <= latest:
            ahead = min(max(ahead, self.time), latest)
            self._offset = ahead - now
        self.time = ahead
        return ahead

    def reached(self, deadline: float) -> bool:
        """Whether it is `deadline`, to the microsecond: what `reading` said must do, though floats round."""
        return deadline <= self.time + _ROUNDING_S

    def reading(self, deadline: float) -> float:
        """Reading of the caller's clock at `deadline`; before any finite reading that is not known: at once."""
        return -math.inf if self._offset is None else deadline - self._offset


class Device:
    """One device's life: rows and the time in, due chunks out, each row in at most one of them.

    To be driven so: `feed` every message and `tick` at `next_due` at the latest; after each call treat what was
    returned, in order, then reserve for those `coming` that are new. A chunk that opened and closed within one call, or
    never opened, may first be seen when it is due: it is reserved then, before noise is bound to it.

    Memory: one (n, F) buffer; under ``on_clock`` also the closed chunks that wait: at most `jump_chunks`, those that a
    grace period holds, and those that fall due without a row until `idle_s` is over.

    Parameters
    ----------
    settings
        Those of the device.
    refused
        Last row that an earlier process may have released; it and everything before is refused for ever.

    Attributes
    ----------
    settings
        As given.
    counters
        What became of the rows, live; to be read only.
    """

    def __init__(self, settings: DeviceSettings, refused: RowMark | None = None) -> None:
        self.settings = settings
        self.counters = RowCounters()
        self._clock = Clock()
        self._closed: deque[WaitingChunk] = deque()
        self._session: SessionChunker | None = None
        self._ended = -1
        self._refused = RowMark(-1, -1)
        if refused is not None:
            chunk = refused.last_row // settings.n
            self._refuse(refused.session, (chunk + 1) * settings.n - 1)

    @property
    def session(self) -> int | None:
        """The tracker's session that is going on."""
        return None if self._session is None else self._session.number

    @property
    def open_chunk(self) -> RowSpan | None:
        """The chunk that has rows and is not closed."""
        return None if self._session is None else self._session.open_chunk

    @property
    def coming(self) -> list[RowSpan]:
        """Chunks sure to fall due, in order: closed ones that wait for the clock, then the open one."""
        spans = [waiting.chunk.span for waiting in self._closed]
        return spans if self.open_chunk is None else [*spans, self.open_chunk]

    def snapshot(self) -> bytes:
        """All of its state; raw rows are in it."""
        return encode(
            DeviceState(
                version=VERSION,
                time=self._clock.time,
                offset=self._clock.offset,
                session=None if self._session is None else self._session.state(),
                closed=[chunk_state(waiting.chunk, waiting.at) for waiting in self._closed],
                ended=self._ended,
                refused=(self._refused.session, self._refused.last_row),
                counters=list(dataclasses.astuple(self.counters)),
            )
        )

    def border(self, pending: DueChunk | None = None) -> bytes:
        """The state before the first chunk that is not settled, without a row, for `restore`.

        Fed again with the messages from the one on that opened that chunk, each at the time at which it came, it gives
        the same chunks: its clock is that of before that message.

        Parameters
        ----------
        pending
            The first chunk that fell due and is not settled; None: all of them are.
        """
        first = self._closed[0].chunk if pending is None and self._closed else pending
        time, ended, refused = self._clock.time, self._ended, self._refused
        session = None if self._session is None else self._session.border()
        if first is not None:
            session = border_of(first, self.settings, time)
            ended = min(ended, first.span.session - 1)
            refused = min(refused, RowMark(first.span.session, first.span.first_row - 1))
        if session is not None:  # rows come a grace early at most, on the schedule of their session
            time = min(time, session.due - 2 * self.settings.chunk_s - self.settings.grace_s)
        return encode(
            DeviceState(
                version=VERSION,
                time=time,
                offset=self._clock.offset,
                session=session,
                closed=[],
                ended=ended,
                refused=(refused.session, refused.last_row),
                counters=list(dataclasses.astuple(RowCounters())),
            )
        )

    @classmethod
    def restore(cls, settings: DeviceSettings, data: bytes) -> "Device":
        """The device whose `snapshot` it was: fed with the same, it gives the same.

        Raises
        ------
        ValueError
            It is no snapshot, or one of a stream of another size.
        """
        state, device = decode(data, DeviceState), cls(settings)
        device.counters = RowCounters(*state.counters)
        device._clock = Clock.restore(state.time, state.offset)
        device._closed.extend(WaitingChunk(chunk.at, chunk_of(chunk, settings)) for chunk in state.closed)
        if state.session is not None:
            device._session = SessionChunker.restore(settings, state.session, device.counters, device._closed)
        device._ended, device._refused = state.ended, RowMark(*state.refused)
        return device

    def has_passed(self, now: float) -> bool:
        """Whether `now` lies before the time that it has."""
        clock = self._clock
        return clock.offset is not None and now + clock.offset < clock.time

    def feed(self, rows: RawRows, now: float) -> list[DueChunk]:
        """Take a message that arrived at `now`.

        Parameters
        ----------
        rows
            (m, F), m >= 0; copied. An empty message that does not end a session does nothing.
        now
            Seconds of any clock; a reading that is not finite or goes backwards is no progress.

        Returns
        -------
        list
            Chunks that fall due, in order; none under ``on_clock``, where `tick` has them.

        Raises
        ------
        PayloadError
            ``shape``: not F values a row; nothing has changed.
        """
        if rows.rows.ndim != 2 or rows.rows.shape[1] != self.settings.features:
            raise PayloadError("shape")
        time = self._clock.read(now)
        self._pass_time()  # before the rows: whether a row is late follows from when it came, not from when `tick` was
        self._put(rows, time)
        if rows.end:
            self._end(rows.session)
        return self._drain() if self.settings.release == "on_row" else []

    def tick(self, now: float) -> list[DueChunk]:
        """Chunks that have fallen due by `now`, in order."""
        self._clock.read(now)
        self._pass_time()
        if self.settings.release == "on_row":
            return self._drain()
        due = []
        while self._closed and self._clock.reached(self._closed[0].at):
            due.append(self._closed.popleft().chunk)
        return due

    def next_due(self) -> float | None:
        """When `tick` has something to do if no row comes, on the caller's clock; None: nothing is awaited."""
        at = self._closed[0].at if self._closed else math.inf
        if self._session is not None:
            at = min(at, self._session.closes_at, self._session.idle_at)
        elif not self._closed:
            return None
        return self._clock.reading(at)

    def close(self, now: float) -> list[DueChunk]:
        """End the session, as at the end of the process; every chunk that still waits, at once, in order."""
        self._clock.read(now)
        self._pass_time()
        self._stop()
        return self._drain()

    def _put(self, message: RawRows, time: float) -> None:
        seq, rows, t, counters = message.seq, message.rows, message.t, self.counters
        counters.rows += len(rows)
        if self._is_over(message.session):
            counters.stale_session += len(rows)
            return
        current = self._session
        if current is not None and current.number == message.session and current.wearer != message.wearer:
            counters.wearer += len(rows)
            return
        while True:
            refused = self._count_refused(message.session, seq, len(rows))
            counters.refused += refused
            seq, rows, t = seq + refused, rows[refused:], None if t is None else t[refused:]
            if not len(rows):
                return
            if self._session is None or self._session.number != message.session:
                self._end(message.session - 1)
                self._session = SessionChunker(
                    self.settings, message.session, seq, counters, self._closed, wearer=message.wearer
                )
            left = self._session.take(seq, rows, time, t)
            if not left:
                return
            lost = 1 if self._session.has_room(time) else left  # where the clock forbids one more chunk, all are lost
            counters.jump += lost
            self._stop()  # which moves the mark; what is left then begins the session again
            done = len(rows) - left + lost
            seq, rows, t = seq + done, rows[done:], None if t is None else t[done:]

    def _count_refused(self, session: int, seq: int, rows: int) -> int:
        """How many of so many `rows` of `session`, from number `seq` on, lie at or before the mark."""
        if session != self._refused.session:
            return rows if session < self._refused.session else 0
        return min(max(self._refused.last_row + 1 - seq, 0), rows)

    def _is_over(self, session: int) -> bool:
        return session <= self._ended

    def _end(self, session: int) -> None:
        """End `session` and those before it for good."""
        if not self._is_over(session):
            self._stop()
            self._ended = session

    def _stop(self) -> None:
        """Stop the current session, if there is one; what lies after its last chunk may begin it again."""
        if self._session is not None:
            self._session.end()
            if self._session.last_row >= 0:
                self._refuse(self._session.number, self._session.last_row)
            self._session = None

    def _refuse(self, session: int, last_row: int) -> None:
        """Let the session that ended with `last_row` begin again `apart` rows after it, and no earlier."""
        self._refused = max(self._refused, RowMark(session, min(last_row + self.settings.apart, MAX_U64)))

    def _pass_time(self) -> None:
        """Close what the clock closes: each chunk at its due time plus grace, the session when it is idle."""
        while self._session is not None:
            closes_at, idle_at = self._session.closes_at, self._session.idle_at
            if closes_at <= idle_at and self._clock.reached(closes_at):
                self._session.close_current()
            elif self._clock.reached(idle_at):
                self._stop()
            else:
                return

    def _drain(self) -> list[DueChunk]:
        due = [waiting.chunk for waiting in self._closed]
        self._closed.clear()
        return due
