"""``kind = "recording"`` with a profile: a recording of gaze as if live, through the front end.

Unlike live gaze it passes no clock's map: its times are what they are, and no sample is too late, however fast it is
played.
"""

import asyncio
import time
from collections.abc import Callable, Sequence

import numpy as np

from eyestream.gaze.entry import USUAL, FrontEndEntry
from eyestream.gaze.profile import Profile
from eyestream.gaze.samples import Samples, TimedRows
from eyestream.rim.files.gaze import load_gaze
from eyestream.rim.sources.recording import RecordingOptions
from eyestream.rim.sources.source import Deliver
from eyestream.wire.raw import RawRows

_DAY_S = 86_400.0


def gaze_recordings(
    options: RecordingOptions, profile: Profile, entries: Sequence[FrontEndEntry]
) -> "list[GazePlayer]":
    """The rows of a recording of gaze in a file, by each of several front ends.

    Raises
    ------
    ConfigError
        The file has another rate than the profile.
    RecordingError
        The file is no such recording.
    """
    samples = load_gaze(options.file, profile).samples
    return [GazePlayer(samples, profile, options.speed, options.repeat, entry=entry) for entry in entries]


class GazePlayer:
    """Rows of samples at their times.

    Parameters
    ----------
    samples
        At least one of them has a time.
    profile
        What they are of, with their rate.
    speed
        1 is real time.
    repeat
        At the end it begins again, in another session.
    watch
        Is shown the samples as they are played.
    entry
        Of the front end that makes the rows.
    """

    def __init__(
        self,
        samples: Samples,
        profile: Profile,
        speed: float = 1.0,
        repeat: bool = False,
        *,
        watch: Callable[[Samples], None] = lambda samples: None,
        entry: FrontEndEntry = USUAL,
    ) -> None:
        self._samples, self._profile, self._entry = samples, profile, entry
        self._speed, self._repeat, self._watch = speed, repeat, watch
        self._session = 0

    async def run(self, deliver: Deliver) -> None:
        """Deliver all rows once, or without end."""
        while True:
            await self._once(deliver)
            if not self._repeat:
                return

    async def _once(self, deliver: Deliver) -> None:
        loop, samples = asyncio.get_running_loop(), self._samples
        front = self._entry.make(self._profile, _DAY_S, None)
        finite = samples.t[np.isfinite(samples.t)]
        first, last = float(finite[0]), float(finite.max())
        latest = np.fmax.accumulate(samples.t)  # a time that goes backward is handed on with those around it
        began, fed, number = loop.time(), 0, 0
        self._session = max(self._session + 1, time.time_ns())
        for step in range(1, int((last - first) / self._entry.step_s) + 2):
            end = first + step * self._entry.step_s
            await asyncio.sleep(began + (end - first) / self._speed - loop.time())
            until = int(np.searchsorted(latest, end, side="right"))
            self._watch(samples[fed:until])
            made = self._joined(front.feed(samples[fed:until]), front.advance(end) if end <= last else None)
            if len(made):
                deliver(RawRows(self._session, number, made.values, t=made.t))
            fed, number = until, number + len(made)
        deliver(RawRows(self._session, number, np.zeros((0, len(self._entry.names))), end=True))

    @staticmethod
    def _joined(rows: TimedRows, more: TimedRows | None) -> TimedRows:
        if more is None or len(more) == 0:
            return rows
        return TimedRows(np.concatenate([rows.t, more.t]), np.concatenate([rows.values, more.values]))
