"""Labels of recordings, person and task: a table with tabs, a line a recording.

It has the columns `participant_id` and `recording`, the name of a file, and any columns of labels; other columns are
not read. The table of a corpus (`participants.tsv`) is one.
"""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from eyestream.errors import ConfigError, RecordingError, meant


@dataclass(frozen=True, slots=True)
class Labelled:
    """One recording.

    Attributes
    ----------
    person : whose it is.
    label : of the column that was asked for.
    """

    person: str
    label: str


def load_labels(path: Path, column: str, recordings: Sequence[Path]) -> list[Labelled]:
    """Labels of each of `recordings`, in their order; files are known by their names.

    Raises
    ------
    RecordingError
        The table cannot be read, or a line of it cannot be used; the line is named.
    ConfigError
        It has no such column, or a recording is not in it.
    """
    try:
        with path.open(encoding="utf-8", newline="") as file:
            lines = list(csv.reader(file, delimiter="\t"))
    except OSError as error:
        raise RecordingError(f"{path}: cannot be read: {error.strerror}") from None
    except (UnicodeDecodeError, csv.Error):
        raise RecordingError(f"{path}: is not a table with tabs in UTF-8") from None
    header = lines[0] if lines else []
    for name in ("participant_id", "recording"):
        if header.count(name) != 1:
            raise RecordingError(f"{path}: line 1: expected one column {name!r}")
    if header.count(column) != 1:
        raise ConfigError(f"{path}: has no column {column!r}{meant(column, header)}; it has {', '.join(header)}")
    at = [header.index(name) for name in ("participant_id", "recording", column)]
    found: dict[str, Labelled] = {}
    for number, line in enumerate(lines[1:], start=2):
        person, recording, label = [line[i] for i in at] if len(line) == len(header) else ["", "", ""]
        if not (person and recording and label) or recording in found:
            raise RecordingError(f"{path}: line {number}: expected {len(header)} cells, and each recording once")
        found[recording] = Labelled(person, label)
    missing = next((recording.name for recording in recordings if recording.name not in found), None)
    if missing is not None:
        raise ConfigError(f"{path}: has no line for the recording {missing}")
    return [found[recording.name] for recording in recordings]
