"""From recordings of gaze to feature recordings: the front end at work on files, as it works live."""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from eyestream.errors import RecordingError, ShortRecordingError
from eyestream.gaze.entry import USUAL, FrontEndEntry
from eyestream.gaze.profile import Profile
from eyestream.gaze.samples import TimedRows
from eyestream.rim.files import recordings
from eyestream.rim.files.gaze import GazeRecording, load_gaze
from eyestream.rim.files.recordings import Recording

LONGEST_PAUSE_S = 86_400.0
"""A recording may be interrupted for a day at most; rows in the pause are NaN."""

_PIECE = 65_536
LEAST_FORWARD = 0.9


def extract(
    gaze: GazeRecording, progress: Callable[[int], None] = lambda done: None, entry: FrontEndEntry = USUAL
) -> Recording:
    """Rows of a front end, the first one a window after the first sample.

    They have the precision in which rows are sent and stored, float32.

    Parameters
    ----------
    progress
        Called with the number of samples done.
    entry
        Of the front end.

    Raises
    ------
    ShortRecordingError
        when there is no row.
    RecordingError
        when the time of more than a tenth of the samples does not go forward.
    """
    samples, front_end = gaze.samples, entry.make(gaze.profile, LONGEST_PAUSE_S, None)
    rows: list[TimedRows] = []
    for begin in range(0, len(samples), _PIECE):
        rows.append(front_end.feed(samples[begin : begin + _PIECE]))
        progress(min(begin + _PIECE, len(samples)))
    rows.append(front_end.advance(np.nan))  # what still waits for the next row
    if front_end.counters.accepted < LEAST_FORWARD * len(samples):
        dropped = len(samples) - front_end.counters.accepted
        raise RecordingError(f"{gaze.path}: {dropped} of {len(samples)} samples have no time that goes forward")
    if not sum(map(len, rows)):
        raise ShortRecordingError(
            f"{gaze.path}: is shorter than the {entry.window_s:g} s of gaze that a row describes. "
            "Join the trials of a person, with their times, into one file, or leave it out"
        )
    t, values = np.concatenate([part.t for part in rows]), np.concatenate([part.values for part in rows])
    single = values.astype(np.float32).astype(np.float64)
    return Recording(t, single, entry.names, gaze.path, front_end=entry.mark(gaze.profile))


def stem(path: Path) -> str:
    """The name of a recording's file without what says how it is stored: P33.csv.gz is P33."""
    name = path.name
    if name.lower().endswith(".gz"):
        name = name[:-3]
    return name.rpartition(".")[0] or name


def load_rows(path: str | Path, profile: Profile | None, entry: FrontEndEntry = USUAL) -> Recording:
    """The feature recording in a file; with a `profile`, the rows of the recording of gaze in it by a front end.

    Raises
    ------
    RecordingError
        when the file is not what it should be.
    ConfigError
        when the profile is for another rate.
    """
    return recordings.load(path) if profile is None else extract(load_gaze(path, profile), entry=entry)
