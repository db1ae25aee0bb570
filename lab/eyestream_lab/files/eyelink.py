"""Samples in EyeLink's ASC files (made by SR Research's edf2asc): lines that begin with a time in milliseconds.

edf2asc writes whole milliseconds unless it is asked for more: at 2,000 samples a second two of them have the same time,
and the second one is half a millisecond later. Messages of an experiment may be in any encoding.
"""

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from eyestream.errors import RecordingError
from eyestream.gaze.profile import Profile
from eyestream.rim.files.delimited import opened
from eyestream.rim.files.formats import Format
from eyestream.rim.files.gaze_columns import GazeColumns

_CORNERS = re.compile(r"\b(?:DISPLAY|GAZE)_COORDS\W+" + r"\s+".join([r"(-?\d+(?:\.\d*)?)"] * 4))
_WHOLE_HZ = 1_000.0


def read_eyelink(path: Path, profile: Profile) -> GazeColumns:
    """Time, gaze and whether it was seen; of two eyes, the mean of those that were. Diameters have no unit of length.

    Raises
    ------
    RecordingError
        when the profile does not give the screen or gives another one than the file, or the samples are not gaze on
        a screen.
    """
    if profile.gaze_unit != "px" or profile.time_unit != "ms":
        wanted = 'gaze_unit = "px" with a [camera] for the screen, and time_unit = "ms"'
        raise RecordingError(f"{path}: EyeLink tells gaze in pixels of a screen: the profile needs {wanted}")
    times: list[float] = []
    eyes: list[tuple[float, float, float, float]] = []
    kind: list[str] = []
    doubled = False
    with opened(path, lenient=True) as file:
        for number, line in enumerate(file, start=1):
            if line[:1].isdigit():
                if not kind:
                    raise RecordingError(f"{path}: line {number}: a sample before any SAMPLES line")
                both = "LEFT" in kind and "RIGHT" in kind
                fields = line.split()
                try:
                    at = float(fields[0])
                    times.append(at + 0.5 if doubled and times and at == times[-1] else at)
                    left = (_place(fields[1]), _place(fields[2]))
                    eyes.append((*left, _place(fields[4]), _place(fields[5])) if both else (*left, np.nan, np.nan))
                except (ValueError, IndexError):
                    raise RecordingError(f"{path}: line {number}: not a sample of {' '.join(kind[1:])}") from None
            elif line.startswith("SAMPLES"):
                kind = line.split()
                if "GAZE" not in kind:
                    raise RecordingError(f"{path}: line {number}: samples are {kind[1:2]}, GAZE is wanted")
                doubled = "RATE" in kind[:-1] and float(kind[kind.index("RATE") + 1]) > _WHOLE_HZ
            elif (corners := _CORNERS.search(line)) is not None:
                _compare(path, profile, [float(number) for number in corners.groups()])
    places = np.array(eyes, dtype=np.float64).reshape(-1, 2, 2)
    seen: NDArray[np.bool_] = np.asarray(np.isfinite(places).all(axis=2))
    total = np.where(seen[:, :, None], places, 0.0).sum(axis=1)
    count = np.count_nonzero(seen, axis=1)
    gaze = np.where(count[:, None] > 0, total / np.maximum(count, 1)[:, None], np.nan)
    return GazeColumns(np.array(times, dtype=np.float64), gaze)


def screen_of(path: Path) -> tuple[int, int] | None:
    """Width and height of the screen in pixels, as the file tells them; None where it does not."""
    with opened(path, lenient=True) as file:
        for line in file:
            if (corners := _CORNERS.search(line)) is not None:
                left, top, right, bottom = map(float, corners.groups())
                return round(right - left + (right % 2.0)), round(bottom - top + (bottom % 2.0))
    return None


def _compare(path: Path, profile: Profile, corners: Sequence[float]) -> None:
    """Left, top, right and bottom pixel of the screen against the profile's screen; some count one pixel more."""
    camera = profile.camera
    assert camera is not None
    found = (corners[2] - corners[0] + 1.0, corners[3] - corners[1] + 1.0)
    if abs(found[0] - camera.width_px) > 1.0 or abs(found[1] - camera.height_px) > 1.0:
        told = f"its screen has {found[0]:.0f} x {found[1]:.0f} pixels"
        raise RecordingError(
            f"{path}: {told}, and profile {profile.name} says {camera.width_px} x {camera.height_px}: give [camera] "
            f"width_px = {found[0]:.0f} and height_px = {found[1]:.0f}, and the angles of that screen"
        )


def _place(text: str) -> float:
    return np.nan if text == "." else float(text)


FORMAT = Format(gaze=read_eyelink, packed=True)
