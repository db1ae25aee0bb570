"""From raw messages to released payloads, for all streams of one sidecar: everything but the links.

A thin driver of `eyestream.core.release`: it decodes, asks the ledger in a thread, and hands payloads on. The order of
effects is decided there, stream by stream; nothing waits for the disk but what is asked of it.
"""

import logging
import math
import secrets
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

import msgspec
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
from eyestream.wire.raw import RawRows, decode_raw, rows_hash
from eyestream.wire.topics import private_topic, raw_topic

_LOG = logging.getLogger("eyestream.core.release")


class Arrival(msgspec.Struct, frozen=True):
    """A raw message and when it came, on the loop's clock; `rows` is what its tracker says of its rows, if it does."""

    topic: str
    payload: bytes
    at: float
    rows: str | None = None


class RowArrival(msgspec.Struct, frozen=True, eq=False):
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
    """A stream, the topic of its chunks, and the condition that applications read last."""

    stream: StreamRelease
    topic: str
    rows: frozenset[str]
    """`rows_hash` of its rows, with their units and without."""
    by_clock: bool
    """Whether its chunks leave at moments of the clock, whatever completed them."""
    disk_s: float
    """Seconds for the ledger after a chunk is due: where one row is a chunk, it is reserved only then."""
    since: float = -math.inf
    """When somebody else put the device on, or a pause ended: gaze of before is in nothing that is taken."""
    why: Literal["switched", "paused"] = "switched"
    """Which of the two."""
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
        Called when all payloads of one input are published. What belongs beside them is published now, before any
        more rows are read.
    hold
        Is given what leaves by the clock: its stream, when the clock made it due (None: now), and the call that
        publishes it at its moment. `over` follows that call. None: nothing is held.
    levels
        Levels of a lifetime that fades; 1: it does not.
    number
        The number, for a device, of a wearer's handle; None: of the number in a message itself.

    Attributes
    ----------
    worn : by device, the number of the wearer whom the runtime has named; 0, or none: nobody.
    resumed : whether a pause ended in a life before, perhaps a moment before its end.
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
        number: Callable[[str, str], int] | None = None,
    ) -> None:
        self._ledger, self._levels, self._number = ledger, levels, number
        self.worn: dict[str, int] = {}
        self._between: dict[str, int] = {}  # devices that nobody wears yet, by the number of their last switch
        self._switches, self.resumed = 0, False
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
        self.paused = False
        """The wearer said no: nothing is taken, reserved or released until that is over."""
        self.disputed: Set[str] = frozenset()
        """Devices that another sidecar states: nothing more of them is reserved."""

    def _serve(self, settings: DeviceSettings, mechanism: Mechanism) -> _Served:
        refused = self._ledger.mark(settings.key)
        # Sessions have random numbers outside: numbers that count would tell how many there were.
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
        """The fate of the last due chunk that no owner withheld; ``owner`` while another one states the device."""
        return "owner" if key.device in self.disputed else self._served[key].condition

    def rows(self, key: StreamKey) -> RowCounters:
        """Counters of one stream's rows: live, to be read only."""
        return self._served[key].stream.rows

    def progress(self, key: StreamKey) -> tuple[int | None, int, int]:
        """The current session of a stream's tracker, the rows that came in, and the chunks that were released."""
        stream = self._served[key].stream
        return stream.session, stream.rows.rows, stream.counters.released

    def spent(self, device: str) -> Odometer | None:
        """Sums that a device has spent by chunks that are released, withheld or lost; None: nothing."""
        return self._spending.spent(device)

    def next_due(self) -> float | None:
        """When `run_turn` must be called if no message comes; None: nothing is awaited."""
        return self._timers.next()

    @property
    def waits(self) -> bool:
        """Whether something is to be reserved: `run_turn` does it."""
        return bool(self._requests)

    def reject(self, reason: str, sender: str | StreamKey, at: float) -> None:
        """Count a message of a topic, or rows of a stream, that were refused, and say so to the operator."""
        self._messages.rejected[reason] += 1
        served = self._by_topic.get(sender) if isinstance(sender, str) else self._served[sender]
        if served is not None:
            self._refusals.note(served.stream.settings.key, reason, at)

    def pause(self, now: float) -> None:
        """From here on nothing is reserved or released, and all that is not released is lost and counted.

        What the ledger is asked at this moment stays spent, and nothing comes of it.
        """
        self.paused = True
        self._requests.clear()
        for served in self._served.values():
            served.stream.pause(now)
            self._timers.set(served, served.stream.next_due())
        self._spending.settle()

    def resume(self, now: float) -> None:
        """The pause is over: rows are taken again, but for those that may describe gaze of it."""
        self.paused = False
        for served in self._served.values():
            served.since, served.why = now, "paused"

    def switch(self, device: str, now: float) -> int:
        """From here on nobody wears the device: its sessions end, and all of them that is not released is lost.

        Nothing of it is taken until `wear` is called with what this returns.
        """
        self._switches += 1
        self._between[device] = self._switches
        self._requests = [request for request in self._requests if request.key.device != device]
        for served in (one for one in self._served.values() if one.stream.key.device == device):
            served.stream.pause(now, "switched")
            served.since, served.why = now, "switched"
            self._timers.set(served, served.stream.next_due())
        self._spending.settle(device)
        return self._switches

    def wear(self, device: str, switch: int, wearer: int) -> None:
        """Let `wearer` wear the device from that `switch` on, unless there was a later one."""
        if self._between.get(device) == switch:
            self.worn[device] = wearer
            del self._between[device]

    def _of_wearer(self, served: _Served, rows: RawRows, at: float) -> RawRows | str:
        """The rows with the number of the wearer; or the reason why they are refused.

        After a switch, and after a pause, a row may describe gaze of before it: for `shared_s` none is taken. Rows that
        a clock in this process made describe none, as their maker began again with the switch or the pause.
        """
        device = served.stream.key.device
        if served.since == -math.inf and (device in self.worn or self.resumed):
            # The first rows of this life. The life before may have ended a moment after a switch, or after a pause.
            served.since, served.why = math.nextafter(at, -math.inf), "switched" if device in self.worn else "paused"
        until = served.since + (0.0 if rows.due is not None else served.stream.settings.shared_s)
        if device in self._between or at <= served.since or at < until:
            return served.why
        by_tracker = self._number(device, str(rows.wearer)) if rows.wearer and self._number else rows.wearer
        by_runtime = self.worn.get(device, 0)
        if by_runtime and by_tracker not in (0, by_runtime):
            return "wearer"
        wearer = by_runtime or by_tracker
        return rows if wearer == rows.wearer else msgspec.structs.replace(rows, wearer=wearer)

    def feed(self, arrival: Arrival | RowArrival) -> None:
        """Take one message: a chunk that it completes is released at once when it is reserved, else by `run_turn`.

        While it is paused, nothing may be fed (`Worker.pause`).
        """
        if isinstance(arrival, RowArrival):
            served = self._served[arrival.key]
            rows, due = self._of_wearer(served, arrival.rows, arrival.at), arrival.rows.due
            served.by_clock |= due is not None  # for good: from here on its chunks leave by the clock
            if isinstance(rows, str):
                self.reject(rows, served.stream.key, arrival.at)
                return
            self._messages.taken += 1
            self._carry_out(served, served.stream.feed(rows, arrival.at), due)
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
        own = self._of_wearer(served, rows, arrival.at)
        if isinstance(own, str):
            self.reject(own, arrival.topic, arrival.at)
            return
        self._messages.taken += 1
        counters = served.stream.rows
        before = counters.stale_session, counters.wearer, counters.refused
        self._carry_out(served, served.stream.feed(own, arrival.at))
        after = counters.stale_session, counters.wearer, counters.refused
        for reason, now, then in zip(("stale_session", "wearer", "mark"), after, before, strict=True):
            if now > then:
                self._refusals.note(settings.key, reason, arrival.at)
                break

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
                self._carry_out(served, served.stream.tick(now), awaited)
            else:
                self._timers.set(served, awaited)
        # Taken out before the wait. Should it be cancelled, none of them is asked for again: the process ends.
        requests, self._requests = self._requests, []
        if requests and not self.failed:
            await self._reserve(requests)

    def forget(self, wearers: Mapping[str, int] | None = None) -> None:
        """Overwrite the histories of the wearer of each device in `wearers`, None: of all: a new pseudonym begins."""
        for key, served in self._served.items():
            if wearers is None or key.device in wearers:
                served.stream.forget(None if wearers is None else wearers[key.device])

    def close(self, now: float) -> None:
        """End every session: what is reserved is released, the rest is dropped."""
        for served in self._served.values():
            self._carry_out(served, served.stream.close(now))

    async def _reserve(self, requests: list[Request]) -> None:
        # Looked at here, as late as can be: another sidecar may have stated a device since its chunk opened.
        refused = [Withheld(request, "owner") for request in requests if request.key.device in self.disputed]
        for key, own in _by_stream(refused):
            self._carry_out(self._served[key], self._served[key].stream.answer(own))
        requests = [request for request in requests if request.key.device not in self.disputed]
        if not requests:
            return
        try:
            # Nothing is fed meanwhile (`Worker._feed_or_queue`), so the answers meet the state that asked for them.
            answers = await self._spending.reserve(requests, self._today())
        except LedgerError as error:
            _LOG.error("%s; no chunk is released any more: when that is mended, restart the sidecar", error)
            self.failed = True
            # All streams, not only those that asked: one file remembers for all, and nobody knows what the disk has.
            for served in self._served.values():
                self._carry_out(served, served.stream.fail())
            self._changed()
            return
        if self.paused:
            self._spending.settle()  # granted meanwhile, and lost: the pause came first
        for device in self._between:
            self._spending.settle(device)  # so did the switch
        for key, own in _by_stream(answers):
            self._carry_out(self._served[key], self._served[key].stream.answer(own))

    def _carry_out(self, served: _Served, outcome: Outcome, due: float | None = None) -> None:
        """Publish what an input brought about, first of all: somebody waits. Then keep its requests and its timer."""
        served.due = served.due if due is None else due + served.disk_s
        if self._hold is None or not served.by_clock:
            self._publish_all(served, outcome.payloads, served.stream.condition)
            self._over()
        elif outcome.settled:
            # The condition of now, not of then: a later chunk may have changed it by the time that these leave. Where
            # the input is an answer of the ledger, `due` is still that of the input that asked.
            publish = partial(self._publish_all, served, outcome.payloads, served.stream.condition)
            self._hold(served.stream.key, served.due, publish)
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

    def _publish_all(self, served: _Served, payloads: Sequence[bytes], condition: Condition) -> None:
        """Publish payloads, and the fate of the last due chunk where it has changed."""
        for payload in payloads:
            self._publish(served.topic, payload)
        # ``owner`` is not kept: `condition` shows it while it lasts, and others could flip it with each chunk.
        if condition not in ("owner", served.condition):
            served.condition = condition
            log_condition(served.stream.key, condition)
            self._changed()


def _by_stream(answers: Iterable[Granted | Withheld]) -> Iterator[tuple[StreamKey, list[Granted | Withheld]]]:
    """The answers of each stream, in order."""
    own: dict[StreamKey, list[Granted | Withheld]] = {}
    for answer in answers:
        own.setdefault(answer.request.key, []).append(answer)
    yield from own.items()
