"""Identification of a released recording by an attacker who holds all raw recordings of everybody.

Each attacker gives every pair of a released and a raw recording a score, and names the owner of the raw recording with
the largest one. **None of them bounds what another attacker finds**: the page shows the strongest of those that were
tried.

| attacker | the score of a released and a raw recording |
|---|---|
| copies | share of released samples that are a raw one, to `SAME_DEG`: saccades that land on raw samples are found |
| places | how near the next raw sample is, over all released ones |
| gaze at each moment | how near the raw sample of the same moment is |
| timeline | events and losses that begin and end at the same samples, as a share of the released ones |
| number of samples | whether there are as many |

The rows of features have an attacker of their own, `eyestream_lab.releases.measures.matched`.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

from eyestream.rim.files.gaze import GazeRecording
from eyestream_lab.events.labels import detect
from eyestream_lab.releases.gaze import GazePeople, places
from eyestream_lab.releases.measures import People, matched, right

Array = NDArray[np.float64]
Known = dict[str, tuple[float, float]]
"""By attacker the share of people who are named rightly, from one task (the mean over tasks) and from all tasks."""

ROWS, COPIES, PLACES, MOMENTS, TIMELINE, NUMBER = (
    "rows", "copies", "places", "gaze at each moment", "timeline", "number of samples",
)  # fmt: skip
SAME_DEG = 1e-3
"""Above what four decimals round away, and far below the distance of two samples of different eyes."""
_FAR_DEG = 5.0
"""A distance counts as so much at most: a lost eye must not outweigh a whole recording."""
_POINTS = 2000
"""Released samples that are looked up, evenly spaced; all of them for `COPIES`."""
_FEW = 8
"""People of whom all assignments can be tried."""


def known_by_gaze(raw: GazePeople, released: GazePeople) -> Known:
    """Findings of the attackers on gaze in `released`; recordings by person and task, of the same people and tasks."""
    return {name: _named(scores) for name, scores in _by_task(raw, released).items()}


def known_scores(raw: GazePeople, released: GazePeople) -> dict[str, Array]:
    """Scores (N, N) from all tasks together of each attacker on gaze, released people first."""
    return {name: np.asarray(np.sum(scores, axis=0)) for name, scores in _by_task(raw, released).items()}


def _by_task(raw: GazePeople, released: GazePeople) -> dict[str, list[Array]]:
    people, tasks = sorted(raw), sorted(next(iter(raw.values())))
    found = [_scores([released[name][task] for name in people], [raw[name][task] for name in people]) for task in tasks]
    return {name: [one[name] for one in found] for name in (COPIES, PLACES, MOMENTS, TIMELINE, NUMBER)}


def known_by_rows(raw: People, released: People) -> Known:
    """Findings of an assignment of rows of features, where people are few enough to try every one."""
    tasks = sorted(next(iter(raw.values())))
    if len(raw) > _FEW:
        return {}
    return {ROWS: (float(np.mean([matched(raw, released, [task]) for task in tasks])), matched(raw, released, tasks))}


def _named(scores: Sequence[Array]) -> tuple[float, float]:
    """From scores (N, N) of each task, released by raw."""
    return float(np.mean([right(one).mean() for one in scores])), float(right(np.sum(scores, axis=0)).mean())


def _scores(released: Sequence[GazeRecording], raw: Sequence[GazeRecording]) -> Mapping[str, Array]:
    """(N, N) of each attacker for the recordings of one task."""
    seen = [_seen(recording) for recording in raw]
    trees = [KDTree(own) for own in seen]
    points = [_seen(recording) for recording in released]
    found: dict[str, Array] = {
        COPIES: _table(points, trees, lambda own, tree: (tree.query(own)[0] <= SAME_DEG).mean()),
        PLACES: _table(
            [own[:: max(1, len(own) // _POINTS)] for own in points], trees,
            lambda own, tree: -np.minimum(tree.query(own)[0], _FAR_DEG).mean(),
        ),
        MOMENTS: _table(released, raw, _near),
    }  # fmt: skip
    own_marks, raw_marks = ([_marks(recording) for recording in own] for own in (released, raw))
    found[TIMELINE] = _table(own_marks, raw_marks, lambda own, other: len(own & other) / max(len(own), 1))
    found[NUMBER] = _table(released, raw, lambda own, other: float(len(own.samples) == len(other.samples)))
    return found


def _table(rows: Sequence[object], columns: Sequence[object], score: Callable[..., float]) -> Array:
    """The score of each row with each column; 0 where there is nothing to compare."""
    return np.nan_to_num(np.array([[score(one, other) for other in columns] for one in rows], dtype=np.float64))


def _seen(recording: GazeRecording) -> Array:
    """(m, 2) samples that are not lost; one far away where all are."""
    xy = places(recording)
    there = xy[np.isfinite(xy).all(axis=1)]
    return there if len(there) else np.full((1, 2), 1e6)


def _near(released: GazeRecording, raw: GazeRecording) -> float:
    """Less the mean distance at the same time since each one's first sample."""
    t, known = released.samples.t - released.samples.t[0], raw.samples.t - raw.samples.t[0]
    at = np.minimum(np.searchsorted(known, t - 0.5 / raw.profile.fixed_rate_hz), len(known) - 1)
    apart = np.hypot(*(places(released) - places(raw)[at]).T)
    there = np.isfinite(apart)
    return -float(np.minimum(apart[there], _FAR_DEG).mean()) if there.any() else -_FAR_DEG


def _marks(recording: GazeRecording) -> frozenset[tuple[int, int, str]]:
    """First sample, the one after the last, and letter of every event and loss; those that a file labels, or that are
    detected where it labels none."""
    labels, samples = recording.labels, recording.samples
    if labels is None or not np.isin(labels, ("F", "S")).any():
        labels = detect(recording.profile, samples, recording.profile.detection.algorithm)[1]
    letters = np.where(samples.valid, labels, "lost")
    edges = np.concatenate(([0], np.flatnonzero(letters[1:] != letters[:-1]) + 1, [len(letters)]))
    runs = zip(edges[:-1].tolist(), edges[1:].tolist(), letters[edges[:-1]].tolist(), strict=True)
    return frozenset(run for run in runs if run[2] != "-")
