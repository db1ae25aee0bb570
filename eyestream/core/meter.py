"""Sums of slots in one sequence: of a device over all its streams, or of one stream. Exact integers.

`BUDGET.md` says what slots and windows are, and proves what is used here.

An *odometer* is what a device and its streams have spent, as values to read.
"""

from collections import deque
from collections.abc import Mapping
from itertools import groupby
from typing import NamedTuple

import msgspec

from eyestream.core.charge import Ceilings, Charge
from eyestream.core.reservation import Obstacle, RowMark

NO_WINDOW_YET = -1
"""In the place of w, before anything was announced."""

_NO_SLOTS: deque[tuple[int, int]] = deque(maxlen=0)
"""Shared by all that look at no window: an empty deque of its own has 600 bytes."""


OtherDays = tuple[tuple[int, int, int], ...]
"""Days that may come again, with what was spent on them: (day, epsilon, delta)."""


class MeterState(NamedTuple):
    """A meter as plain values; `slots` are runs of equal slots, (how many, epsilon, delta)."""

    window: int
    wait: int
    slots: list[tuple[int, int, int]]
    day: int
    day_epsilon: int
    day_delta: int
    carried_epsilon: int
    carried_delta: int
    epsilon: int
    delta: int
    released: int
    withheld: int


class Meter:
    """Sums of a sequence of slots: over its last w slots, on the last day, in all.

    Attributes
    ----------
    window, wait : w, and slots still to be withheld.
    window_epsilon, window_delta : of the last w slots.
    day, day_epsilon, day_delta : the day of the last slot, and what was spent on it.
    other_days : what was spent on further days that may come again (`eyestream.core.days`), if anything was:
        (day, epsilon, delta).
    epsilon, delta, released, withheld : in all.
    """

    __slots__ = (
        "_carried_delta",
        "_carried_epsilon",
        "_slots",
        "day",
        "day_delta",
        "day_epsilon",
        "delta",
        "epsilon",
        "other_days",
        "released",
        "wait",
        "window",
        "window_delta",
        "window_epsilon",
        "withheld",
    )

    def __init__(self, window: int = NO_WINDOW_YET) -> None:
        self.turn(window, 0)
        self.day = self.epsilon = self.delta = 0
        self.day_epsilon = self.day_delta = self._carried_epsilon = self._carried_delta = 0
        self.other_days: OtherDays = ()
        self.released = self.withheld = 0

    def turn(self, window: int, wait: int) -> None:
        """Begin an empty window of `window` slots; the next `wait` slots are to be withheld."""
        self.window, self.wait = window, wait
        self._slots = deque(maxlen=window) if window > 0 else _NO_SLOTS
        self.window_epsilon = self.window_delta = 0

    def obstacle(self, ceilings: Ceilings, charge: Charge, session: tuple[int, int], day: int) -> Obstacle | None:
        """Which ceiling one more slot would pass; `session`: (epsilon, delta) that its session has cost so far."""
        c, (day_epsilon, day_delta) = ceilings, self._spent_on(day)
        epsilons: tuple[tuple[Obstacle, int | None, int], ...] = (
            ("window", c.window, self._newest_epsilon()),
            ("session", c.session, session[0]),
            ("day", c.day, day_epsilon),
            ("lifetime", c.lifetime, self.epsilon),
        )
        deltas: tuple[tuple[Obstacle, int | None, int], ...] = (
            ("window", c.window_delta, self._newest_delta()),
            ("session", c.session_delta, session[1]),
            ("day", c.day_delta, day_delta),
            ("lifetime", c.lifetime_delta, self.delta),
        )
        for spends, more in ((epsilons, charge.epsilon), (deltas, charge.delta)):
            for name, ceiling, so_far in spends:
                if ceiling is not None and so_far + more > ceiling:
                    return name
        return None

    def take(self, day: int, epsilon: int, delta: int, last_day: int | None = None) -> None:
        """Take one slot; `epsilon` is 0 when its chunk is withheld.

        >>> meter = Meter(window=2)
        >>> for epsilon in (5, 0, 7):
        ...     meter.take(20_000, epsilon, 0)
        >>> meter.window_epsilon, meter.epsilon
        (7, 12)

        `last_day`: days before it do not come again (`Days.last`); None: no day before `day` does.
        """
        if self.wait:
            self.wait -= 1
        if day != self.day:
            self._turn_to(day, day if last_day is None else last_day)
        if self.window > 0:
            slots = self._slots
            if len(slots) == self.window:
                gone = slots[0]
                self.window_epsilon -= gone[0]
                self.window_delta -= gone[1]
            slots.append((epsilon, delta))
            self.window_epsilon += epsilon
            self.window_delta += delta
        if epsilon:
            self.released += 1
            self.epsilon += epsilon
            self.delta += delta
            self.day_epsilon += epsilon
            self.day_delta += delta
        else:
            self.withheld += 1

    def merge(self, epsilon: int, delta: int) -> None:
        """Add a cost whose slot and day are not known.

        It joins the newest slot: merging is safe whether it was a slot of its own or not. It counts on every day that
        is known here, and on the one that comes next.
        """
        if self.window > 0:
            last = self._slots.pop() if self._slots else (0, 0)
            self._slots.append((last[0] + epsilon, last[1] + delta))
            self.window_epsilon += epsilon
            self.window_delta += delta
        self.epsilon += epsilon
        self.delta += delta
        self.day_epsilon += epsilon
        self.day_delta += delta
        self._carried_epsilon += epsilon
        self._carried_delta += delta
        self.other_days = tuple((day, e + epsilon, d + delta) for day, e, d in self.other_days)

    def begin_day_at(self, day: int, last_day: int) -> None:
        """Let all that was spent on `day` and on days after it count for `day`; days before do not come again.

        Only sums of days before `last_day`, and before the day of the last slot, are ever forgotten. So where `day` is
        such a day and no sum of it is kept, nobody knows what was spent from it on: then all counts that ever was.
        """
        known = {at: (epsilon, delta) for at, epsilon, delta in self.other_days} | {
            self.day: (self.day_epsilon, self.day_delta)
        }
        if day < min(last_day, self.day) and day not in known:
            spent = [(self.epsilon, self.delta)]
        else:
            spent = [sums for at, sums in known.items() if at >= day] or [self._spent_on(day)]
        self.day_epsilon, self.day_delta = (sum(kind) for kind in zip(*spent, strict=True))
        self.day, self.other_days = day, ()

    def state(self) -> MeterState:
        """Everything that it knows."""
        return MeterState(
            window=self.window,
            wait=self.wait,
            slots=[(len(list(run)), *slot) for slot, run in groupby(self._slots)],
            day=self.day,
            day_epsilon=self.day_epsilon,
            day_delta=self.day_delta,
            carried_epsilon=self._carried_epsilon,
            carried_delta=self._carried_delta,
            epsilon=self.epsilon,
            delta=self.delta,
            released=self.released,
            withheld=self.withheld,
        )

    @classmethod
    def restored(cls, state: MeterState, other_days: OtherDays = ()) -> "Meter":
        """The meter that `state` was taken from, and its `other_days`."""
        meter = cls(state.window)
        meter.wait, meter.other_days = state.wait, other_days
        for count, epsilon, delta in state.slots:
            meter._slots.extend([(epsilon, delta)] * count)
            meter.window_epsilon += count * epsilon
            meter.window_delta += count * delta
        meter.day, meter.day_epsilon, meter.day_delta = state.day, state.day_epsilon, state.day_delta
        meter._carried_epsilon, meter._carried_delta = state.carried_epsilon, state.carried_delta
        meter.epsilon, meter.delta = state.epsilon, state.delta
        meter.released, meter.withheld = state.released, state.withheld
        return meter

    def _spent_on(self, day: int) -> tuple[int, int]:
        """Epsilon and delta so far, on a day that is open; a new one begins with what is carried over."""
        if day == self.day:
            return self.day_epsilon, self.day_delta
        carried = self._carried_epsilon, self._carried_delta
        return next(((e, d) for at, e, d in self.other_days if at == day), carried)

    def _turn_to(self, day: int, last_day: int) -> None:
        """Go on with `day`; what was spent on others is kept from `last_day` on."""
        spent = self._spent_on(day)
        if day == last_day and all(at != day for at, _, _ in self.other_days):
            self._carried_epsilon = self._carried_delta = 0  # a day ahead need not be the one that comes next
        known = (*self.other_days, (self.day, self.day_epsilon, self.day_delta))
        self.other_days = tuple(one for one in known if one[0] >= last_day and one[0] != day and one[1:] != (0, 0))
        self.day, (self.day_epsilon, self.day_delta) = day, spent

    def _newest_epsilon(self) -> int:
        """Epsilon of the newest w - 1 slots: those that share a window with the next one."""
        full = self._slots and len(self._slots) == self.window
        return self.window_epsilon - (self._slots[0][0] if full else 0)

    def _newest_delta(self) -> int:
        full = self._slots and len(self._slots) == self.window
        return self.window_delta - (self._slots[0][1] if full else 0)


class StreamOdometer(msgspec.Struct, frozen=True):
    """Sums that one stream of a device has spent, in fixed point.

    `epsilon` and `delta` since the ledger began; of them `session_...` in the last session, `day_...` on the device's
    `day`. `mark`: rows up to here are gone for ever; None before the first. `chunk` and `window`: n, and the device's
    w, of the last slot. `own_window` and `window_...`: length and sums of the stream's own window. `wait`: slots of the
    stream still to be withheld after a change.
    """

    mark: RowMark | None
    chunk: int
    window: int
    own_window: int
    wait: int
    epsilon: int
    delta: int
    session_epsilon: int
    session_delta: int
    window_epsilon: int
    window_delta: int
    day_epsilon: int
    day_delta: int
    released: int
    withheld: int


class WearerOdometer(msgspec.Struct, frozen=True):
    """Sums that one wearer of a device has spent, in fixed point; of them `day_...` on the device's `day`."""

    epsilon: int
    delta: int
    day_epsilon: int
    day_delta: int


class Odometer(msgspec.Struct, frozen=True):
    """Sums that one device has spent over all its streams, in fixed point.

    `epsilon` and `delta` since the ledger began; of them `session_...` in the current sessions of all streams,
    `window_...` in the last `window` slots, `day_...` on `day` (days since 1970). `unreadable` counts damaged records,
    which are in the sums; `wait` the slots of the device still to be withheld after a change of the window. `wearers`
    has what each wearer who was named has spent, by handle.
    """

    epsilon: int
    delta: int
    session_epsilon: int
    session_delta: int
    window_epsilon: int
    window_delta: int
    day: int
    day_epsilon: int
    day_delta: int
    released: int
    withheld: int
    unreadable: int
    window: int
    wait: int
    wearers: Mapping[int, WearerOdometer]
    streams: Mapping[str, StreamOdometer]
