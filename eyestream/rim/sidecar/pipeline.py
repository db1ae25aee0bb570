"""From raw messages to released payloads, for all streams of one sidecar: everything but the links.

A thin driver of `eyestream.core.release`: it decodes, asks the ledger in a thread, and hands payloads on. The order of
effects is decided there, stream by stream; nothing waits for the disk but what is asked of it.
"""

import logging
import secrets
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from eyestream.core.chunking.session import RowCounters
from eyestream.core.chunking.settings import DeviceSettings
from eyestream.core.mechanism import Mechanism
from eyestream.core.meter import Odometer
from eyestream.core.release.stream import ChunkCounters, Condition, Outcome, StreamRelease
from eyestream.core.reservation import Granted, Request, Withheld
from eyestream.errors import LedgerError, PayloadError
from eyestream.rim.refusals import Refusals
from eyestream.rim.sidecar.boards import log_condition
from eyestream.rim.sidecar.moments import DISK_S, Timers
from eyestream.rim.sidecar.spending import Spending, SpendingLedger
from eyestream.streams import StreamKey
from eyestream.wire.messages import RawRows, decode_raw, rows_hash
from eyestream.wire.topics import private_topic, raw_topic

__all__ = ["Arrival", "Pipeline", "PipelineCounters", "RowArrival"]

_LOG = logging.getLogger("eyestream.core.release")


@dataclass(frozen=True, slots=True)
class Arrival:
    """A raw message and when it came, on the loop's clock; `rows` is what its tracker says of its rows, if it does."""

    topic: str
    payload: bytes
    at: float
    rows: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class RowArrival:
    """Rows of a source in this process, and when they came."""

    key: StreamKey
    rows: RawRows
    at: float


@dataclass(slots=True)
class PipelineCounters(ChunkCounters):
    """Messages and chunks of all streams by what became of them; nothing here depends on a value.

    At any quiet moment ``due == released + sum(withheld) + sum(dropped)``.
    """

    taken: int = 0
    """Messages whose rows went to their stream."""
    rejected: Counter[str] = field(default_factory=Counter)
    """Messages refused, by reason."""


@dataclass(slots=True, eq=False)
class _Served:
    """A stream, where its chunks go, and what was last said of it."""

    stream: StreamRelease
    topic: str
    rows: frozenset[str]
    """`rows_hash` of its rows, with their units and without."""
    by_clock: bool
    """Whether its chunks leave at moments of the clock, whatever completed them."""
    disk_s: float
    """What is given to the ledger after a chunk is due: where one row is a chunk, it is reserved only then."""
    due: float | None = None
    """When the clock made the last rows, or closed the last chunk."""
    condition: Condition = "ready"
    level: int = 0


class Pipeline:
    """All streams of one sidecar and their ledger.

    Parameters
    ----------
    streams
        Settings of every stream served, and the mechanism that releases its chunks.
    ledger
        Open, and ours alone.
    today
        Days since 1970, UTC.
    publish
        Is given the private topic and the payload of each released chunk.
    changed
        Called when the condition of a stream has changed.
    over
        Called when everything of a turn is said: what belongs beside it is said now, before any more rows are read.
    hold
        Is given what leaves by the clock: its stream, when the clock made it due (None: now), and what to call at its
        moment, which is followed by `over`. None: nothing is held.
    levels
        Levels of a lifetime that fades; 1: it does not.
    """

    def __init__(
        self,
        streams: Sequence[tuple[DeviceSettings, Mechanism]],
        ledger: SpendingLedger,
        *,
        today: Callable[[], int],
        publish: Callable[[str, bytes], None],
        changed: Callable[[], None],
        over: Callable[[], None] = lambda: None,
        hold: Callable[[StreamKey, float | None, Callable[[], None]], None] | None = None,
        levels: int = 1,
    ) -> None:
        self._ledger, self._levels = ledger, levels
        self._today = today
        self._publish = publish
        self._changed, self._over, self._hold = changed, over, hold
        self._served = {settings.key: self._serve(settings, mechanism) for settings, mechanism in streams}
        self._spending = Spending(ledger, {key: served.stream.counters for key, served in self._served.items()})
        self._by_topic = {raw_topic(*key): served for key, served in self._served.items()}
        self._timers: Timers[_Served] = Timers()
        self._requests: list[Request] = []
        self._messages = PipelineCounters()
        self._refusals = Refusals()
        self.look: Callable[[StreamKey, NDArray[np.float64]], None] = lambda key, values: None
        """Is given the raw rows (F, n) of each chunk, to look at them later: what it finds is for the log alone."""
        self.failed = False
        """The ledger could not be written: nothing is released any more."""
        self.disputed: Set[str] = frozenset()
        """Devices that another sidecar states: nothing more of them is reserved."""

    def _serve(self, settings: DeviceSettings, mechanism: Mechanism) -> _Served:
        refused = self._ledger.mark(settings.key)
        stream = StreamRelease(settings, mechanism, lambda: secrets.randbits(64), refused, levels=self._levels)
        rows = {rows_hash(settings.names, units, settings.rate_hz) for units in ((), settings.units)}
        disk_s = DISK_S if settings.n == 1 else 0.0
        return _Served(stream, private_topic(*settings.key), frozenset(rows), settings.release == "on_clock", disk_s)

    @property
    def keys(self) -> list[StreamKey]:
        """Every stream served."""
        return list(self._served)

    @property
    def counters(self) -> PipelineCounters:
        """Messages and chunks by what became of them; a copy."""
        total = PipelineCounters(taken=self._messages.taken, rejected=Counter(self._messages.rejected))
        for served in self._served.values():
            total.add(served.stream.counters)
        return total

    @property
    def settings(self) -> list[DeviceSettings]:
        """The settings of every stream served."""
        return [served.stream.settings for served in self._served.values()]

    def condition(self, key: StreamKey) -> Condition:
        """What became of the last due chunk that no other owner withheld; that there is another owner goes before."""
        return "owner" if key.device in self.disputed else self._served[key].condition

    def rows(self, key: StreamKey) -> RowCounters:
        """What became of the rows of one stream: live, to be read only."""
        return self._served[key].stream.rows

    def progress(self, key: StreamKey) -> tuple[int | None, int, int]:
        """The current session of a stream's tracker, the rows that came in, and the chunks that were released."""
        stream = self._served[key].stream
        return stream.session, stream.rows.rows, stream.counters.released

    def spent(self, device: str) -> Odometer | None:
        """What a device has spent by chunks of which something has become; None: nothing."""
        return self._spending.spent(device)

    def next_due(self) -> float | None:
        """When `run_turn` must be called if no message comes; None: nothing is awaited."""
        return self._timers.next()

    @property
    def waits(self) -> bool:
        """Whether something is to be reserved: `run_turn` does it."""
        return bool(self._requests)

    def reject(self, reason: str, topic: str, at: float) -> None:
        """Count a message that was refused, and say so to the operator."""
        self._messages.rejected[reason] += 1
        served = self._by_topic.get(topic)
        if served is not None:
            self._refusals.note(served.stream.settings.key, reason, at)

    def feed(self, arrival: Arrival | RowArrival) -> None:
        """Take one message: a chunk that it completes is released at once when it is reserved, else by `run_turn`."""
        if isinstance(arrival, RowArrival):
            served = self._served[arrival.key]
            self._messages.taken += 1
            due = arrival.rows.due
            served.by_clock |= due is not None
            self._note(served, served.stream.feed(arrival.rows, arrival.at), due)
        else:
            self._feed_message(arrival)

    def _feed_message(self, arrival: Arrival) -> None:
        served = self._by_topic.get(arrival.topic)
        if served is None:
            self.reject("topic", arrival.topic, arrival.at)
            return
        settings = served.stream.settings
        try:
            rows = decode_raw(arrival.payload, settings.features, settings.schema)
        except PayloadError as error:
            self.reject(error.reason, arrival.topic, arrival.at)
            return
        if arrival.rows is not None and arrival.rows not in served.rows:
            self.reject("rows", arrival.topic, arrival.at)
            return
        self._messages.taken += 1
        known = served.stream.rows
        stale, refused, others = known.stale_session, known.refused, known.wearer
        self._note(served, served.stream.feed(rows, arrival.at))
        if known.stale_session > stale:
            self._refusals.note(settings.key, "stale_session", arrival.at)
        elif known.wearer > others:
            self._refusals.note(settings.key, "wearer", arrival.at)
        elif known.refused > refused:
            self._refusals.note(settings.key, "mark", arrival.at)

    async def run_turn(self, arrivals: Iterable[Arrival | RowArrival], now: float) -> None:
        """Take messages in the order of their arrival, let the clock close what is due by `now`, then reserve.

        Not to be fed while this is under way: what falls due meanwhile would wait for the ledger without a bound.
        """
        for arrival in arrivals:
            self.feed(arrival)
        # The clock after the messages: all that came in by `now` is in its chunk before the clock closes it.
        for served in self._timers.due(now):
            awaited = served.stream.next_due()
            if awaited is not None and awaited <= now:
                self._note(served, served.stream.tick(now), awaited)
            else:
                self._timers.set(served, awaited)
        requests, self._requests = self._requests, []
        if requests and not self.failed:
            await self._reserve(requests)

    def forget(self) -> None:
        """Overwrite the histories of all wearers: everybody begins a new pseudonym."""
        for served in self._served.values():
            served.stream.forget()

    def close(self, now: float) -> None:
        """End every session: what is reserved is released, the rest is dropped."""
        for served in self._served.values():
            self._note(served, served.stream.close(now))

    async def _reserve(self, requests: list[Request]) -> None:
        refused = [Withheld(request, "owner") for request in requests if request.key.device in self.disputed]
        for key, own in _by_stream(refused):
            self._note(self._served[key], self._served[key].stream.answer(own))
        requests = [request for request in requests if request.key.device not in self.disputed]
        if not requests:
            return
        try:
            # Nothing is fed meanwhile (`Worker._feed_or_queue`), so the answers meet the state that asked for them.
            answers = await self._spending.reserve(requests, self._today())
        except LedgerError as error:
            _LOG.error("%s; no chunk is released any more: when that is mended, restart the sidecar", error)
            self.failed = True
            for served in self._served.values():
                self._note(served, served.stream.fail())
            self._changed()
            return
        for key, own in _by_stream(answers):
            self._note(self._served[key], self._served[key].stream.answer(own))

    def _note(self, served: _Served, outcome: Outcome, due: float | None = None) -> None:
        """Say what is to be said, first of all: somebody waits; then note what is asked, and when to look again."""
        served.due = served.due if due is None else due + served.disk_s
        if self._hold is None or not served.by_clock:
            self._say(served, outcome.payloads, served.stream.condition)
            self._over()
        elif outcome.settled:
            say = partial(self._say, served, outcome.payloads, served.stream.condition)
            self._hold(served.stream.key, served.due, say)  # of an answer of the ledger, by when it was asked
        for values in outcome.rows:
            self.look(served.stream.key, values)
        if served.level != served.stream.level:
            served.level = served.stream.level
            _LOG.warning(
                "%s: the lifetime fades: level %d, epsilon %g a chunk from now on",
                served.stream.key,
                served.level,
                served.stream.epsilon,
            )
        self._requests += outcome.requests
        self._timers.set(served, served.stream.next_due())
        if outcome.fault is not None:
            _LOG.error("a chunk is dropped: the mechanism failed with %s", outcome.fault)

    def _say(self, served: _Served, payloads: Sequence[bytes], condition: Condition) -> None:
        """Payloads, and what became of the last due chunk."""
        for payload in payloads:
            self._publish(served.topic, payload)
        if condition not in ("owner", served.condition):  # words of others could flip it with each chunk
            served.condition = condition
            log_condition(served.stream.key, condition)
            self._changed()


def _by_stream(answers: Iterable[Granted | Withheld]) -> Iterator[tuple[StreamKey, list[Granted | Withheld]]]:
    """The answers of each stream, in order."""
    own: dict[StreamKey, list[Granted | Withheld]] = {}
    for answer in answers:
        own.setdefault(answer.request.key, []).append(answer)
    yield from own.items()
