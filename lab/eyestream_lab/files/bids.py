"""Eye-Tracking-BIDS: `*_physio.tsv.gz` without a header, one file an eye, and a `.json` with columns and units."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from eyestream.errors import RecordingError
from eyestream.gaze.intake import PER_S
from eyestream.gaze.profile import Profile
from eyestream.rim.files.delimited import read_columns
from eyestream.rim.files.formats import Format
from eyestream.rim.files.gaze_columns import UNITS, GazeColumns, wanted_columns


def read_bids(path: Path, profile: Profile) -> GazeColumns:
    """The columns that the profile names, if the JSON beside the file gives them the profile's units.

    Without a column of time, samples follow one another from `StartTime` on at `SamplingFrequency`.

    Raises
    ------
    RecordingError
        naming the key of the JSON that is missing or another than the profile's.
    """
    beside = path.with_name(path.name[: path.name.lower().rindex(".tsv")] + ".json")
    told = _read_json(beside)
    if told.get("PhysioType") != "eyetrack":
        raise RecordingError(f"{beside}: PhysioType: 'eyetrack' is wanted")
    names = told.get("Columns")
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise RecordingError(f"{beside}: Columns: a list of names is wanted")
    numbers, time = wanted_columns(profile, names), profile.columns.time
    timed = time in names
    wanted: dict[str, str] = {time: profile.time_unit, **dict.fromkeys(profile.columns.gaze, profile.gaze_unit)}
    wanted |= {name: profile.pupil_unit for name in profile.columns.pupil if name in numbers}
    if not timed:
        del wanted[time]
        numbers.remove(time)
    for name, unit in wanted.items():
        described = told.get(name)
        found = described.get("Units") if isinstance(described, dict) else None
        if not isinstance(found, str) or found.lower() not in UNITS.get(unit, {unit}):
            raise RecordingError(f"{beside}: {name}: Units: {unit!r} is wanted by profile {profile.name}")
    table = read_columns(path, names, numbers, [], delimiter="\t", header=False)
    if not timed:
        rate, start = told.get("SamplingFrequency"), told.get("StartTime", 0.0)
        if not isinstance(rate, int | float) or not isinstance(start, int | float) or not rate > 0:
            raise RecordingError(f"{beside}: SamplingFrequency: wanted, there is no column {time!r}")
        n = len(table[profile.columns.gaze[0]])
        table[time] = (start + np.arange(n) / rate) * PER_S[profile.time_unit]
    return GazeColumns.of(profile, table)


def _read_json(path: Path) -> dict[str, Any]:
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise RecordingError(f"{path}: wanted beside the recording: {error.strerror}") from None
    except ValueError:
        raise RecordingError(f"{path}: not JSON") from None
    if not isinstance(told, dict):
        raise RecordingError(f"{path}: not a JSON object")
    return told


FORMAT = Format(gaze=read_bids, packed=True)
