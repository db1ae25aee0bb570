"""Recordings of gaze: tables with a header, EyeLink's ASC, and Eye-Tracking-BIDS, as a profile declares them.

| file | what the profile must say |
|---|---|
| `.csv`, `.tsv`, `.txt`, also with `.gz` | `[columns]`: what the header has; `[table]` for another delimiter |
| `.asc`, also with `.gz` | gaze in px with a `[camera]` for the screen, time in ms; columns are ignored |
| `.xdf`, also with `.gz` | `[columns]`: labels of the channels, whose units must be the profile's; time in s |
| `_physio.tsv`, `_physio.tsv.gz` with a `.json` beside it | `[columns]`: what the JSON calls them, in its units |
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eyestream.errors import RecordingError
from eyestream.gaze.doubt import GazeDoubts
from eyestream.gaze.intake import take_in
from eyestream.gaze.profile import LONGEST_RATE_HZ, SHORTEST_RATE_HZ, Profile
from eyestream.gaze.samples import Samples
from eyestream.rim.files.delimited import read_columns, read_header
from eyestream.rim.files.gaze_columns import UNITS, GazeColumns, wanted_columns
from eyestream.rim.files.recordings import check_file
from eyestream_lab.files.bids import read_bids
from eyestream_lab.files.eyelink import read_eyelink
from eyestream_lab.files.layouts import DELIMITERS, Layout, read_table
from eyestream_lab.files.xdf import read_xdf

__all__ = ["LETTERS", "GazeRecording", "load_gaze"]

LETTERS = {"f": "F", "fixation": "F", "s": "S", "saccade": "S", "b": "B", "blink": "B", "-": "-", "": "-"}
"""Of the words for events in a column of labels; any other word is another event."""
_OTHER = "?"
_USUAL_HZ = (
    25,
    30,
    50,
    60,
    62.5,
    75,
    90,
    100,
    120,
    125,
    150,
    200,
    240,
    250,
    300,
    400,
    500,
    600,
    1000,
    1200,
    1250,
    2000,
)


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
    head
        (n,) each: motion of the head by the names of a layout's columns, as the file has it. Nothing uses it, and
        nothing protects it: whoever publishes it beside private rows publishes it as it is.
    doubt
        Why it can hardly be gaze in the units of the profile, a word of `GAZE_DOUBTS`; None: it can.
    """

    samples: Samples
    labels: NDArray[np.str_] | None
    profile: Profile
    path: str
    head: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    doubt: str | None = None


def load_gaze(path: str | Path, profile: Profile, layout: Layout | None = None) -> GazeRecording:
    """Read a recording; with a `layout`, from a text table as that one has it, whatever it is called.

    Raises
    ------
    RecordingError
        when the file is missing, damaged or cut off, has not the declared columns or units, or its time does not go
        forward at a rate that makes sense.
    ConfigError
        when the profile is for another rate.
    """
    path = Path(path)
    if layout is not None:
        return _laid_out(path, profile, layout)
    name = path.name.lower().removesuffix(".gz")
    check_file(path)
    if name.endswith(".asc"):
        columns = read_eyelink(path, profile)
    elif name.endswith("_physio.tsv"):
        columns = read_bids(path, profile)
    elif name.endswith(".xdf"):
        columns = read_xdf(path, profile)
    elif name.endswith((".csv", ".tsv", ".txt")):
        columns = _read_table(
            path, profile, DELIMITERS.get(profile.table.delimiter, "," if name.endswith(".csv") else "\t")
        )
    else:
        kinds = ".csv, .tsv, .txt, .asc, .xdf and _physio.tsv"
        raise RecordingError(f"{path}: gaze is read from {kinds} files, also with .gz")
    return _recording(path, profile, columns)


def _laid_out(path: Path, profile: Profile, layout: Layout) -> GazeRecording:
    if layout.holds != "gaze":
        raise RecordingError(f"{path}: layout {layout.name} is of rows of features, not of gaze")
    columns = profile.columns
    wanted = wanted_columns(profile, layout.names if not layout.header else columns.pupil)
    table = read_table(path, layout, wanted, (columns.label,))
    recording = _recording(path, profile, GazeColumns.of(profile, table))
    return replace(recording, head={name: np.asarray(table[name], dtype=np.float64) for name in layout.head})


def _read_table(path: Path, profile: Profile, delimiter: str) -> GazeColumns:
    names = _named(path, profile, read_header(path, delimiter))
    numbers = wanted_columns(profile, names)
    label, form = profile.columns.label, profile.table
    texts = [label] if label in names else []
    table = read_columns(
        path, names, numbers, texts, delimiter=delimiter, header=True,
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


def _recording(path: Path, profile: Profile, columns: GazeColumns) -> GazeRecording:
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
        columns.gaze, None if valid is None else np.nan_to_num(np.asarray(valid, dtype=np.float64)) > 0, samples
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
