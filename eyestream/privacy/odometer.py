"""What a device and its streams have spent, as values to read."""

import dataclasses
from collections.abc import Mapping

from eyestream.privacy.reservation import RowMark

__all__ = ["Odometer", "StreamOdometer", "WearerOdometer"]


@dataclasses.dataclass(frozen=True, slots=True)
class StreamOdometer:
    """What one stream of a device has spent, in fixed point.

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


@dataclasses.dataclass(frozen=True, slots=True)
class WearerOdometer:
    """What one wearer of a device has spent, in fixed point; of it `day_...` on the device's `day`."""

    epsilon: int
    delta: int
    day_epsilon: int
    day_delta: int


@dataclasses.dataclass(frozen=True, slots=True)
class Odometer:
    """What one device has spent over all its streams, in fixed point.

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
