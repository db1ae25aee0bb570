"""Sums that one device has spent over all its streams, and whether it may spend more: exact, no clock, no file.

Every chunk of a device that falls due takes one *slot*, released or withheld (cost 0). The slots of all its streams
form one sequence, in the order of reservation, across sessions and restarts. A chunk is released only when it and the w
- 1 slots before it sum to at most the window's ceiling; likewise for sessions, days and the lifetime. `BUDGET.md`
proves that no sum passes its ceiling, also where slots are forgotten or merged, w or n changes, or a record is damaged.
Before a stream takes a slot under another n or w, and before it is *granted* one in another session, at a higher charge
than ever or of a new wearer, that is announced, and the ledger makes the announcement durable first.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from eyestream.core.charge import NO_CEILINGS, Ceilings, bounds, level_of
from eyestream.core.meter import NO_WINDOW_YET, Meter, MeterState, Odometer, OtherDays, StreamOdometer
from eyestream.core.reservation import LAST_ROW, Obstacle, Request, RowMark
from eyestream.core.wearers import Wearers, WearerState


class Announcement(NamedTuple):
    """Limits of a stream's next slots: n, the device's w, the stream's own; session and charge at most."""

    chunk: int
    window: int
    own_window: int
    session: int
    epsilon: int
    delta: int


class StreamState(NamedTuple):
    """A stream as plain values."""

    session: int
    last_row: int
    session_epsilon: int
    session_delta: int
    chunk: int
    window: int
    announced: Announcement
    meter: MeterState


class StreamAccount:
    """Sums that one stream has spent beneath its device.

    Attributes
    ----------
    announced : the last announcement; its charge is the largest that the stream ever announced.
    chunk, window : n, and the device's w, of the last slot.
    session, last_row : up to where rows are gone for ever; -1 before the first.
    session_epsilon, session_delta : what the current session has cost.
    meter : its own slots.
    """

    __slots__ = ("announced", "chunk", "last_row", "meter", "session", "session_delta", "session_epsilon", "window")

    def __init__(self, first: Announcement, meter: Meter | None = None) -> None:
        self.announced, self.chunk, self.window = first, first.chunk, first.window
        self.session, self.last_row, self.session_epsilon, self.session_delta = -1, -1, 0, 0
        self.meter = meter or Meter(first.own_window)

    @property
    def mark(self) -> RowMark | None:
        """The last reserved row; None before the first."""
        return None if self.session < 0 else RowMark(self.session, self.last_row)

    def wait_for(self, chunk: int, window: int, own_window: int) -> int:
        """Slots to withhold when n, w and w' take over; derived in `eyestream.core.accountant`."""
        meter = self.meter
        if (chunk, window, own_window) == (self.chunk, self.window, meter.window):
            return meter.wait
        old = max(self.window, meter.window)
        rows = max(old, meter.wait) * self.chunk
        return max(old, window, own_window, meter.wait, -(-rows // chunk))

    def close(self) -> None:
        """Refuse every row of the announced session, for ever."""
        self.session, self.last_row = max(self.session, self.announced.session), LAST_ROW

    def odometer(self, day: int) -> StreamOdometer:
        """Sums so far; `day` is the device's."""
        meter, today = self.meter, self.meter.day == day
        return StreamOdometer(
            mark=self.mark,
            chunk=self.chunk,
            window=self.window,
            own_window=meter.window,
            wait=meter.wait,
            epsilon=meter.epsilon,
            delta=meter.delta,
            session_epsilon=self.session_epsilon,
            session_delta=self.session_delta,
            window_epsilon=meter.window_epsilon,
            window_delta=meter.window_delta,
            day_epsilon=meter.day_epsilon if today else 0,
            day_delta=meter.day_delta if today else 0,
            released=meter.released,
            withheld=meter.withheld,
        )

    def state(self) -> StreamState:
        """Everything that it knows."""
        return StreamState(
            session=self.session,
            last_row=self.last_row,
            session_epsilon=self.session_epsilon,
            session_delta=self.session_delta,
            chunk=self.chunk,
            window=self.window,
            announced=self.announced,
            meter=self.meter.state(),
        )

    @classmethod
    def restored(cls, state: StreamState, other_days: OtherDays = ()) -> "StreamAccount":
        """The stream that `state` was taken from, with the `other_days` of its meter."""
        stream = cls(state.announced, Meter.restored(state.meter, other_days))
        stream.session, stream.last_row = state.session, state.last_row
        stream.session_epsilon, stream.session_delta = state.session_epsilon, state.session_delta
        stream.chunk, stream.window = state.chunk, state.window
        return stream


class AccountState(NamedTuple):
    """An account as plain values: sums over its streams, the streams by name, its wearers."""

    unreadable: int
    meter: MeterState
    streams: dict[str, StreamState]
    wearers: list[WearerState]


class Account:
    """The budget of one device: it is told of announcements and slots, and asked about the next slot."""

    __slots__ = ("_meter", "_session_delta", "_session_epsilon", "_streams", "_unreadable", "_wearers")

    def __init__(self) -> None:
        self._meter = Meter()
        self._streams: dict[str, StreamAccount] = {}
        self._session_epsilon = self._session_delta = 0
        self._unreadable = 0
        self._wearers = Wearers()

    @property
    def day(self) -> int:
        """The day on which it took its last slot."""
        return self._meter.day

    @property
    def streams(self) -> list[str]:
        """Names of its streams, in the order in which they came."""
        return list(self._streams)

    def chunk_of(self, stream: str) -> int:
        """n of the stream's last slot."""
        return self._streams[stream].chunk

    def mark(self, stream: str) -> RowMark | None:
        """The last reserved row; None before the first."""
        known = self._streams.get(stream)
        return None if known is None else known.mark

    def day_of(self, today: int) -> int:
        """The day that a slot taken `today` counts for, where no ledger knows which days are open: the largest yet."""
        return max(today, self._meter.day)

    def obstacle(
        self, request: Request, ceilings: Ceilings, today: int, own: Ceilings = NO_CEILINGS
    ) -> Obstacle | None:
        """The obstacle to the release, or None. "rows" and "change" take no slot, the others do. Changes nothing.

        Ceilings are read in one order, those of the wearer, of the device and of the stream: the first one stands.

        Parameters
        ----------
        request
            Of this device.
        ceilings, own
            Of the device with its wearers, and of the request's stream beneath: each must hold.
        today
            The day that it counts for, in days since 1970.
        """
        meter, known, window = self._meter, self._streams.get(request.key.stream), ceilings.window_chunks
        stream = known or StreamAccount(self._announcement(request, ceilings, own))
        same_session = request.session == stream.session
        if (request.session, request.first_row) <= (stream.session, stream.last_row):
            return "rows"
        new_window = meter.window not in (window, NO_WINDOW_YET)
        shape = (request.chunk, window, own.window_chunks)
        if same_session and (new_window or shape != (stream.chunk, stream.window, stream.meter.window)):
            return "change"
        if request.unreleased:
            return None
        if (max(meter.window, window, meter.wait) if new_window else meter.wait) > 0 or stream.wait_for(*shape) > 0:
            return "window"
        charge = request.charges[self.level(request, ceilings)]
        if request.wearer and self._wearers.forbids(request.wearer, ceilings, charge, today):
            return "wearer"
        mine = stream.session_epsilon, stream.session_delta
        others = (self._session_epsilon - mine[0], self._session_delta - mine[1])
        mine = mine if same_session else (0, 0)
        both = (others[0] + mine[0], others[1] + mine[1])
        return meter.obstacle(ceilings, charge, both, today) or stream.meter.obstacle(own, charge, mine, today)

    def level(self, request: Request, ceilings: Ceilings) -> int:
        """On which level of a lifetime that fades the request is; 0 where it does not fade."""
        if ceilings.levels == 1 or ceilings.lifetime is None:
            return 0
        return level_of(self._meter.epsilon, request.charges, bounds(ceilings.lifetime, ceilings.levels))

    def announcement(
        self, request: Request, ceilings: Ceilings, own: Ceilings, *, granted: bool
    ) -> Announcement | None:
        """The announcement that must stand before the request takes its slot; None when nothing is new."""
        known, new = self._streams.get(request.key.stream), self._announcement(request, ceilings, own)
        if known is None:
            return new
        old = known.announced
        granted = granted and not request.unreleased
        if granted and new.epsilon < old.epsilon and self.level(request, ceilings) > 0:
            return new
        more = new.session > old.session or new.epsilon > old.epsilon or new.delta > old.delta
        newcomer = request.wearer > 0 and not self._wearers.is_known(request.wearer)
        if new[:3] == old[:3] and not (granted and (more or newcomer)):
            return None
        return new._replace(epsilon=max(new.epsilon, old.epsilon), delta=max(new.delta, old.delta))

    def _announcement(self, request: Request, ceilings: Ceilings, own: Ceilings) -> Announcement:
        charge = request.charges[self.level(request, ceilings)]
        windows = (ceilings.window_chunks, own.window_chunks)
        return Announcement(request.chunk, *windows, request.session, charge.epsilon, charge.delta)

    def announce(self, stream: str, announced: Announcement, wearer: int = 0) -> None:
        """Let `announced` hold for the next slots of `stream`, and `wearer` be known; either may be new."""
        self._wearers.announce(wearer)
        if self._meter.window == NO_WINDOW_YET:
            self._meter.turn(announced.window, 0)
        known = self._streams.get(stream)
        if known is None:
            self._streams[stream] = StreamAccount(announced)
        else:
            known.announced = announced

    def take(
        self,
        stream: str,
        session: int,
        last_row: int,
        *,
        day: int,
        epsilon: int = 0,
        delta: int = 0,
        wearer: int = 0,
        last_day: int | None = None,
    ) -> None:
        """Take one slot of a stream, as announced; `epsilon` is 0 when its chunk is withheld.

        Days before `last_day` do not come again; None: none before `day` does.
        """
        known, meter = self._streams[stream], self._meter
        chunk, window, own_window = known.announced[:3]
        # Another w or n begins an empty window. So many slots are withheld then that no old one shares a window with a
        # new one.
        if window != meter.window:
            meter.turn(window, max(meter.window, window, meter.wait))
        if chunk != known.chunk or window != known.window or own_window != known.meter.window:
            known.meter.turn(own_window, known.wait_for(chunk, window, own_window))
            known.chunk, known.window = chunk, window
        if session != known.session:  # the device's sum is over the current sessions of all streams
            self._session_epsilon -= known.session_epsilon
            self._session_delta -= known.session_delta
            known.session, known.session_epsilon, known.session_delta = session, 0, 0
        known.last_row = last_row
        meter.take(day, epsilon, delta, last_day)
        known.meter.take(day, epsilon, delta, last_day)
        if epsilon:
            self._charge(known, epsilon, delta)
        if wearer:
            self._wearers.take(wearer, day, epsilon, delta, last_day)

    def take_unreadable(self, count: int = 1) -> None:
        """Count `count` damaged records as spent: each may have been a slot of any stream, as was announced.

        One record is one slot of one stream. So the device is charged the largest charge that any of its streams
        announced, each stream its own largest, and each known wearer what the device is. Every stream's announced
        session is closed, as any of its rows may be gone.
        """
        streams = self._streams.values()
        epsilon = count * max((stream.announced.epsilon for stream in streams), default=0)
        delta = count * max((stream.announced.delta for stream in streams), default=0)
        self._unreadable += count
        self._meter.merge(epsilon, delta)
        for stream in streams:
            stream.close()
            own = (count * stream.announced.epsilon, count * stream.announced.delta)
            stream.meter.merge(*own)
            self._charge(stream, *own)
        self._wearers.merge(self._meter.day, epsilon, delta, count)

    def melt(self, last_day: int) -> None:
        """Keep of each wearer the sums alone: not on which day before the device's the wearer was here last."""
        self._wearers.melt(self._meter.day, last_day)

    def begin_day_at(self, day: int, last_day: int) -> None:
        """Let all that was spent on `day` and on days after it count for `day`; as `Meter.begin_day_at`."""
        for meter in self._meters().values():
            meter.begin_day_at(day, last_day)

    def _meters(self) -> dict[str, Meter]:
        """Every meter, by a name for it."""
        streams = {f"streams/{name}": stream.meter for name, stream in self._streams.items()}
        wearers = {f"wearers/{wearer}": meter for wearer, meter in self._wearers.meters.items()}
        return {"device": self._meter, **streams, **wearers}

    @property
    def other_days(self) -> dict[str, OtherDays]:
        """Sums of days that may come again, by meter; hardly ever anything, and not in `state`."""
        return {name: meter.other_days for name, meter in self._meters().items() if meter.other_days}

    @property
    def released(self) -> int:
        """Chunks that were reserved for a release."""
        return self._meter.released

    def odometer(self) -> Odometer:
        """Sums so far."""
        meter = self._meter
        return Odometer(
            epsilon=meter.epsilon,
            delta=meter.delta,
            session_epsilon=self._session_epsilon,
            session_delta=self._session_delta,
            window_epsilon=meter.window_epsilon,
            window_delta=meter.window_delta,
            day=meter.day,
            day_epsilon=meter.day_epsilon,
            day_delta=meter.day_delta,
            released=meter.released,
            withheld=meter.withheld,
            unreadable=self._unreadable,
            window=max(meter.window, 0),
            wait=meter.wait,
            wearers=self._wearers.odometers(meter.day),
            streams={name: stream.odometer(meter.day) for name, stream in self._streams.items()},
        )

    def state(self) -> AccountState:
        """Everything that it knows."""
        streams = {name: stream.state() for name, stream in self._streams.items()}
        return AccountState(self._unreadable, self._meter.state(), streams, self._wearers.state())

    @classmethod
    def restored(cls, state: AccountState, other_days: Mapping[str, OtherDays] = MappingProxyType({})) -> "Account":
        """The account that `state` was taken from, and its `other_days`."""
        account, others = cls(), other_days
        account._unreadable = state.unreadable
        account._meter = Meter.restored(state.meter, others.get("device", ()))
        account._streams = {
            name: StreamAccount.restored(stream, others.get(f"streams/{name}", ()))
            for name, stream in state.streams.items()
        }
        for stream in account._streams.values():
            account._session_epsilon += stream.session_epsilon
            account._session_delta += stream.session_delta
        account._wearers = Wearers.restored(
            state.wearers,
            account.day,
            {name.removeprefix("wearers/"): days for name, days in others.items() if name.startswith("wearers/")},
        )
        return account

    def _charge(self, stream: StreamAccount, epsilon: int, delta: int) -> None:
        """Add to the current session of a stream, and so to the device's."""
        stream.session_epsilon += epsilon
        stream.session_delta += delta
        self._session_epsilon += epsilon
        self._session_delta += delta
