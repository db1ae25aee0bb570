"""``kind = "recording"`` with a profile: a recording of gaze as if live, through the front end.

Unlike live gaze it passes no clock's map: its times are what they are, and no sample is too late, however fast it is
played.
"""

import asyncio
import time
from collections.abc import Callable

import numpy as np

from eyestream.gaze.features import NAMES, STEP_S
from eyestream.gaze.front_end import FrontEnd, Rows
from eyestream.gaze.profile import Profile
from eyestream.gaze.samples import Samples
from eyestream.rim.files.gaze import load_gaze
from eyestream.rim.sources.recording import Options
from eyestream.rim.sources.source import Deliver
from eyestream.wire.messages import RawRows

__all__ = ["GazePlayer", "gaze_recording"]

_DAY_S = 86_400.0


def gaze_recording(options: Options, profile: Profile) -> "GazePlayer":
    """The rows of a recording of gaze in a file.

    Raises
    ------
    ConfigError
        The file has another rate than the profile.
    RecordingError
        The file is no such recording.
    """
    return GazePlayer(load_gaze(options.file, profile).samples, profile, options.speed, options.repeat)


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
        At the end it begins anew, in another session.
    watch
        Is shown the samples as they are played.
    """

    def __init__(
        self,
        samples: Samples,
        profile: Profile,
        speed: float = 1.0,
        repeat: bool = False,
        watch: Callable[[Samples], None] = lambda samples: None,
    ) -> None:
        self._samples, self._profile = samples, profile
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
        front = FrontEnd(self._profile, longest_step_s=_DAY_S)
        finite = samples.t[np.isfinite(samples.t)]
        first, last = float(finite[0]), float(finite.max())
        latest = np.fmax.accumulate(samples.t)  # a time that goes backward is handed on with those around it
        began, fed, number = loop.time(), 0, 0
        self._session = max(self._session + 1, time.time_ns())
        for step in range(1, int((last - first) / STEP_S) + 2):
            end = first + step * STEP_S
            await asyncio.sleep(began + (end - first) / self._speed - loop.time())
            until = int(np.searchsorted(latest, end, side="right"))
            self._watch(samples[fed:until])
            made = self._joined(front.feed(samples[fed:until]), front.advance(end) if end <= last else None)
            if len(made):
                deliver(RawRows(self._session, number, made.values, t=made.t))
            fed, number = until, number + len(made)
        deliver(RawRows(self._session, number, np.zeros((0, len(NAMES))), end=True))

    @staticmethod
    def _joined(rows: Rows, more: Rows | None) -> Rows:
        if more is None or len(more) == 0:
            return rows
        return Rows(np.concatenate([rows.t, more.t]), np.concatenate([rows.values, more.values]))
