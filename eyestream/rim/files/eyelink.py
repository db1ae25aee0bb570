"""Samples in EyeLink's ASC files (made by SR Research's edf2asc): lines that begin with a time in milliseconds."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from eyestream.errors import RecordingError
from eyestream.gaze.profile import Profile
from eyestream.rim.files.delimited import opened
from eyestream.rim.files.gaze_columns import GazeColumns

__all__ = ["read_eyelink"]


def read_eyelink(path: Path, profile: Profile) -> GazeColumns:
    """Time, gaze and whether it was seen; of two eyes, the mean of those that were. Diameters have no unit of length.

    Raises
    ------
    RecordingError
        when the profile does not give the screen, or the samples are not gaze on a screen.
    """
    if profile.gaze_unit != "px" or profile.time_unit != "ms":
        wanted = 'gaze_unit = "px" with a [camera] for the screen, and time_unit = "ms"'
        raise RecordingError(f"{path}: EyeLink tells gaze in pixels of a screen: the profile needs {wanted}")
    times: list[float] = []
    eyes: list[tuple[float, float, float, float]] = []
    kind: list[str] = []
    with opened(path) as file:
        for number, line in enumerate(file, start=1):
            if line[:1].isdigit():
                if not kind:
                    raise RecordingError(f"{path}: line {number}: a sample before any SAMPLES line")
                both = "LEFT" in kind and "RIGHT" in kind
                fields = line.split()
                try:
                    times.append(float(fields[0]))
                    left = (_place(fields[1]), _place(fields[2]))
                    eyes.append((*left, _place(fields[4]), _place(fields[5])) if both else (*left, np.nan, np.nan))
                except (ValueError, IndexError):
                    raise RecordingError(f"{path}: line {number}: not a sample of {' '.join(kind[1:])}") from None
            elif line.startswith("SAMPLES"):
                kind = line.split()
                if "GAZE" not in kind:
                    raise RecordingError(f"{path}: line {number}: samples are {kind[1:2]}, GAZE is wanted")
    places = np.array(eyes, dtype=np.float64).reshape(-1, 2, 2)
    seen: NDArray[np.bool_] = np.asarray(np.isfinite(places).all(axis=2))
    total = np.where(seen[:, :, None], places, 0.0).sum(axis=1)
    count = np.count_nonzero(seen, axis=1)
    gaze = np.where(count[:, None] > 0, total / np.maximum(count, 1)[:, None], np.nan)
    return GazeColumns(np.array(times, dtype=np.float64), gaze)


def _place(text: str) -> float:
    return np.nan if text == "." else float(text)
