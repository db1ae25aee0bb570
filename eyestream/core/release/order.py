"""The order of effects for one stream of one device, as a state machine.

**Theory of operation.** Rows and the time go in. `Reserve` comes out for every chunk as soon as it is sure to fall due.
The ledger's answers go in. For every chunk that is due, one of `Release`, `Withhold` or `Drop` comes out, in the order
of the chunks. So nothing is released before its reservation is durable, in whatever order rows, time and answers
arrive, and nothing waits for the ledger but the chunk that it is asked about. The states of one chunk:

============ ======================================= ==================================================================
state        how it comes here                       what comes out, and where it goes
============ ======================================= ==================================================================
open         a row of it was taken                   `Reserve`, at once: asked. A chunk that closes within one call, or
                                                     that no row came of, is first seen due: `Reserve` comes then
asked        `Reserve` came out, not due yet         nothing: answered by `answer`, or due when the device closes it
answered     the ledger's answer came first          nothing: settled as soon as it is due
due          the device has closed it, and the       nothing: settled by `answer`, unless a chunk before it waits
             answer has not come
settled      due and answered, and so are all        `Release` where it was granted, `Withhold` where it was not
             before it
             due, and the ledger has failed          `Drop` (ledger)
             due without an answer at `close`        `Drop` (stopped)
             not settled at `pause`, granted or not  `Drop` (paused)
============ ======================================= ==================================================================

A settled chunk never comes back: nothing up to `_asked` is asked for again, and the ledger refuses its rows for ever.

**Snapshots.** `snapshot` gives the whole state as bytes at any moment between two calls; raw rows are in it. A restored
state goes on as the old one would have, but for one thing: it cannot know what was released after it was taken. So
every reservation that is in it counts as not given, and is asked for again by the effects that `restored` gives: the
ledger says which of them may still be used. Bytes that have left come back from an outbox, never from a second draw.

**Borders.** `border` gives the state without any raw row, for a driver whose rows come again from a log: whoever
restores it feeds every message from the one on that opened the first chunk that is not settled.
"""

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from eyestream.core.charge import Charge
from eyestream.core.chunking.chunks import VERSION, ChunkState, DueChunk, RowSpan, chunk_of, chunk_state, decode, encode
from eyestream.core.chunking.device import Device
from eyestream.core.chunking.session import RowCounters
from eyestream.core.chunking.settings import DeviceSettings
from eyestream.core.reservation import Granted, Obstacle, Request, RowMark, Withheld
from eyestream.core.wearers import MOST_WEARERS
from eyestream.wire.raw import RawRows

DropReason = Literal["ledger", "stopped", "paused", "switched"]
"""``ledger``: it cannot be written any more; ``stopped``: the end came before the ledger was asked; ``paused``: the
wearer said no before it was released; ``switched``: somebody else put the device on."""


class Reserve(msgspec.Struct, frozen=True):
    """Ask the ledger for `request`; asking again for what was asked before is safe."""

    request: Request


class Release(msgspec.Struct, frozen=True, eq=False):
    """Release `chunk` now, as the ledger has granted; of one that is asked for as unreleased, nothing leaves."""

    chunk: DueChunk
    granted: Granted


class Withhold(msgspec.Struct, frozen=True):
    """The chunk of `span` is due and must not be released: `obstacle` says why.

    With the obstacle ``rows`` it was reserved before, by an earlier life of this stream: if an outbox has its bytes,
    those may be sent again.
    """

    span: RowSpan
    obstacle: Obstacle


class Drop(msgspec.Struct, frozen=True):
    """The chunk of `span` is due and lost."""

    span: RowSpan
    reason: DropReason


Effect = Reserve | Release | Withhold | Drop


Prices = Charge | Sequence[Charge]


class _OrderState(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    version: int
    device: bytes
    due: list[ChunkState]
    due_count: int
    failed: bool


class ReleaseOrder:
    """One stream of one device: what to reserve, and when to release.

    Not for two threads at once.

    Parameters
    ----------
    settings
        Those of the stream on this device.
    charge
        What the release of one chunk costs; or what it costs on each level of a lifetime that fades, one at least.
    refused
        Last row that an earlier life may have released, from the ledger; it and everything before is refused for ever.
    baseline
        Chunks at the beginning of each session of which nothing is released: they are asked for without a charge.
    every
        After the baseline, one chunk in `every` is released, the first one included; the others are asked for likewise.
    sessions
        How many sessions a pseudonym has. Nothing is released of the first session of each wearer, of the one after so
        many more, and so on. 0: there are no pseudonyms.

    Attributes
    ----------
    due_count : chunks that fell due so far.
    """

    def __init__(
        self,
        settings: DeviceSettings,
        charge: Prices,
        refused: RowMark | None = None,
        *,
        baseline: int = 0,
        every: int = 1,
        sessions: int = 0,
    ) -> None:
        self.settings = settings
        self.key = settings.key
        self.due_count = 0
        self._charge, *later = (charge,) if isinstance(charge, Charge) else charge
        self._later, self._baseline, self._every = tuple(later), baseline, every
        self._device = Device(settings, refused)
        self._due: deque[DueChunk] = deque()
        self._answers: dict[RowSpan, Granted | Withheld] = {}
        self._asked: RowSpan | None = None
        self._failed = False
        self._sessions = sessions
        self._passed: dict[int, int] = {}
        self._withheld = sessions > 0

    @property
    def rows(self) -> RowCounters:
        """Counters of the rows; live, to be read only."""
        return self._device.counters

    @property
    def session(self) -> int | None:
        """The tracker's session that is going on."""
        return self._device.session

    @property
    def waiting(self) -> int:
        """Chunks that are due and wait for an answer of the ledger."""
        return len(self._due)

    def next_due(self) -> float | None:
        """When `tick` has something to do if no row comes, on the caller's clock; None: nothing is awaited."""
        return self._device.next_due()

    def has_passed(self, now: float) -> bool:
        """See `Device.has_passed`."""
        return self._device.has_passed(now)

    def feed(self, rows: RawRows, now: float) -> list[Effect]:
        """Take a message that arrived at `now`; raises PayloadError as `Device.feed` does."""
        return self._collect(self._device.feed(rows, now))

    def tick(self, now: float) -> list[Effect]:
        """Let the clock close what is due by `now`."""
        return self._collect(self._device.tick(now))

    def answer(self, answers: Iterable[Granted | Withheld]) -> list[Effect]:
        """Take the ledger's answers to requests of this stream."""
        for answer in answers:
            span = self._span_of(answer.request)
            if span is not None:  # else `fail` or `close` settled it while the ledger was asked
                self._answers[span] = answer
        return self._settle()

    def fail(self) -> list[Effect]:
        """The ledger cannot be written: from now on nothing is released any more."""
        self._failed = True
        self._answers.clear()
        return self._settle()

    def forget(self, wearer: int | None = None) -> None:
        """Begin a new pseudonym of `wearer`, None: of all. Of the rest of their session nothing is released."""
        if wearer is None:
            self._passed.clear()
        else:
            self._passed.pop(wearer, None)
        if wearer is None or self._asked is None or self._asked.wearer == wearer:
            self._withheld = self._sessions > 0

    def close(self, now: float) -> list[Effect]:
        """End the session, as at the end of the process: what is reserved is released, the rest is dropped."""
        self._add(self._device.close(now))
        effects = self._settle()  # and no `_ask`: the end does not wait for the disk
        effects += [Drop(chunk.span, "stopped") for chunk in self._due]
        self._due.clear()
        return effects

    def pause(self, now: float, reason: DropReason = "paused") -> list[Effect]:
        """End the session for `reason`, and lose all of it that is not released: granted, asked for, or neither.

        What is granted stays spent. An answer that comes later is of no chunk any more. Rows of the same session begin
        it again after the mark, as after a restart, so nothing that came before is in what comes then.
        """
        self._add(self._device.close(now))
        self._answers.clear()
        effects: list[Effect] = [Drop(chunk.span, reason) for chunk in self._due]
        self._due.clear()
        return effects

    def snapshot(self) -> bytes:
        """The whole state; raw rows are in it: keep it as raw rows are kept."""
        due = [chunk_state(chunk) for chunk in self._due]
        return encode(_OrderState(VERSION, self._device.snapshot(), due, self.due_count, self._failed))

    def border(self) -> bytes:
        """The state before the first chunk that is not settled, for `restored`; no row is in it (`Device.border`)."""
        device = self._device.border(self._due[0] if self._due else None)
        return encode(_OrderState(VERSION, device, [], self.due_count - len(self._due), self._failed))

    @classmethod
    def restored(
        cls,
        settings: DeviceSettings,
        charge: Prices,
        data: bytes,
        *,
        baseline: int = 0,
        every: int = 1,
        sessions: int = 0,
    ) -> "tuple[ReleaseOrder, list[Effect]]":
        """The state whose `snapshot` it was, and what it asks the ledger again; what is withheld as it was.

        Pseudonyms are not in it: every wearer has a new one.

        Raises
        ------
        ValueError
            It is no snapshot, or one of another stream.
        """
        state = decode(data, _OrderState)
        order = cls(settings, charge, baseline=baseline, every=every, sessions=sessions)
        order._device = Device.restore(settings, state.device)
        order._due.extend(chunk_of(chunk, settings) for chunk in state.due)
        order.due_count, order._failed = state.due_count, state.failed
        # No answer and no `_asked` is taken over: whether a reservation still holds, only the ledger knows.
        return order, [*order._settle(), *order._ask()]

    def _collect(self, chunks: Sequence[DueChunk]) -> list[Effect]:
        """Releases first, because somebody waits for them; then what is to be reserved."""
        self._add(chunks)
        return [*self._settle(), *self._ask()]

    def _add(self, chunks: Sequence[DueChunk]) -> None:
        self._due.extend(chunks)
        self.due_count += len(chunks)

    def _settle(self) -> list[Effect]:
        """One effect for each due chunk, in order, up to the first that the ledger has not answered for."""
        effects: list[Effect] = []
        while self._due:
            span = self._due[0].span
            if self._failed:
                effects.append(Drop(span, "ledger"))
            elif span not in self._answers:
                break  # and so do all after it: applications see chunks in their order
            elif isinstance(answer := self._answers.pop(span), Withheld):
                effects.append(Withhold(span, answer.obstacle))
            else:
                effects.append(Release(self._due[0], answer))
            self._due.popleft()
        return effects

    def _ask(self) -> list[Effect]:
        """Requests for every chunk that is due or coming and was not asked for; they come in the order of the rows."""
        newest = self._device.open_chunk  # the last of those to come; most rows open nothing, and end here
        if self._failed or (newest is not None and newest == self._asked):
            return []
        effects: list[Effect] = []
        for span in [*(chunk.span for chunk in self._due), *self._device.coming]:
            if self._asked is None or _place(self._asked) < _place(span):
                self._asked = span
                if span.index == 0:  # here, where each chunk comes by once: it counts the session
                    self._withheld = self._first_of_pseudonym(span.wearer)
                effects.append(Reserve(self._request(span)))
        return effects

    def _first_of_pseudonym(self, wearer: int) -> bool:
        """Count a session of `wearer`; whether it is withheld."""
        if not self._sessions:
            return False
        if wearer not in self._passed and len(self._passed) >= MOST_WEARERS:
            return True  # who is not remembered is never released
        passed = self._passed.get(wearer, 0)
        self._passed[wearer] = (passed + 1) % self._sessions
        return passed == 0

    def _request(self, span: RowSpan) -> Request:
        return Request(
            key=self.key,
            session=span.session,
            first_row=span.first_row,
            last_row=span.last_row,
            chunk=self.settings.n,
            charge=self._charge,
            wearer=span.wearer,
            unreleased=self._withheld or span.index < self._baseline or (span.index - self._baseline) % self._every > 0,
            later=self._later,
        )

    def _span_of(self, request: Request) -> RowSpan | None:
        """The chunk that a request was made for; None: it is settled already."""
        session, first_row = request.session, request.first_row
        for span in [*(chunk.span for chunk in self._due), *self._device.coming]:
            if span.first_row == first_row and span.session == session:
                return span
        return None


def _place(span: RowSpan) -> tuple[int, int]:
    return span.session, span.first_row
