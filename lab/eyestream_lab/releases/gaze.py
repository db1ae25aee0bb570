"""Rests in released gaze: whose events they are, where people looked, how the eye moved, where it goes next.

A measure has a value for each person, in the order of their names, except the one that compares maps of all people.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from eyestream.gaze.events import Fixation, Saccade
from eyestream.rim.files.gaze import GazeRecording
from eyestream_lab.corpora.kinds import Map
from eyestream_lab.corpora.saliency import Field
from eyestream_lab.events.labels import detect
from eyestream_lab.releases.measures import right
from eyestream_lab.study.people.gaze_events import EventFigures, events_of
from eyestream_lab.study.people.rbfn import EventNetworks

Array = NDArray[np.float64]
GazePeople = Mapping[str, Mapping[str, GazeRecording]]
"""Recordings by person and task; the same people and tasks for everybody."""
EventsOf = Mapping[tuple[str, str], EventFigures]
"""Events by person and task."""

Maps = Mapping[str, Array]
"""Samples on each cell, by task."""

EVENTS = "networks on events"
"""The attacker of the papers on samples."""

STATISTICS = ("fixations a second", "mean fixation in s", "saccades a second", "mean saccade in degrees")
AHEAD_S, SEEN = 0.15, 10
_FIELD = Field(cell_deg=2.0)


def places(recording: GazeRecording) -> Array:
    """(n, 2) degrees, NaN where lost."""
    samples = recording.samples
    return np.where(samples.valid, (samples.x, samples.y), np.nan).T


def events_in(people: GazePeople) -> EventsOf:
    """The events of all recordings."""
    return {
        (name, task): events_of(recording.samples.t, *places(recording).T)
        for name, tasks in people.items()
        for task, recording in tasks.items()
    }


def recognised_by_events(
    known: EventsOf, unknown: Sequence[EventsOf], splits: Sequence[tuple[list[str], list[str]]]
) -> Array:
    """(u, N) share of splits in which networks on events, learned from `known`, name each person rightly."""
    people, found = sorted({name for name, _ in known}), []
    for seed, (learn, test) in enumerate(splits):
        networks = EventNetworks([[known[name, task] for task in learn] for name in people], seed)
        scores = [
            [np.mean([networks.scores(own[name, task]) for task in test], axis=0) for name in people] for own in unknown
        ]
        found.append([right(np.array(one)) for one in scores])
    return np.asarray(np.mean(found, axis=0))


def saliency(people: GazePeople) -> Maps:
    """Samples on each cell of the field, by task, of all people."""
    found: dict[str, Array] = defaultdict(lambda: np.zeros(_FIELD.shape))
    for tasks in people.values():
        for task, recording in tasks.items():
            xy = places(recording)
            found[task] += _FIELD.counts(xy[np.isfinite(xy).all(axis=1)])
    return dict(found)


def shares_on_cells(found: Map) -> Array:
    """A released map on the cells of the field."""
    columns, rows = ((edges[1:] + edges[:-1]) / 2 for edges in (found.x_deg, found.y_deg))
    x, y = _FIELD.edges()
    counts = np.histogram2d(
        np.repeat(rows, len(columns)), np.tile(columns, len(rows)), bins=(y[::-1], x), weights=found.density.ravel()
    )[0]
    return np.asarray(counts[::-1])


def saliency_kl(raw: Maps, released: Maps) -> float:
    """Kullback-Leibler divergence of released maps from raw ones, nats; mean over tasks.

    Each map counts as many samples as the raw one of its task, and half a sample more on each cell.
    """
    found = []
    for task, counts in raw.items():
        total = max(float(released[task].sum()), 1e-12)
        p, q = counts + 0.5, released[task] * (counts.sum() / total) + 0.5
        p, q = p / p.sum(), q / q.sum()
        found.append((p * np.log(p / q)).sum())
    return float(np.mean(found))


def statistics(people: GazePeople) -> dict[str, Array]:
    """`STATISTICS` of each person, means over the recordings that have such events; NaN where none has."""
    found = []
    for _, tasks in sorted(people.items()):
        lines = np.array([_statistics(recording) for recording in tasks.values()])
        there = np.isfinite(lines)
        count = there.sum(axis=0)
        found.append(np.where(count > 0, np.where(there, lines, 0.0).sum(axis=0) / np.maximum(count, 1), np.nan))
    return dict(zip(STATISTICS, np.array(found).T, strict=True))


def _statistics(recording: GazeRecording) -> list[float]:
    events, _ = detect(recording.profile, recording.samples, recording.profile.detection.algorithm)
    seconds = max(float(np.ptp(recording.samples.t)), 1e-9)
    fixations = [event.duration_s for event in events if isinstance(event, Fixation)]
    saccades = [float(np.hypot(event.dx, event.dy)) for event in events if isinstance(event, Saccade)]
    means = [float(np.mean(own)) if own else np.nan for own in (fixations, saccades)]
    return [len(fixations) / seconds, means[0], len(saccades) / seconds, means[1]]


def predicted_deg(known: GazePeople, raw: GazePeople) -> Array:
    """Mean error of where each person's eye is `AHEAD_S` later, by least squares on the last `SEEN` samples.

    Learned from `known` gaze of every second person, tested on `raw` gaze of the others.
    """
    people = sorted(raw)
    learned = [_windows(known[name][task]) for name in people[::2] for task in known[name]]
    inputs, targets = (np.concatenate(parts) for parts in zip(*learned, strict=True))
    weights = np.linalg.lstsq(inputs, targets, rcond=None)[0]
    found = []
    for name in people[1::2]:
        tested = [_windows(recording) for recording in raw[name].values()]
        found.append(np.concatenate([np.hypot(*(own @ weights - where).T) for own, where in tested]).mean())
    return np.array(found)


def _windows(recording: GazeRecording) -> tuple[Array, Array]:
    """(m, 2 `SEEN`) samples and (m, 2) later gaze, both less the last sample; windows without a loss alone."""
    xy, ahead = places(recording), max(1, round(AHEAD_S * recording.profile.fixed_rate_hz))
    count = max(len(xy) - SEEN - ahead + 1, 0)
    at = np.arange(count)[:, None] + np.arange(SEEN)
    last = xy[at[:, -1]]
    inputs = (xy[at] - last[:, None]).reshape(count, 2 * SEEN)
    targets = xy[at[:, -1] + ahead] - last
    whole = np.isfinite(inputs).all(axis=1) & np.isfinite(targets).all(axis=1)
    return inputs[whole], targets[whole]
