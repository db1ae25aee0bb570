"""What is left in released gaze: whose events they are, where people looked, how the eye moved, where it goes next."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from eyestream.gaze.events import Fixation, Saccade
from eyestream.gaze.labels import detect
from eyestream.lab.releases.measures import right
from eyestream.lab.study.people.gaze_events import events_of
from eyestream.lab.study.people.rbfn import EventNetworks
from eyestream.offline.corpora.saliency import Field
from eyestream.rim.files.gaze import GazeRecording

__all__ = ["STATISTICS", "GazePeople", "predicted_deg", "recognised_by_events", "saliency_kl", "statistics"]

Array = NDArray[np.float64]
GazePeople = Mapping[str, Mapping[str, GazeRecording]]
"""Recordings by person and task; the same people and tasks for everybody."""

STATISTICS = ("fixations a second", "mean fixation in s", "saccades a second", "mean saccade in degrees")
AHEAD_S, SEEN = 0.15, 10
_FIELD = Field(cell_deg=2.0)


def _xy(recording: GazeRecording) -> Array:
    samples = recording.samples
    return np.where(samples.valid, (samples.x, samples.y), np.nan).T


def recognised_by_events(
    known: GazePeople, unknown: Sequence[GazePeople], splits: Sequence[tuple[list[str], list[str]]]
) -> Array:
    """(u, s) share of people whom networks on events name rightly, learned from `known` in each split of the tasks."""
    people = sorted(known)
    events = [
        {(name, task): events_of(r.samples.t, *_xy(r).T) for name in people for task, r in one[name].items()}
        for one in (known, *unknown)
    ]
    found = []
    for seed, (learn, test) in enumerate(splits):
        networks = EventNetworks([[events[0][name, task] for task in learn] for name in people], seed)
        scores = [
            [np.mean([networks.scores(own[name, task]) for task in test], axis=0) for name in people]
            for own in events[1:]
        ]
        found.append([right(np.array(one)) for one in scores])
    return np.array(found).T


def saliency_kl(raw: GazePeople, released: GazePeople) -> float:
    """Kullback-Leibler divergence of released maps from raw ones, nats; mean over tasks, half a sample a cell added."""
    maps: list[dict[str, Array]] = []
    for one in (raw, released):
        found: dict[str, Array] = defaultdict(lambda: np.full(_FIELD.shape, 0.5))
        for tasks in one.values():
            for task, recording in tasks.items():
                xy = _xy(recording)
                found[task] += _FIELD.counts(xy[np.isfinite(xy).all(axis=1)])
        maps.append({task: counts / counts.sum() for task, counts in found.items()})
    before, after = maps
    return float(np.mean([(p * np.log(p / after[task])).sum() for task, p in before.items()]))


def statistics(people: GazePeople) -> dict[str, float]:
    """`STATISTICS`, means over recordings that have such events."""
    lines = []
    for tasks in people.values():
        for recording in tasks.values():
            profile = recording.profile
            events, _ = detect(profile, recording.samples, profile.detection.algorithm)
            seconds = max(float(np.ptp(recording.samples.t)), 1e-9)
            fixations = [event.duration_s for event in events if isinstance(event, Fixation)]
            saccades = [float(np.hypot(event.dx, event.dy)) for event in events if isinstance(event, Saccade)]
            means = [float(np.mean(own)) if own else np.nan for own in (fixations, saccades)]
            lines.append([len(fixations) / seconds, means[0], len(saccades) / seconds, means[1]])
    table = np.array(lines)
    there = np.isfinite(table)
    mean = np.where(there, table, 0.0).sum(axis=0) / np.maximum(there.sum(axis=0), 1)
    return dict(zip(STATISTICS, mean.tolist(), strict=True))


def predicted_deg(known: GazePeople, raw: GazePeople) -> float:
    """Mean error of where the eye of somebody else is `AHEAD_S` later, by least squares on the last `SEEN` samples.

    Learned from `known` gaze of every second person, tested on `raw` gaze of the others.
    """
    people = sorted(raw)
    learned = [_windows(known[name][task]) for name in people[::2] for task in known[name]]
    inputs, targets = (np.concatenate(parts) for parts in zip(*learned, strict=True))
    weights = np.linalg.lstsq(inputs, targets, rcond=None)[0]
    apart = []
    for name in people[1::2]:
        for recording in raw[name].values():
            own, where = _windows(recording)
            apart.append(np.hypot(*(own @ weights - where).T))
    return float(np.concatenate(apart).mean())


def _windows(recording: GazeRecording) -> tuple[Array, Array]:
    """(m, 2 `SEEN`) samples and (m, 2) later gaze, both less the last sample; windows without a loss alone."""
    xy, ahead = _xy(recording), max(1, round(AHEAD_S * recording.profile.fixed_rate_hz))
    count = max(len(xy) - SEEN - ahead + 1, 0)
    at = np.arange(count)[:, None] + np.arange(SEEN)
    last = xy[at[:, -1]]
    inputs = (xy[at] - last[:, None]).reshape(count, 2 * SEEN)
    targets = xy[at[:, -1] + ahead] - last
    whole = np.isfinite(inputs).all(axis=1) & np.isfinite(targets).all(axis=1)
    return inputs[whole], targets[whole]
