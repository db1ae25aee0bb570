"""A front end that is not shipped: in each quarter of a second, whether the eye was on the right; NaN where lost."""

import hashlib

import numpy as np

from eyestream.gaze.entry import FrontEndEntry, Rows
from eyestream.gaze.profile import TICKS_PER_S, Profile
from eyestream.gaze.samples import Samples
from eyestream.gaze.timeline import TimeCounters, Timeline
from eyestream.streams import FrontEndMark

__all__ = ["RIGHT", "STEP_S"]

STEP_S = 0.25
_STEP = round(STEP_S * TICKS_PER_S)


class _Right:
    """One session: samples are counted by side and by step."""

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
        for tick, x, seen in zip(ticks, samples.x[which], samples.valid[which], strict=True):
            self._counts.setdefault(max(1, -(-int(tick) // _STEP)), [0, 0, 0])[int(x > 0) if seen else 2] += 1
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
            left, right, lost = self._counts.pop(self._next, [0, 0, 0])
            self.came = left + right + lost
            t.append(self._timeline.seconds(self._next * _STEP))
            values.append([float(right > left) if left + right else np.nan])
            self._next += 1
        return Rows(np.array(t), np.array(values).reshape(-1, 1))


def _mark(profile: Profile) -> FrontEndMark:
    own, any_tracker = (hashlib.sha256(text.encode()).hexdigest()[:16] for text in (f"right, {profile}", "right"))
    return FrontEndMark(profile.name, own, any_tracker)


RIGHT = FrontEndEntry(
    name="right",
    names=("right",),
    units=("1",),
    step_s=STEP_S,
    window_s=STEP_S,
    memory_s=lambda profile: profile.live_reach_s,
    mark=_mark,
    make=lambda profile, longest_step_s, origin_s: _Right(longest_step_s, origin_s),
)
