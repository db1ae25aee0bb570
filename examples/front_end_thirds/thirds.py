"""A front end that lives outside the package: in each half second, which third of the field the eye was on.

It is named in a configuration as ``front_end = "thirds:THIRDS"``, with this folder in PYTHONPATH. A row has one number:
0 left, 1 middle, 2 right, and NaN where the eye was lost. Row k describes the half second that ends (k + 1) / 2 seconds
after the session's first sample.
"""

import hashlib
import math

import numpy as np

from eyestream.gaze.entry import FrontEndEntry, Rows
from eyestream.gaze.profile import TICKS_PER_S, Profile
from eyestream.gaze.samples import Samples
from eyestream.gaze.timeline import TimeCounters, Timeline
from eyestream.streams import FrontEndMark

__all__ = ["EDGE_DEG", "THIRDS"]

EDGE_DEG = 10.0
"""From straight ahead to where the left and the right third begin."""

_STEP_S = 0.5
_STEP = round(_STEP_S * TICKS_PER_S)


class _Thirds:
    """One session: samples are counted by third and by step; a step is (t - 0.5 s, t]."""

    def __init__(self, longest_step_s: float, origin_s: float | None) -> None:
        self._timeline = Timeline(longest_step_s, origin_s)
        self._counts: dict[int, list[int]] = {}
        self._next, self.came = 1, 0

    @property
    def counters(self) -> TimeCounters:
        """What became of the samples."""
        return self._timeline.counters

    def feed(self, samples: Samples) -> Rows:
        """Take samples; the rows that are due at the time of the last one."""
        ticks, which = self._timeline.take(samples.t)
        x, seen = samples.x[which], samples.valid[which]
        for tick, third, there in zip(ticks, (x > -EDGE_DEG).astype(int) + (x > EDGE_DEG), seen, strict=True):
            counts = self._counts.setdefault(max(1, -(-int(tick) // _STEP)), [0, 0, 0, 0])
            counts[int(third) if there else 3] += 1
        return self._due()

    def advance(self, now_s: float, samples: Samples | None = None) -> Rows:
        """Take samples, none after `now_s`; the rows that are due then."""
        before = self.feed(samples) if samples is not None else self._due()
        self._timeline.clock = max(self._timeline.clock, self._timeline.tick_of(now_s))
        after = self._due()
        return Rows(np.concatenate([before.t, after.t]), np.concatenate([before.values, after.values]))

    def _due(self) -> Rows:
        t, values = [], []
        while self._next * _STEP <= self._timeline.clock:
            counts = self._counts.pop(self._next, [0, 0, 0, 0])
            self.came = sum(counts)
            t.append(self._timeline.seconds(self._next * _STEP))
            values.append([float(np.argmax(counts[:3])) if any(counts[:3]) else math.nan])
            self._next += 1
        return Rows(np.array(t), np.array(values).reshape(-1, 1))


def _mark(profile: Profile) -> FrontEndMark:
    """The rows depend on what degrees are, and on nothing else of the tracker."""
    version = f"thirds 1, edge {EDGE_DEG}, step {_STEP_S}"
    own, any_tracker = (hashlib.sha256(text.encode()).hexdigest()[:16] for text in (f"{version}, {profile}", version))
    return FrontEndMark(profile.name, own, any_tracker)


THIRDS = FrontEndEntry(
    name="thirds",
    names=("third",),
    units=("1",),
    step_s=_STEP_S,
    window_s=_STEP_S,
    memory_s=lambda profile: profile.live_reach_s,
    mark=_mark,
    make=lambda profile, longest_step_s, origin_s: _Thirds(longest_step_s, origin_s),
)
