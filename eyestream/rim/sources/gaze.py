"""Gaze of one tracker in, rows of its streams out, in this process: what all kinds of sources of gaze have in common.

A source of gaze hands over what its tracker says, in the units of a profile and with the tracker's own time. What
waits for the front end is bounded: more is handed on at once, and nothing is dropped here, because what a number of
samples pushes out would be other samples. Rows come from `LiveFrontEnd`, at moments that the clock decides; a source
that is away, or silent, gives rows of NaN.
"""

import asyncio
import contextlib
import itertools
import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from eyestream.gaze.clock_doubt import LOOK_S, ClockDoubts
from eyestream.gaze.doubt import GazeDoubts
from eyestream.gaze.entry import USUAL, FrontEndEntry
from eyestream.gaze.intake import take_in
from eyestream.gaze.live import DELAY_S, LiveFrontEnd, LiveRows
from eyestream.gaze.profile import Profile
from eyestream.gaze.samples import Samples
from eyestream.rim.config import BrokerSettings
from eyestream.rim.files.gaze_columns import GazeColumns
from eyestream.rim.sources.source import Deliver, Feeder
from eyestream.wire.raw import RawRows

_BATCH = 256
"""Samples of one batch. A small batch spends most of its time on overhead. A large batch delays the next row."""

_MOST = 4 * _BATCH
"""When so many samples wait, they do not wait for the time of their batch."""


_SAMPLE_BYTES = 16
"""A sample takes so many bytes of a message, or more."""

_MINUTE_S = 60.0


def pulse_s(profile: Profile, entry: FrontEndEntry = USUAL) -> float:
    """How long samples wait for the front end, in seconds: for a batch, and never longer than for the next row."""
    return min(_BATCH / profile.fixed_rate_hz, entry.step_s)


DeliverGaze = Callable[[GazeColumns], None]
"""Takes records, at once; none at all says that the link stands."""


class UndecodedGaze:
    """Gaze as it came, which is decoded in bulk, shortly before its rows are made: a portion is too small to be cheap.

    Parameters
    ----------
    size_bytes
        Bytes of the messages.
    came
        When they arrived, on the clock of the event loop.
    decode
        Reads them, and counts what is refused. Called once, whoever asks first: feeders may share a link.
    """

    def __init__(self, size_bytes: int, came: float, decode: Callable[[], Sequence[GazeColumns]]) -> None:
        self.size_bytes, self.came, self._decode = size_bytes, came, decode
        self._decoded: Sequence[GazeColumns] | None = None

    def decoded(self) -> Sequence[GazeColumns]:
        """The records; those that may be joined are joined."""
        if self._decoded is None:
            self._decoded = self._decode()
        return self._decoded


class GazeSource(Protocol):
    """Gaze of one tracker."""

    async def run(self, deliver: DeliverGaze) -> None:
        """Deliver records until there are no more, or until it is cancelled.

        Raises
        ------
        LinkError
            What it reads from is away: it is run again, after a while, for ever.
        """
        ...


@dataclass(frozen=True)
class Place:
    """Where a source of gaze stands: the tracker's pseudonym, and the broker that raw data comes from."""

    device: str
    broker: BrokerSettings


@dataclass(frozen=True)
class GazeKind:
    """One kind of source of gaze, as the registry knows it.

    Attributes
    ----------
    name
        In ``[source] kind``.
    options
        What may stand in ``[source.options]``: a frozen struct that forbids unknown keys.
    profile
        The shipped profile that its gaze is in, unless ``[source] profile`` names another.
    make
        Builds it; raises ConfigError for what it cannot use.
    answers
        Whether its tracker is asked again and again (`AskedTracker`). Answers alone then say that it is there.
        Otherwise its samples say it too, and after a minute without one the session ends.
    """

    name: str
    options: type[msgspec.Struct]
    profile: str
    make: Callable[[Any, Profile, Place], GazeSource]
    answers: bool = False


_Waiting = tuple[float, GazeColumns | UndecodedGaze]
"""When gaze came, on the host's clock, and the gaze."""


class GazeFeeder(Feeder):
    """From a source of gaze to rows.

    Parameters
    ----------
    source
        Of the tracker.
    profile
        What its records are in; with a rate.
    answers
        As in the `GazeKind`.
    entry
        Of the front end that makes the rows.
    speed
        Of the host's clock: so many of its seconds pass in one. Only a simulation has another than 1.

    Attributes
    ----------
    source : where it comes from.
    live : the front end, to be read.
    """

    def __init__(
        self,
        source: GazeSource,
        profile: Profile,
        answers: bool = False,
        speed: float = 1.0,
        entry: FrontEndEntry = USUAL,
    ) -> None:
        self.source, self._profile, self._speed = source, profile, speed
        self._inbox: list[_Waiting] = []
        self._pulse_s = pulse_s(profile, entry)
        self._held = 0
        self._deaf_until = -math.inf
        self._came = asyncio.Event()
        self._over = asyncio.Event()
        self._number, self._session = -1, 0
        self.live = LiveFrontEnd(profile, answers, entry)
        self._clock, self._clock_at = ClockDoubts(profile.fixed_rate_hz), math.inf
        self._doubts, self._judged_at, self._judged_s = GazeDoubts(profile), math.inf, LOOK_S
        self._clock_doubt: str | None = None
        self._gaze_doubt: str | None = None

    async def run(self, deliver: DeliverGaze) -> None:
        """Keep to the source, which is over when this returns; raises as `GazeSource.run`."""
        run = getattr(self.source, "run_undecoded", self.source.run)  # of a source whose samples come one by one
        await run(deliver)
        self.end()

    def end(self) -> None:
        """Nothing comes any more."""
        self._over.set()
        self._came.set()

    @property
    def expected_hz(self) -> float:
        """Samples a second, by the profile."""
        return self._profile.fixed_rate_hz

    @property
    def refused(self) -> int:
        """Messages that its source refused; a source outside this repository may count none."""
        counted: Counter[str] | None = getattr(self.source, "refused", None)
        return 0 if counted is None else counted.total()

    @property
    def link(self) -> object:
        """The source: other feeders may have the same one, for other front ends."""
        return self.source

    def take(self, records: GazeColumns | UndecodedGaze) -> None:
        """Take records as they come, in the event loop."""
        if isinstance(records, UndecodedGaze):
            count = records.size_bytes // _SAMPLE_BYTES
        else:
            count = len(records.time)
            if count == 0:
                self.live.stand(self._now())
                return
        if self._now() < self._deaf_until:
            return
        self._inbox.append((self._now() if records.came is None else records.came * self._speed, records))
        self._held += count
        if self._held > _MOST:
            self._work()
        self._came.set()

    def cut(self) -> None:
        """End the session, and take nothing for as long as gaze of before may be on its way."""
        self._inbox, self._held = [], 0
        self.live.cut()
        self._deaf_until = self._now() + DELAY_S
        self._came.set()

    async def rows(self, deliver: Deliver) -> None:
        """Deliver rows at their moments, until the source has come to its end."""
        while True:
            self._work()
            for made in self.live.due(self._now()):
                deliver(self._numbered(made))
            if self._over.is_set():
                break
            await self._pause()
        self._work()
        for made in self.live.finish(self._now()):
            deliver(self._numbered(made))

    def _now(self) -> float:
        return asyncio.get_running_loop().time() * self._speed

    async def _pause(self) -> None:
        """Until there is something to do: a row, samples that have waited, the first sample, or the end."""
        due = self.live.next_due
        limit, event = None, self._came
        if due is not None:
            limit, event = min(due - self._now(), self._pulse_s) / self._speed, self._over
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(limit):
                await event.wait()
        self._came.clear()

    def _work(self) -> None:
        """Hand what waits to the front end; records of one form together."""
        parts, self._inbox, self._held = list(self._decoded(self._inbox)), [], 0
        self._judge(bool(parts))
        for _, group in itertools.groupby(parts, key=lambda part: _form(part[1])):
            arrivals, records = zip(*group, strict=True)
            joined = _joined(records)
            samples = self.samples_of(joined)
            tracked = None if joined.valid is None else joined.valid > 0.0
            self._doubts.take(joined.gaze, tracked, samples, joined.pupil)
            arrived = np.repeat(arrivals, [len(part.time) for part in records])
            self._clock.take(samples.t, arrived)
            self.live.take(samples, arrived)
            self.untimed = self.live.clock.unbelieved

    def _decoded(self, parts: Sequence[_Waiting]) -> Iterator[tuple[float, GazeColumns]]:
        """Records that have samples; a message without any says that the tracker is there."""
        for came, records in parts:
            for part in records.decoded() if isinstance(records, UndecodedGaze) else (records,):
                self.heard += len(part.time)
                if len(part.time):
                    yield came, part
                else:
                    self.live.stand(came)

    def _judge(self, came: bool) -> None:
        """Whether it can be gaze as the profile says: `LOOK_S` after the first, then each minute; its clock more often.

        The moments are the host's clock's, whatever the gaze is.
        """
        now = self._now()
        if came and math.isinf(self._judged_at):
            self._judged_at = self._clock_at = now + LOOK_S
            return
        if now >= self._clock_at:
            self._clock_doubt = self._clock.judge(LOOK_S + now - self._clock_at)
            self._clock_at = now + LOOK_S
        if now >= self._judged_at:
            self._gaze_doubt = self._doubts.judge(self._judged_s + now - self._judged_at)
            self._judged_s = _MINUTE_S - LOOK_S if self._judged_s == LOOK_S else _MINUTE_S  # that ends the first minute
            self._judged_at = now + self._judged_s
        self.doubt = self._clock_doubt or self._gaze_doubt

    def samples_of(self, records: GazeColumns) -> Samples:
        """Records in degrees and mm, on the tracker's clock."""
        return take_in(
            self._profile,
            records.time,
            records.gaze,
            pupil=records.pupil,
            openness=records.openness,
            valid=records.valid,
        )

    def _numbered(self, made: LiveRows) -> RawRows:
        if made.session != self._number:
            self._number, self._session = made.session, max(self._session + 1, time.time_ns())
        due = None if made.due is None else made.due / self._speed
        return RawRows(self._session, made.number, made.values, made.end, made.t, due=due)


def widths(profile: Profile) -> dict[int, tuple[int, int, int]]:
    """How many columns a table of samples may have, and how many of them are pupils, lids and validity.

    After the components of gaze come the pupils, the lids and whether the eye was tracked, as far as the profile names
    them; what is left out is left out from the end.
    """
    columns = profile.columns
    told = (len(columns.pupil), len(columns.openness), 1 if columns.valid else 0)
    cut = [(0, 0, 0), (told[0], 0, 0), (told[0], told[1], 0), told]
    return {len(columns.gaze) + sum(counts): counts for counts in cut}


def columns_of(
    profile: Profile, t: NDArray[np.float64], table: NDArray[np.floating], came: float | None = None
) -> GazeColumns:
    """Records out of a table whose width is one of `widths`."""
    width, first = table.shape[1], len(profile.columns.gaze)
    second = min(width, first + len(profile.columns.pupil))
    third = min(width, second + len(profile.columns.openness))
    own = table.astype(np.float64)
    return GazeColumns(
        t,
        own[:, :first],
        pupil=own[:, first:second] if second > first else None,
        openness=own[:, second:third] if third > second else None,
        valid=np.nan_to_num(own[:, third]) if width > third else None,
        came=came,
    )


def _form(records: GazeColumns) -> tuple[int | None, ...]:
    """Fields that must be equal for records to be joined."""
    optional = (records.pupil, records.openness, records.valid)
    return tuple(None if part is None else part.size // len(part) for part in optional)


def _joined(parts: Sequence[GazeColumns]) -> GazeColumns:
    """Records of one form, one after the other."""

    def several(name: str) -> Any:
        arrays = [getattr(part, name) for part in parts]
        return None if arrays[0] is None else np.concatenate(arrays)

    return GazeColumns(*(several(name) for name in ("time", "gaze", "pupil", "openness", "valid")))
