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

from eyestream.chunking.chunks import DueChunk, RowSpan
from eyestream.chunking.session import Counters as RowCounters
from eyestream.chunking.settings import DeviceSettings
from eyestream.chunking.state import decode, encode
from eyestream.privacy.charge import Charge, levels_of
from eyestream.privacy.reservation import Granted, Obstacle, Request, RowMark, Withheld, refuse_above
from eyestream.release.effects import Drop, Effect, Release, Reserve, Withhold
from eyestream.release.order import ReleaseOrder
from eyestream.release.ports import Mechanism, Session
from eyestream.streams import StreamKey
from eyestream.wire.messages import PrivateChunk, RawRows, encode_private

__all__ = ["ChunkCounters", "Condition", "Outcome", "Settled", "StreamRelease"]

Condition = Literal["ready", "mechanism"] | Obstacle
"""What became of the last due chunk: it was released, its mechanism failed, or what withheld it."""


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
    """Chunks lost to a fault: ``mechanism``, ``ledger``; or not reserved at the end: ``stopped``."""


@dataclass(frozen=True, slots=True)
class Settled:
    """A chunk that will never be treated again, and the bytes that are published of it, if any."""

    span: RowSpan
    payload: bytes | None = None


@dataclass(slots=True)
class Outcome:
    """What one input has brought about."""

    requests: list[Request] = field(default_factory=list)
    """To be reserved, in order; the answers go to `StreamRelease.answer`."""
    settled: list[Settled] = field(default_factory=list)
    """Chunks that were released, withheld or lost, in order."""
    fault: str | None = None
    """The type of what a mechanism raised."""

    @property
    def payloads(self) -> list[bytes]:
        """To be published, in order."""
        return [settled.payload for settled in self.settled if settled.payload is not None]


class _State(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
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
        Of the stream on this device.
    mechanism
        Releases its chunks.
    new_session
        Gives a random u64 for each session that applications see.
    refused
        Last row that an earlier life may have released, from the ledger.
    levels
        Of a lifetime that fades, at most: the ledger says with each grant on which one its chunk is.

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
        self._cost = Charge.of(mechanism.epsilon, mechanism.delta)
        self._charges = levels_of(mechanism.epsilon, mechanism.delta, levels)
        self._order = ReleaseOrder(settings, self._charges, refused, baseline=mechanism.baseline_chunks)
        self._session: Session | None = None
        self._private_session = 0

    @property
    def key(self) -> StreamKey:
        """Whose."""
        return self._order.key

    @property
    def rows(self) -> RowCounters:
        """What became of the rows; live, to be read only."""
        return self._order.rows

    def next_due(self) -> float | None:
        """When `tick` has something to do if no row comes; None: nothing is awaited."""
        return self._order.next_due()

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

    def close(self, now: float) -> Outcome:
        """End the session: what is reserved is released, the rest is dropped."""
        return self._carry_out(self._order.close(now))

    def snapshot(self) -> bytes:
        """The whole state but the counters of chunks; raw rows are in it: keep it as raw rows are kept."""
        session = None if self._session is None else self._session.snapshot()
        return encode(_State(self._order.snapshot(), self._private_session, session, self._level))

    def border(self) -> bytes:
        """The state without any row, before the first chunk that is not settled (`ReleaseOrder.border`).

        Where the mechanism takes a baseline off each session, that is in it and raw: keep it as raw rows are kept.
        """
        session = None if self._session is None else self._session.snapshot()
        return encode(_State(self._order.border(), self._private_session, session, self._level))

    def restore(self, data: bytes) -> Outcome:
        """Take the state over whose `snapshot` or `border` it was, and ask the ledger again about what it had reserved.

        It does not know what was released after it was taken. A baseline that it still begins or completes may so
        describe the same gaze as those releases: where the mechanism takes baselines, let the tracker begin a session.

        Raises
        ------
        ValueError
            It is no snapshot, or one of another stream or mechanism; nothing has changed.
        """
        state = decode(data, _State)
        if not 0 <= state.level < len(self._charges):
            raise ValueError("expected a snapshot of a stream with as many levels")
        order, effects = ReleaseOrder.restored(
            self.settings, self._charges, state.order, baseline=self._mechanism.baseline_chunks
        )
        mechanism = self._mechanism.faded(state.level)
        self._session = None if state.session is None else mechanism.session(state.session)
        self._order, self._private_session, self._level = order, state.private_session, state.level
        self._cost = Charge.of(mechanism.epsilon, mechanism.delta)
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
                    self._begin_if_first(span.index)
                    counters.withheld[obstacle] += 1
                    outcome.settled.append(Settled(span))
                    if obstacle != "rows":  # a chunk of an earlier life says nothing of this one
                        self.condition = obstacle
                case Drop(span, reason):
                    self._begin_if_first(span.index)
                    counters.dropped[reason] += 1
                    outcome.settled.append(Settled(span))
        return outcome

    def _begin_if_first(self, index: int) -> None:
        """A chunk of index 0 begins another session for those who listen, released or not."""
        if index == 0:
            self._session = None

    def _release(self, chunk: DueChunk, granted: Granted, outcome: Outcome) -> bytes | None:
        """The bytes to publish; None: nothing leaves of the chunk."""
        self._begin_if_first(chunk.index)
        if self._session is None:
            self._private_session = self._new_session()
            self._session = self._mechanism.session()
            self._level, self._cost = 0, Charge.of(self._mechanism.epsilon, self._mechanism.delta)
        try:
            if self._session.awaits_baseline:
                self._session.anchor(chunk.values)
                self.counters.withheld["baseline"] += 1
                return None
            payload = self._payload(self._on_level(granted, self._session), chunk)
        except Exception as error:  # whatever it is, the chunk is lost and the process lives; only the type is said
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
            self._level, self._cost = granted.level, Charge.of(mechanism.epsilon, mechanism.delta)
        refuse_above(granted, self._cost)
        self.level, self.epsilon = self._level, self._mechanism.faded(self._level).epsilon
        return session

    def _payload(self, session: Session, chunk: DueChunk) -> bytes:
        values = session.release(chunk.values).astype(np.float32)
        return encode_private(
            PrivateChunk(
                session=self._private_session,
                chunk=chunk.index,
                t0=chunk.t0,
                dt=self.settings.chunk_s / values.shape[1],
                values=values,
                epsilon=self.epsilon,
                delta=self._mechanism.delta,
                at=chunk.at,
            )
        )
