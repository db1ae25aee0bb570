"""``kind = "recording"``: a recording as if live, again and again when it is told to."""

import asyncio
import time
from pathlib import Path
from typing import Annotated

import msgspec
import numpy as np

from eyestream.errors import ConfigError
from eyestream.rim.files import recordings
from eyestream.rim.sources.source import Deliver, SourceKind
from eyestream.streams import StreamSpec, same_rate
from eyestream.wire.raw import RawRows


class RecordingOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``file``: the recording; ``speed``: 1 is real time; ``repeat``: at its end it begins again, in a new session."""

    file: Path
    speed: Annotated[float, msgspec.Meta(gt=0)] = 1.0
    repeat: bool = False


class RecordingSource:
    """Rows of a recording at their times.

    Parameters
    ----------
    options
        Of the table.
    spec
        Of the stream; the recording has its features at its rate.

    Raises
    ------
    ConfigError
        The recording has other features, or another rate.
    RecordingError
        The file is no recording.
    """

    def __init__(self, options: RecordingOptions, spec: StreamSpec) -> None:
        self._options = options
        self._recording = recordings.load(options.file)
        if self._recording.names != spec.names:
            raise ConfigError(f"{options.file}: expected the features of the stream, in the same order")
        if not same_rate(self._recording.rate_hz, spec.rate_hz):
            raise ConfigError(f"{options.file}: has {self._recording.rate_hz:g} rows a second, not {spec.rate_hz:g}")
        self._rate_hz = spec.rate_hz
        self._session = 0

    async def run(self, deliver: Deliver) -> None:
        """Deliver all rows once, or without end."""
        while True:
            await self._once(deliver)
            if not self._options.repeat:
                return

    async def _once(self, deliver: Deliver) -> None:
        loop, t = asyncio.get_running_loop(), self._recording.t
        numbers = np.rint((t - t[0]) * self._rate_hz).astype(np.int64)
        first = np.concatenate([[True], np.diff(numbers) > 0])
        began = loop.time()
        self._session = max(self._session + 1, time.time_ns())
        for index in np.flatnonzero(first):
            await asyncio.sleep(began + (t[index] - t[0]) / self._options.speed - loop.time())
            row = self._recording.features[index : index + 1]
            deliver(RawRows(self._session, int(numbers[index]), row, t=t[index : index + 1]))
        nothing = self._recording.features[:0]
        deliver(RawRows(self._session, int(numbers[-1]) + 1, nothing, end=True))


RECORDING = SourceKind("recording", RecordingOptions, RecordingSource)
