"""Streams of gaze as trackers send them, and their neighbours, which differ in one event.

A stream is at any rate, of a clock that drifts and is off by years, with jitter, losses, samples that do not come while
the eye is lost, two data of one frame, in portions of any size, on a way whose length depends on the eye. In its
neighbour everything that has a time within one event is another: gaze, latencies, numbers. What has a time outside of
it is the same, and arrives at the same moments.
"""

import dataclasses
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "RATES_HZ",
    "Event",
    "Sent",
    "glimpse",
    "more_data",
    "neighbour",
    "ordinary",
    "set_by",
    "shorter_way",
    "stream",
]

Array = NDArray[np.float64]

RATES_HZ = (30.0, 60.0, 120.0, 200.0, 1000.0)


@dataclass(frozen=True, eq=False)
class Sent:
    """n samples in the order of their arrival.

    Attributes
    ----------
    t
        (n,) on the tracker's clock.
    gaze
        (n, 2) degrees; NaN is a lost eye.
    pupil
        (n,) mm.
    arrived
        (n,) on the host's clock, whole microseconds; those of one moment come as one portion.
    """

    t: Array
    gaze: Array
    pupil: Array
    arrived: Array

    def picked(self, which: NDArray[np.bool_] | NDArray[np.intp]) -> "Sent":
        """Some of them."""
        return Sent(self.t[which], self.gaze[which], self.pupil[which], self.arrived[which])

    @staticmethod
    def joined(parts: "list[Sent]") -> "Sent":
        """All of them, in the order of their arrival."""
        columns = ([getattr(part, field.name) for part in parts] for field in dataclasses.fields(Sent))
        every = Sent(*(np.concatenate(column) for column in columns))
        return every.picked(np.argsort(every.arrived, kind="stable"))


@dataclass(frozen=True)
class Event:
    """A span of the tracker's time, in seconds: [begin, end)."""

    begin: float
    end: float

    def inside(self, sent: Sent) -> NDArray[np.bool_]:
        """Which samples have a time within it."""
        return (sent.t >= self.begin) & (sent.t < self.end)


def ordinary(rate_hz: float, seconds: float) -> Sent:
    """Of a person like any other, from 1 s on; each sample arrives 8 ms after it was taken, and a little."""
    rng = np.random.default_rng(1)
    t = 1.0 + np.arange(int(seconds * rate_hz)) / rate_hz
    arrived = np.maximum.accumulate(t + 0.008 + rng.exponential(5e-4, len(t)))
    return Sent(t, _path(rng, len(t), rate_hz), np.full(len(t), 3.0), _whole(arrived))


def shorter_way(sent: Sent, event: Event) -> tuple[Sent, Sent]:
    """The eye is shut during an event; without and with samples that come 5 ms sooner then, in order all the same."""
    inside = event.inside(sent)
    shut = dataclasses.replace(sent, gaze=np.where(inside[:, None], np.nan, sent.gaze))
    sooner = np.maximum.accumulate(np.where(inside, sent.arrived - 0.005, sent.arrived))
    return shut, dataclasses.replace(shut, arrived=_whole(sooner))


def more_data(sent: Sent, event: Event, more: int) -> Sent:
    """During an event so many more data come with each, of other places and nearly its time."""
    second = event.inside(sent).nonzero()[0].repeat(more)
    several = sent.picked(second)
    after = np.tile(np.arange(1.0, more + 1.0), len(second) // more) / (more + 1) * (sent.t[1] - sent.t[0])
    t = np.minimum(several.t + after, np.nextafter(event.end, event.begin))
    return Sent.joined([sent, dataclasses.replace(several, t=t, gaze=several.gaze + 1.5)])


def glimpse(sent: Sent, event: Event, silence_s: tuple[float, float], late_s: float) -> tuple[Sent, Sent]:
    """The eye is lost before and after an event, in silence; without and with samples that take longer in it."""
    before, after = silence_s
    lost = (sent.t >= event.begin - before) & (sent.t < event.end + after) & ~event.inside(sent)
    seen = sent.picked(~lost)
    late = np.where(event.inside(seen), late_s + 0.06 * (seen.t - event.begin), 0.0)
    other = dataclasses.replace(seen, arrived=_whole(seen.arrived + late))
    return seen, Sent.joined([other])


def set_by(sent: Sent, when: float, step_s: float) -> Sent:
    """A tracker whose clock is set at a time of its own."""
    return dataclasses.replace(sent, t=np.where(sent.t >= when, sent.t + step_s, sent.t))


def stream(rng: np.random.Generator, rate_hz: float, seconds: float) -> Sent:
    """What a tracker may send, from 1 s of the host's clock on."""
    period, n = 1.0 / rate_hz, int(rate_hz * seconds)
    true = 1.0 + np.arange(n) * period + period * rng.choice([0.0, 0.05, 0.2]) * rng.normal(0.0, 1.0, n)
    true = np.sort(true)
    gaze, lost = _path(rng, n, rate_hz), _spans(rng, n, rate_hz, 0.4)
    gaze[lost] = np.nan
    pupil = np.where(lost, np.nan, 3.0 + 0.3 * np.sin(true) + rng.normal(0.0, 0.02, n))
    latency = rng.uniform(0.001, 0.03) + rng.exponential(rng.choice([1e-4, 0.002, 0.008]), n)
    latency[lost] += rng.choice([-0.005, 0.0, 0.02])  # the way is shorter, or longer, while the eye is shut
    clock = rng.choice([0.0, 1.7e9, -3e8]) + rng.uniform(0.0, 1e3)
    t = clock + true * (1.0 + 1e-6 * rng.choice([0.0, -100.0, 100.0, 300.0]))
    in_order = rng.random() < 0.8
    arrived = true + np.maximum(latency, 0.0)
    sent = Sent(t, gaze, pupil, np.maximum.accumulate(arrived) if in_order else arrived)
    if rng.random() < 0.3:  # a tracker that is silent while the eye is lost
        sent = sent.picked(~lost)
    if rng.random() < 0.5:
        sent = _doubled(rng, sent, _spans(rng, len(sent.t), rate_hz, 0.3), period)
    if not in_order:
        return Sent.joined([dataclasses.replace(sent, arrived=_whole(sent.arrived))])
    portion = int(rng.choice([1, 1, 3, 16, max(1, rate_hz // 4), max(1, rate_hz // 2)]))
    last = np.minimum(np.arange(len(sent.t)) // portion * portion + portion, len(sent.t)) - 1
    return dataclasses.replace(sent, arrived=_whole(sent.arrived[last]))


def neighbour(rng: np.random.Generator, sent: Sent, event: Event, rate_hz: float) -> Sent:
    """The same, but for what has a time within the event, or none and came within it."""
    inside = event.inside(sent)
    arrivals, spared = sent.arrived[inside], sent.picked(~inside)
    if not inside.any():
        return sent
    begin, end = float(arrivals.min()), float(arrivals.max())
    times = sent.t[inside] if rng.random() < 0.7 else np.sort(rng.uniform(event.begin, event.end, inside.sum()))
    times = np.sort(np.repeat(times, rng.choice([0, 1, 1, 2, 3, 30])))
    n = len(times)
    gaze = rng.normal(0.0, 5.0, 2) + rng.normal(0.0, rng.choice([0.0, 0.02, 3.0]), (n, 2))
    gaze[_spans(rng, n, rate_hz, 0.3) if rng.random() < 0.5 else np.full(n, rng.random() < 0.3)] = np.nan
    if rng.random() < 0.3:  # the second datum of a frame is of nearly its time
        times[1::2] = np.nextafter(times[1::2], event.begin) if rng.random() < 0.5 else times[1::2] + 1e-4
        times = np.minimum(times, np.nextafter(event.end, event.begin))
    arrived = begin + (times - event.begin) / (event.end - event.begin) * (end - begin)
    kind = rng.integers(5)
    if kind == 0:
        arrived = arrived + rng.choice([-0.005, 0.005, 0.02])
    elif kind == 1:  # in any order
        arrived = arrived + rng.uniform(0.0, 0.3, n)
    elif kind == 2:  # too late
        arrived = arrived + np.where(rng.random(n) < 0.5, rng.uniform(0.9, 1.5), 0.0)
    elif kind == 3:  # all at once
        arrived = np.full(n, end)
    none = rng.random(n) < rng.choice([0.0, 0.0, 0.3])
    other = Sent(np.where(none, np.nan, times), gaze, np.where(none, 9.0, 4.0), _whole(np.maximum(arrived, begin)))
    return Sent.joined([spared, other])


def _path(rng: np.random.Generator, n: int, rate_hz: float) -> Array:
    """(n, 2) of gaze: fixations and jumps, here and there a pursuit or a lid."""
    lengths = rng.uniform(0.08, 0.7, n)
    which = np.searchsorted(np.cumsum(lengths), np.arange(n) / rate_hz)
    speed = np.where(rng.random((n, 2)) < 0.1, rng.normal(0.0, 20.0, (n, 2)), 0.0)
    since = np.arange(n) / rate_hz - (np.cumsum(lengths) - lengths)[which]
    path = rng.normal(0.0, 6.0, (n, 2))[which] + speed[which] * since[:, None] + rng.normal(0.0, 0.03, (n, 2))
    path[_spans(rng, n, rate_hz, 0.35), 1] -= 6.0  # the lid, down and up
    return np.asarray(path)


def _spans(rng: np.random.Generator, n: int, rate_hz: float, longest_s: float) -> NDArray[np.bool_]:
    """Here and there some in succession, about every three seconds."""
    found = np.zeros(n, dtype=np.bool_)
    for begin in np.flatnonzero(rng.random(n) < 0.3 / rate_hz).tolist():
        found[begin : begin + 1 + int(rng.uniform(0.0, longest_s) * rate_hz)] = True
    return found


def _doubled(rng: np.random.Generator, sent: Sent, which: NDArray[np.bool_], period: float) -> Sent:
    """Where both eyes have a datum of their own: another one soon after each, of somewhere else."""
    second = sent.picked(which)
    apart = rng.normal(0.0, 1.0, second.gaze.shape)
    return Sent.joined([sent, dataclasses.replace(second, t=second.t + 0.4 * period, gaze=second.gaze + apart)])


def _whole(seconds: Array) -> Array:
    """Whole microseconds: the simulated clock then shows them exactly, however often it was read before."""
    return np.round(seconds * 1e6) / 1e6
