"""Recordings of gaze, as a profile declares them.

| file | what the profile must say |
|---|---|
| `.csv`, `.tsv`, `.txt`, also with `.gz` | `[columns]`: what the header has; `[table]` for another delimiter |
| `.asc`, also with `.gz` | gaze in px with a `[camera]` for the screen, time in ms; columns are ignored |
| `.xdf`, also with `.gz` | `[columns]`: labels of the channels, whose units must be the profile's; time in s |
| `.mat` | `[columns]`: variables, or names of a matrix' columns in `[table] names` |
| `_physio.tsv`, `_physio.tsv.gz` with a `.json` beside it | `[columns]`: what the JSON calls them, in its units |

The last four come with eyestream-lab (`eyestream.rim.files.formats`).
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eyestream.errors import RecordingError
from eyestream.gaze.doubt import GazeDoubts
from eyestream.gaze.intake import take_in
from eyestream.gaze.profile import LONGEST_RATE_HZ, SHORTEST_RATE_HZ, Profile
from eyestream.gaze.samples import Samples
from eyestream.rim.files.delimited import DELIMITERS, read_columns, read_header
from eyestream.rim.files.formats import Format, endings, format_of
from eyestream.rim.files.gaze_columns import UNITS, GazeColumns, wanted_columns
from eyestream.rim.files.recordings import check_file

LETTERS = {"f": "F", "fixation": "F", "s": "S", "saccade": "S", "b": "B", "blink": "B", "-": "-", "": "-"}
"""Letters for the words of events in a column of labels; any other word is another event."""
_OTHER = "?"
_USUAL_HZ = (
    25, 30, 50, 60, 62.5, 75, 90, 100, 120, 125, 150, 200, 240, 250, 300, 400, 500, 600, 1000, 1200, 1250, 2000,
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class GazeRecording:
    """Gaze of one person.

    Attributes
    ----------
    samples
        As the file has them, also those whose time does not go forward.
    labels
        (n,) letters F, S, B, - for none and ? for another event, where the file has labels.
    profile
        With the recording's rate.
    path
        For messages.
    doubt
        Why it can hardly be gaze in the units of the profile, a word of `GAZE_DOUBTS`; None: it can.
    """

    samples: Samples
    labels: NDArray[np.str_] | None
    profile: Profile
    path: str
    doubt: str | None = None


def load_gaze(path: str | Path, profile: Profile) -> GazeRecording:
    """Read a recording.

    Raises
    ------
    RecordingError
        when the file is missing, damaged or cut off, has not the declared columns or units, or its time does not go
        forward at a rate that makes sense.
    ConfigError
        when the profile is for another rate, or the format needs eyestream-lab, or a library that is not installed.
    """
    path = Path(path)
    check_file(path)
    found = format_of(path, _OURS)
    if found is None or found.gaze is None:
        raise RecordingError(f"{path}: gaze is read from {endings(_OURS, 'gaze')} files, also with .gz")
    return recording_of(path, profile, found.gaze(path, profile))


def _read_table(path: Path, profile: Profile) -> GazeColumns:
    usual = "," if path.name.lower().removesuffix(".gz").endswith(".csv") else "\t"
    delimiter = DELIMITERS.get(profile.table.delimiter, usual)
    bare = profile.table.names
    names = list(bare) or _named(path, profile, read_header(path, delimiter))
    numbers = wanted_columns(profile, names)
    label, form = profile.columns.label, profile.table
    texts = [label] if label in names else []
    table = read_columns(
        path, names, numbers, texts, delimiter=delimiter, header=not bare,
        decimal="," if form.decimal == "comma" else ".", only=form.only,
    )  # fmt: skip
    return GazeColumns.of(profile, table)


def _named(path: Path, profile: Profile, header: list[str]) -> list[str]:
    """The header, in which "Gaze point X [px]" is called as the profile calls it, without the unit, if that fits."""
    columns, names = profile.columns, list(header)
    plain = [columns.valid, columns.lost, columns.confidence, *columns.openness, *profile.table.only[:1]]
    units = dict.fromkeys(plain, "") | dict.fromkeys(columns.pupil, profile.pupil_unit)
    units |= dict.fromkeys(columns.gaze, profile.gaze_unit) | {columns.time: profile.time_unit}
    for name, unit in units.items():
        found = [i for i, told in enumerate(header) if name and name not in header and told.startswith(f"{name} [")]
        if len(found) > 1:
            both = " and ".join(repr(header[i]) for i in found[:2])
            raise RecordingError(f"{path}: column {name!r} may be {both}: give the profile the whole name")
        for i in found:
            told = header[i][len(name) + 2 :].rstrip("]").split()[-1:]
            if unit and told and told[0].replace("\u03bc", "u").replace("\u00b5", "u").lower() not in UNITS[unit]:
                raise RecordingError(f"{path}: column {header[i]!r}: profile {profile.name} says {unit!r}")
            names[i] = name
    return names


_OURS = dict.fromkeys((".csv", ".tsv", ".txt"), Format(gaze=_read_table, packed=True))


def recording_of(path: Path, profile: Profile, columns: GazeColumns) -> GazeRecording:
    """The recording whose columns were read from a file; raises as `load_gaze`."""
    if len(columns.time) == 0:
        raise RecordingError(f"{path}: holds no samples")
    if np.isnan(columns.time).all():
        raise RecordingError(f"{path}: no sample has a time")
    valid: ArrayLike | None = columns.valid
    samples = take_in(profile, columns.time, columns.gaze, pupil=columns.pupil, openness=columns.openness, valid=valid)
    labels = None
    if columns.labels is not None:
        labels = np.array([LETTERS.get(text.strip().lower(), _OTHER) for text in columns.labels])
    profile = profile.at_rate(_rate_hz(path, profile, samples.t))
    doubts = GazeDoubts(profile)
    doubts.take(
        columns.gaze,
        None if valid is None else np.nan_to_num(np.asarray(valid, dtype=np.float64)) > 0,
        samples,
        None if columns.pupil is None else np.asarray(columns.pupil, dtype=np.float64),
    )
    doubt = doubts.judge(len(samples) / profile.fixed_rate_hz)  # a recording may have pauses
    return GazeRecording(samples, labels, profile, str(path), doubt=doubt)


def _rate_hz(path: Path, profile: Profile, t: NDArray[np.float64]) -> float:
    """Nominal samples a second: the usual rate that is less than 2 % from the middle one of the steps, if there is one.

    Recordings of one tracker shall have one rate, as it is part of what their rows, and calibrations, are compared by.
    """
    steps = np.diff(t)
    forward = steps[steps > 0]
    if len(forward) < 0.9 * len(steps) or len(forward) == 0:
        raise RecordingError(f"{path}: column {profile.columns.time!r}: time does not go forward")
    rate = float(1.0 / np.median(forward))
    if not SHORTEST_RATE_HZ <= rate <= LONGEST_RATE_HZ:
        unit = f"{rate:.3g} samples a second, if its unit is {profile.time_unit!r}"
        wanted = f"{SHORTEST_RATE_HZ:g} to {LONGEST_RATE_HZ:g} wanted"
        raise RecordingError(f"{path}: column {profile.columns.time!r}: {unit}; {wanted}")
    usual = min(_USUAL_HZ, key=lambda nominal: abs(nominal - rate))
    return float(usual) if abs(rate / usual - 1.0) < 0.02 else float(f"{rate:.3g}")
