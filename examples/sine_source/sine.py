"""A source of one's own: rows that swing slowly, one a period of the stream, without any tracker.

In the configuration, with this folder on the PYTHONPATH:

    [[source]]
    kind = "sine:SINE"
    device = "hmd-0000000000"
    [source.options]
    period_s = 60.0
"""

import asyncio
import math
import time
from typing import Annotated

import msgspec
import numpy as np

from eyestream.rim.sources.source import Deliver, SourceKind
from eyestream.streams import StreamSpec
from eyestream.wire.raw import RawRows

__all__ = ["SINE", "SineSource"]


class Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``period_s``: seconds of one swing; ``blind_every``: of so many rows one is lost, as in a blink; 0: none."""

    period_s: Annotated[float, msgspec.Meta(gt=0)] = 10.0
    blind_every: Annotated[int, msgspec.Meta(ge=0)] = 0


class SineSource:
    """Every feature swings between 0 and 1, each a little later than the one before."""

    def __init__(self, options: Options, spec: StreamSpec) -> None:
        self._options, self._spec = options, spec

    async def run(self, deliver: Deliver) -> None:
        """Deliver a row at every sampling instant, until cancelled."""
        loop, session, number = asyncio.get_running_loop(), time.time_ns(), 0
        began, delay = loop.time(), np.arange(self._spec.features)
        while True:
            seconds = number / self._spec.rate_hz
            await asyncio.sleep(began + seconds - loop.time())
            row = 0.5 + 0.5 * np.sin(2 * math.pi * seconds / self._options.period_s - delay)
            if self._options.blind_every and number % self._options.blind_every == 0:
                row[:] = math.nan  # a lost eye is a row of NaN: a missing row would tell when
            deliver(RawRows(session, number, row[None, :], t=np.array([time.time()])))
            number += 1


SINE = SourceKind("sine", Options, SineSource)
