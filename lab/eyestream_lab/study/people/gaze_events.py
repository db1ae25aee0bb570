"""Fixations and saccades of gaze samples, and the 51 figures of each that recognise people.

Events by velocity (I-VT, threshold and shortest fixation of George and Routray, Pattern Recognition Letters 82, 2016).
Figures of Al Zaidawi, Prinzler, Luehrs, Maneth (ETRA 2022, table 2, the first 51), first derivatives by forward
differences. A saccade takes the sample before it and the one after it along: at 30 to 60 samples a second it would have
too few otherwise.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

FEATURES = 51
_THRESHOLD_DEG_PER_S = 50.0
_SHORTEST_FIXATION_S = 0.1
_FEWEST_SAMPLES = 4
_LONGEST_GAP_S = 0.1


class EventFigures(NamedTuple):
    """Figures of one recording: (events, 51) each, in their order."""

    fixations: Array
    saccades: Array


def events_of(t: Array, x: Array, y: Array) -> EventFigures:
    """Events of (n,) seconds and degrees; lost samples are NaN. A gap of 0.1 s ends an event."""
    seen = np.isfinite(x) & np.isfinite(y)
    t, x, y = t[seen], x[seen], y[seen]
    if len(t) < _FEWEST_SAMPLES:
        return EventFigures(np.zeros((0, FEATURES)), np.zeros((0, FEATURES)))
    step = np.maximum(np.diff(t), 1e-6)
    fast = np.hypot(np.diff(x), np.diff(y)) / step > _THRESHOLD_DEG_PER_S
    kind = np.where(step > _LONGEST_GAP_S, -1, fast)  # of the way from each sample to the next
    edges = np.concatenate(([0], np.flatnonzero(np.diff(kind)) + 1, [len(kind)]))
    first, last, own = edges[:-1], edges[1:], kind[edges[:-1]]
    begin, end = np.maximum(first - own, 0), np.minimum(last + 1 + own, len(t))
    long = (own == 1) | (t[last] - t[first] >= _SHORTEST_FIXATION_S)
    kept = (own >= 0) & long & (end - begin >= _FEWEST_SAMPLES)
    chosen = [kept & (own == kind) for kind in (0, 1)]
    return EventFigures(*(_figures(t, x, y, begin[one], (end - begin)[one]) for one in chosen))


@dataclass(frozen=True)
class _Runs:
    """Values of several events one after the other, and how many (m,) each has: one or more."""

    values: Array
    counts: NDArray[np.intp]

    @cached_property
    def begin(self) -> NDArray[np.intp]:
        return np.cumsum(self.counts) - self.counts

    def sums(self, values: Array) -> Array:
        """(m,) of other values of the same events."""
        return np.asarray(np.add.reduceat(values, self.begin))

    @cached_property
    def mean(self) -> Array:
        return self.sums(self.values) / self.counts

    @cached_property
    def apart(self) -> Array:
        return self.values - np.repeat(self.mean, self.counts)

    @cached_property
    def sd(self) -> Array:
        return np.sqrt(self.sums(self.apart**2) / self.counts)

    @cached_property
    def largest(self) -> Array:
        return np.asarray(np.maximum.reduceat(self.values, self.begin))

    @cached_property
    def spread(self) -> Array:
        return np.asarray(self.largest - np.minimum.reduceat(self.values, self.begin))

    def median(self) -> Array:
        """(m,)"""
        order = np.lexsort((self.values, np.repeat(np.arange(len(self.counts)), self.counts)))
        low, high = (order[self.begin + half // 2] for half in (self.counts - 1, self.counts))
        return np.asarray((self.values[low] + self.values[high]) / 2)

    def standard_moment(self, power: int) -> Array:
        """(m,); 0 where nothing varies."""
        varies = self.sd > 1e-9
        scaled = self.apart / np.repeat(np.where(varies, self.sd, 1.0), self.counts)
        return np.where(varies, self.sums(scaled**power) / self.counts, 0.0)

    def moments(self) -> list[Array]:
        """Six figures."""
        return [self.mean, self.median(), self.largest, self.sd, self.standard_moment(3), self.standard_moment(4)]

    def slopes(self, steps: "_Runs | None" = None) -> "_Runs":
        """From each value of an event to its next, divided by `steps` where there are any."""
        inner = np.ones(len(self.values), dtype=bool)
        inner[self.begin + self.counts - 1] = False
        slopes = np.diff(self.values, append=0.0)[inner]
        return _Runs(slopes if steps is None else slopes / steps.values, self.counts - 1)


def _figures(t: Array, x: Array, y: Array, begin: NDArray[np.intp], counts: NDArray[np.intp]) -> Array:
    """(m, 51) figures of m events of one kind, each of at least four samples."""
    if len(begin) == 0:
        return np.zeros((0, FEATURES))
    at = np.arange(counts.sum()) + np.repeat(begin - (np.cumsum(counts) - counts), counts)
    xs, ys = _Runs(x[at], counts), _Runs(y[at], counts)
    last = begin + counts - 1
    duration, dx, dy = np.maximum(t[last] - t[begin], 1e-6), x[last] - x[begin], y[last] - y[begin]
    angle = np.arctan2(dy, dx)
    away = np.hypot(np.diff(xs.mean, prepend=xs.mean[:1]), np.diff(ys.mean, prepend=ys.mean[:1]))
    turn = (np.diff(angle, prepend=angle[:1]) + np.pi) % (2 * np.pi) - np.pi
    ways = xs.slopes(), ys.slopes()
    path = ways[0].sums(np.hypot(ways[0].values, ways[1].values))
    steps = _Runs(np.maximum(_Runs(t[at], counts).slopes().values, 1e-6), counts - 1)
    vx, vy = xs.slopes(steps), ys.slopes(steps)
    speed = _Runs(np.hypot(vx.values, vy.values), counts - 1)
    later = _Runs(np.delete(steps.values, steps.begin), counts - 2)
    ax, ay, gain = (one.slopes(later) for one in (vx, vy, speed))
    shape = [duration, path, *(one.standard_moment(power) for power in (3, 4) for one in (xs, ys)), xs.sd, ys.sd]
    shape += [speed.largest / duration, angle, np.hypot(dx, dy), xs.spread + ys.spread, away, turn, path / duration]
    moments = [figure for signal in (speed, vx, vy, gain, ax, ay) for figure in signal.moments()]
    return np.stack(shape + moments, axis=1)
