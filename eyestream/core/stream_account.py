"""One stream of a device: its session, its sums, what was announced of it. Rules: `eyestream.core.accountant`."""

from typing import NamedTuple

from eyestream.core.meter import Meter, MeterState, OtherDays, StreamOdometer
from eyestream.core.reservation import LAST_ROW, RowMark

__all__ = ["Announcement", "StreamAccount", "StreamState"]


class Announcement(NamedTuple):
    """What the next slots of a stream may be: n, the device's w, the stream's own; session and charge at most."""

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
    """What one stream has spent beneath its device.

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
        """What has been spent so far; `day` is the device's."""
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
