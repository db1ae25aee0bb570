"""One stream of one device, carried out with a mechanism: rows in, requests and payloads out.

What `ReleaseOrder` says is done here: the mechanism's session is kept, noise is bound (inside the mechanism) to a chunk
whose reservation is durable, and the released values become the bytes that are published, once.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from eyestream.core.charge import charge_of, charges_of
from eyestream.core.chunking.chunks import DueChunk, RowSpan, decode, encode
from eyestream.core.chunking.session import RowCounters
from eyestream.core.chunking.settings import DeviceSettings
from eyestream.core.mechanism import Mechanism
from eyestream.core.release.order import Drop, DropReason, Effect, Release, ReleaseOrder, Reserve, Withhold
from eyestream.core.reservation import Granted, Obstacle, Request, RowMark, Withheld, refuse_above
from eyestream.core.session import Session
from eyestream.core.wearers import MOST_WEARERS
from eyestream.streams import StreamKey
from eyestream.wire.raw import RawRows
from eyestream.wire.release import PrivateChunk, encode_private

Condition = Literal["ready", "mechanism"] | Obstacle
"""Fate of the last due chunk: it was released, its mechanism failed, or the obstacle that withheld it.

Applications read it. A session that begins does not change it: one that releases nothing shows nowhere.
"""


@dataclass(slots=True)
class ChunkCounters:
    """Chunks by what became of them; nothing here depends on a value.

    At any moment ``due == released + sum(withheld) + sum(dropped) + those that wait for the ledger``.
    """

    due: int = 0
    released: int = 0
    withheld: Counter[str] = field(default_factory=Counter)
    """Chunks that the ledger did not allow, by obstacle; ``baseline``: that made the baseline of their session."""
    dropped: Counter[str] = field(default_factory=Counter)
    """Chunks lost to a fault: ``mechanism``, ``ledger``; to an end before a reservation: ``stopped``; or ``paused``,
    ``switched``: somebody else put the device on."""

    def add(self, other: "ChunkCounters") -> None:
        """Count those of `other` too."""
        self.due += other.due
        self.released += other.released
        self.withheld.update(other.withheld)
        self.dropped.update(other.dropped)


class Settled(msgspec.Struct, frozen=True):
    """A chunk that will never be treated again, and the bytes that are published of it, if any."""

    span: RowSpan
    payload: bytes | None = None


@dataclass(slots=True)
class Outcome:
    """Requests, chunks and faults that one input has brought about."""

    requests: list[Request] = field(default_factory=list)
    """To be reserved, in order; the answers go to `StreamRelease.answer`."""
    settled: list[Settled] = field(default_factory=list)
    """Chunks that were released, withheld or lost, in order."""
    fault: str | None = None
    """The type of what a mechanism raised."""
    rows: list[NDArray[np.float64]] = field(default_factory=list, repr=False)
    """(F, n) of each chunk that the mechanism was given, raw: for a look after the payloads have left."""

    @property
    def payloads(self) -> list[bytes]:
        """To be published, in order."""
        return [settled.payload for settled in self.settled if settled.payload is not None]


class _StreamState(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    order: bytes
    private_session: int
    session: bytes | None
    level: int = 0


class StreamRelease:
    """One stream of one device.

    Not for two threads at once.

    Parameters
    ----------
    settings
        Those of the stream on this device.
    mechanism
        Releases its chunks.
    new_session
        Gives a random u64 for each session that applications see.
    refused
        Last row that an earlier life may have released, from the ledger.
    levels
        Most levels of a lifetime that fades: the ledger says with each grant on which one its chunk is.

    Attributes
    ----------
    counters : chunks by what became of them.
    condition : what became of the last due chunk.
    level, epsilon : of the lifetime, on which the last release was, and of a chunk there.
    """

    def __init__(
        self,
        settings: DeviceSettings,
        mechanism: Mechanism,
        new_session: Callable[[], int],
        refused: RowMark | None = None,
        *,
        levels: int = 1,
    ) -> None:
        self.settings = settings
        self.counters = ChunkCounters()
        self.condition: Condition = "ready"
        self.level, self.epsilon = 0, mechanism.epsilon
        self._mechanism, self._level = mechanism, 0
        self._new_session = new_session
        self._cost = charge_of(mechanism)
        self._charges = charges_of(mechanism, levels)
        self._order = ReleaseOrder(
            settings, self._charges, refused, baseline=mechanism.baseline_chunks, sessions=mechanism.sessions
        )
        self._session: Session | None = None
        self._private_session = 0
        self._whose = 0  # the session, where histories are kept
        self._last: dict[int, Session] = {}  # of each wearer, where the next session takes its history off; raw

    @property
    def key(self) -> StreamKey:
        """Device and stream."""
        return self._order.key

    @property
    def rows(self) -> RowCounters:
        """Counters of the rows; live, to be read only."""
        return self._order.rows

    @property
    def session(self) -> int | None:
        """The tracker's session that is going on."""
        return self._order.session

    def next_due(self) -> float | None:
        """When `tick` has something to do if no row comes; None: nothing is awaited."""
        return self._order.next_due()

    def has_passed(self, now: float) -> bool:
        """Whether `now` lies before the time that the stream has, as after `restore`."""
        return self._order.has_passed(now)

    def feed(self, rows: RawRows, now: float) -> Outcome:
        """Take a message that arrived at `now`; raises PayloadError for another shape."""
        return self._carry_out(self._order.feed(rows, now))

    def tick(self, now: float) -> Outcome:
        """Let the clock close what is due by `now`."""
        return self._carry_out(self._order.tick(now))

    def answer(self, answers: Iterable[Granted | Withheld]) -> Outcome:
        """Take the ledger's answers to requests of this stream."""
        return self._carry_out(self._order.answer(answers))

    def fail(self) -> Outcome:
        """The ledger cannot be written: from now on nothing is released any more."""
        return self._carry_out(self._order.fail())

    def forget(self, wearer: int | None = None) -> None:
        """Overwrite what earlier sessions told of `wearer`, None: of all: they begin a new pseudonym each."""
        self._order.forget(wearer)
        for one in list(self._last) if wearer is None else [wearer] * (wearer in self._last):
            self._last.pop(one).erase()
        if self._mechanism.sessions and wearer in (None, self._whose):
            self._session = self._mechanism.session_after(None)  # of the rest of this session nothing is released

    def close(self, now: float) -> Outcome:
        """End the session: what is reserved is released, the rest is dropped."""
        return self._carry_out(self._order.close(now))

    def pause(self, now: float, reason: DropReason = "paused") -> Outcome:
        """End the session for `reason`, and lose all of it that is not released."""
        return self._carry_out(self._order.pause(now, reason))

    def snapshot(self) -> bytes:
        """The whole state but the counters of chunks; raw rows are in it: keep it as raw rows are kept."""
        session = None if self._session is None else self._session.snapshot()
        return encode(_StreamState(self._order.snapshot(), self._private_session, session, self._level))

    def border(self) -> bytes:
        """The state without any row, before the first chunk that is not settled (`ReleaseOrder.border`).

        Where the mechanism takes a baseline off each session, that is in it and raw: keep it as raw rows are kept.
        """
        session = None if self._session is None else self._session.snapshot()
        return encode(_StreamState(self._order.border(), self._private_session, session, self._level))

    def restore(self, data: bytes) -> Outcome:
        """Take the state over whose `snapshot` or `border` it was, and ask the ledger again about what it had reserved.

        It does not know what was released after it was taken. A baseline that it still begins or completes may so
        describe the same gaze as those releases: where the mechanism takes baselines, let the tracker begin a session.

        Raises
        ------
        ValueError
            It is no snapshot, or one of another stream or mechanism; nothing has changed.
        """
        state = decode(data, _StreamState)
        if not 0 <= state.level < len(self._charges):
            raise ValueError("expected a snapshot of a stream with as many levels")
        order, effects = ReleaseOrder.restored(
            self.settings,
            self._charges,
            state.order,
            baseline=self._mechanism.baseline_chunks,
            sessions=self._mechanism.sessions,
        )
        mechanism = self._mechanism.faded(state.level)
        self._session = None if state.session is None else mechanism.session(state.session)
        self._order, self._private_session, self._level = order, state.private_session, state.level
        self._cost = charge_of(mechanism)
        return self._carry_out(effects)

    def _carry_out(self, effects: Iterable[Effect]) -> Outcome:
        outcome, counters = Outcome(), self.counters
        counters.due = self._order.due_count
        for effect in effects:
            match effect:
                case Reserve(request):
                    outcome.requests.append(request)
                case Release(chunk, granted):
                    outcome.settled.append(Settled(chunk.span, self._release(chunk, granted, outcome)))
                case Withhold(span, obstacle):
                    self._begin_if_first(span)
                    counters.withheld[obstacle] += 1
                    outcome.settled.append(Settled(span))
                    if obstacle != "rows":  # a chunk of an earlier life says nothing of this one
                        self.condition = obstacle
                case Drop(span, reason):
                    self._begin_if_first(span)
                    counters.dropped[reason] += 1
                    outcome.settled.append(Settled(span))
        return outcome

    def _begin_if_first(self, span: RowSpan) -> None:
        """A chunk of index 0 begins another session for those who listen, released or not."""
        if span.index == 0:
            self._session = None
            if self._mechanism.sessions:  # it counts for its pseudonym, whatever becomes of its chunks
                self._session = self._open(span.wearer)

    def _open(self, wearer: int) -> Session:
        """Another session."""
        self._private_session = self._new_session()
        self._level, self._cost = 0, charge_of(self._mechanism)
        if not self._mechanism.sessions:
            return self._mechanism.session()
        return self._remembered(wearer, self._last.get(wearer))

    def _remembered(self, wearer: int, before: Session | None) -> Session:
        """The session after `before`, from which the wearer's next one goes on."""
        session, self._whose = self._mechanism.session_after(before), wearer
        if wearer in self._last or len(self._last) < MOST_WEARERS:
            self._last[wearer] = session
        return session

    def _release(self, chunk: DueChunk, granted: Granted, outcome: Outcome) -> bytes | None:
        """The bytes to publish; None: nothing leaves of the chunk."""
        self._begin_if_first(chunk.span)
        if self._session is None:
            self._session = self._open(chunk.span.wearer)
        if self._mechanism.sessions and granted.spent is None and not self._session.awaits_baseline:
            # It was asked for, without a charge, before histories were forgotten: it belongs to a new pseudonym now.
            self._session = self._remembered(chunk.span.wearer, None)
        outcome.rows.append(chunk.values)
        try:
            if self._session.awaits_baseline:
                self._session.anchor(chunk.values)
                self.counters.withheld["baseline"] += 1
                return None
            payload = self._payload(self._on_level(granted, self._session), chunk)
        except Exception as error:  # whatever it is, the chunk is lost and the process lives
            # Only the type is said: the text of an error may hold raw values. The charge stays, as noise may be drawn.
            self.counters.dropped["mechanism"] += 1
            self.condition = "mechanism"
            outcome.fault = type(error).__name__
            return None
        self.counters.released += 1
        self.condition = "ready"
        return payload

    def _on_level(self, granted: Granted, session: Session) -> Session:
        """The session under the mechanism of the level that was charged, and never one that costs more."""
        if granted.level != self._level:
            mechanism = self._mechanism.faded(granted.level)
            self._session = session = mechanism.continue_session(session)
            self._level, self._cost = granted.level, charge_of(mechanism)
        refuse_above(granted, self._cost)
        self.level, self.epsilon = self._level, self._mechanism.faded(self._level).epsilon
        return session

    def _payload(self, session: Session, chunk: DueChunk) -> bytes:
        values = session.release(chunk.values).astype(np.float32)
        dt, columns = self.settings.chunk_s / values.shape[1], values.shape[1] // self.settings.n
        before = max(0, columns - 1) * dt  # where a row becomes several columns, they end with the row
        return encode_private(
            PrivateChunk(
                session=self._private_session,
                chunk=chunk.span.index,
                t0=chunk.t0,
                dt=dt,
                values=values,
                epsilon=self.epsilon,
                delta=self._mechanism.delta,
                at=None if chunk.at is None else chunk.at - before,
            )
        )
