"""Everything that attackers of the list look at in one recording, made once."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from eyestream.errors import OperatorError
from eyestream.rim.files.extraction import extract
from eyestream.rim.files.gaze import GazeRecording
from eyestream.rim.files.recordings import Recording
from eyestream_lab.benchmark.windows import HOP_S, WINDOW_S, windows_of
from eyestream_lab.corpora.ksame import filled
from eyestream_lab.releases.gaze import places
from eyestream_lab.study.people.gaze_events import EventFigures, events_of

Array = NDArray[np.float64]
ROWS = "rows"
"""The group of figures that windows of the 52 features have."""
_MOST_ROWS = 50
_LEAST = 1e-6


@dataclass(frozen=True, eq=False)
class Seen:
    """What is seen in one recording.

    Attributes
    ----------
    windows
        Figures (W, f) of each group of `windows.GROUPS`, where it is gaze, and of `ROWS`, where it has rows.
    rows
        (m, F) features, about 50 of them; None where the recording is too short for a row.
    events
        Those of the papers' networks; None where the recording is no gaze.
    """

    windows: Mapping[str, Array]
    rows: Array | None
    events: EventFigures | None


Part = tuple[str, str]
"""Person and task."""
Halves = tuple[Seen, Seen, Seen]
"""A whole recording, its first half and its second half."""


def halves_of(recording: GazeRecording | Recording) -> Halves:
    """What is seen in a recording, and in its halves."""
    if isinstance(recording, Recording):
        middle = len(recording.t) // 2
        first, second = (_seen_rows(_rows_of(recording, part)) for part in (slice(middle), slice(middle, None)))
        return _seen_rows(recording), first, second
    return seen_in(recording), seen_in(halved(recording, 0)), seen_in(halved(recording, 1))


def cut_alike(found: Mapping[Part, GazeRecording | Recording]) -> dict[Part, GazeRecording | Recording]:
    """Released rows, each recording cut to the shortest: where the last chunk ends tells how long a recording was."""
    least = min((len(one.t) for one in found.values() if isinstance(one, Recording)), default=0)
    return {key: _rows_of(one, slice(least)) if isinstance(one, Recording) else one for key, one in found.items()}


def halved(recording: GazeRecording, half: int | None) -> GazeRecording:
    """The first (0) or the second (1) half in time of a recording; None: all of it."""
    if half is None:
        return recording
    middle = int(np.searchsorted(recording.samples.t, recording.samples.t[[0, -1]].mean()))
    every = np.arange(len(recording.samples))
    return replace(recording, samples=recording.samples.picked(every[:middle] if half == 0 else every[middle:]))


def _rows_of(recording: Recording, part: slice) -> Recording:
    return replace(recording, t=recording.t[part], features=recording.features[part])


def seen_in(recording: GazeRecording) -> Seen:
    """What is seen in gaze: rows are made of it where it is long enough."""
    xy = places(recording)
    windows = windows_of(xy, recording.profile.fixed_rate_hz)
    events = events_of(recording.samples.t, *xy.T)
    try:
        rows = _seen_rows(extract(recording))
    except OperatorError:
        return Seen(windows, None, events)
    return Seen({**windows, **rows.windows}, rows.rows, events)


def _seen_rows(recording: Recording) -> Seen:
    features = np.nan_to_num(filled(np.asarray(recording.features, np.float64)))
    if len(features) == 0:
        return Seen({}, None, None)
    length, hop = max(2, round(WINDOW_S * recording.rate_hz)), max(1, round(HOP_S * recording.rate_hz))
    starts = range(0, max(len(features) - length, 0) + 1, hop)
    windows = np.array([_row_figures(features[s : s + length]) for s in starts])
    return Seen({ROWS: windows}, features[:: max(1, len(features) // _MOST_ROWS)], None)


def _row_figures(rows: Array) -> Array:
    """(3 F,) mean, spread and steps of each feature."""
    steps = np.abs(np.diff(rows, axis=0)).mean(axis=0) if len(rows) > 1 else np.zeros(rows.shape[1])
    return np.concatenate([rows.mean(axis=0), np.log(rows.std(axis=0) + _LEAST), np.log(steps + _LEAST)])
