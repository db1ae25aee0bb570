"""Fixations and saccades of gaze samples, and the 51 figures of each that recognise people.

Events by velocity (I-VT, threshold and shortest fixation of George and Routray, Pattern Recognition Letters 82, 2016).
Figures of Al Zaidawi, Prinzler, Luehrs, Maneth (ETRA 2022, table 2, the first 51), first derivatives by forward
differences. A saccade takes the sample before it and the one after it along: at 30 to 60 samples a second it would have
too few otherwise.
"""

import itertools
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["FEATURES", "Events", "events_of"]

Array = NDArray[np.float64]

FEATURES = 51
_THRESHOLD_DEG_PER_S = 50.0
_SHORTEST_FIXATION_S = 0.1
_FEWEST_SAMPLES = 4
_LONGEST_GAP_S = 0.1


class Events(NamedTuple):
    """Of one recording: (events, 51) each, in their order."""

    fixations: Array
    saccades: Array


def events_of(t: Array, x: Array, y: Array) -> Events:
    """Events of (n,) seconds and degrees; lost samples are NaN. A gap of 0.1 s ends an event."""
    seen = np.isfinite(x) & np.isfinite(y)
    t, x, y = t[seen], x[seen], y[seen]
    if len(t) < _FEWEST_SAMPLES:
        return Events(np.zeros((0, FEATURES)), np.zeros((0, FEATURES)))
    step = np.maximum(np.diff(t), 1e-6)
    fast = np.hypot(np.diff(x), np.diff(y)) / step > _THRESHOLD_DEG_PER_S
    gap = step > _LONGEST_GAP_S
    kind = np.where(gap, -1, fast)  # of the way from each sample to the next
    edges = [0, *(np.flatnonzero(kind[1:] != kind[:-1]) + 1).tolist(), len(kind)]
    found: dict[int, list[Array]] = {0: [], 1: []}
    before: dict[int, tuple[float, float, float] | None] = {0: None, 1: None}
    for first, last in itertools.pairwise(edges):
        own = int(kind[first])
        samples = slice(max(first - own, 0), min(last + 1 + own, len(t)))
        short = own == 0 and t[last] - t[first] < _SHORTEST_FIXATION_S
        if own < 0 or short or samples.stop - samples.start < _FEWEST_SAMPLES:
            continue
        figures, here = _figures(t[samples], x[samples], y[samples], before[own])
        before[own] = here
        found[own].append(figures)
    return Events(*(np.array(found[own]).reshape(-1, FEATURES) for own in (0, 1)))


Place = tuple[float, float, float]
"""Centroid of an event, and its angle."""


def _figures(t: Array, x: Array, y: Array, before: Place | None) -> tuple[Array, Place]:
    """(51,) figures of an event of at least four samples, and its place."""
    step = np.maximum(np.diff(t), 1e-6)
    dx, dy = x[-1] - x[0], y[-1] - y[0]
    angle, duration = float(np.arctan2(dy, dx)), max(float(t[-1] - t[0]), 1e-6)
    centroid = float(x.mean()), float(y.mean())
    away, turn = 0.0, 0.0
    if before is not None:
        away = float(np.hypot(centroid[0] - before[0], centroid[1] - before[1]))
        turn = float((angle - before[2] + np.pi) % (2 * np.pi) - np.pi)
    path = float(np.hypot(np.diff(x), np.diff(y)).sum())
    vx, vy = np.diff(x) / step, np.diff(y) / step
    speed = np.hypot(vx, vy)
    later = step[1:]
    ax, ay, gain = (np.diff(v) / later for v in (vx, vy, speed))
    shape = [duration, path, _skew(x), _skew(y), _kurtosis(x), _kurtosis(y), x.std(), y.std()]
    shape += [speed.max() / duration, angle, np.hypot(dx, dy), np.ptp(x) + np.ptp(y), away, turn, path / duration]
    moments = [figure for signal in (speed, vx, vy, gain, ax, ay) for figure in _moments(signal)]
    return np.array(shape + moments), (*centroid, angle)


def _moments(signal: Array) -> list[float]:
    return [signal.mean(), float(np.median(signal)), signal.max(), signal.std(), _skew(signal), _kurtosis(signal)]


def _skew(values: Array) -> float:
    return _standard_moment(values, 3)


def _kurtosis(values: Array) -> float:
    return _standard_moment(values, 4)


def _standard_moment(values: Array, power: int) -> float:
    """0 where nothing varies."""
    apart = values - values.mean()
    sd = float(np.sqrt((apart * apart).mean()))
    return float(((apart / sd) ** power).mean()) if sd > 1e-9 else 0.0
