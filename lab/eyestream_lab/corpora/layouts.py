"""Corpora in other people's folders: Eye-Tracking-BIDS and GazeBase. What is released of them has our own layout.

| folder | is one of | person | task |
|---|---|---|---|
| `participants.tsv` with a column `recording` | ours | `participant_id` | `task` |
| `dataset_description.json` | BIDS | `sub-...` | `task-...`, with `ses-...` and `run-...` where they are |
| `Round_...` | GazeBase | digits 2 to 4 of the number of a recording | task with session and round |

Of BIDS, files `*_physio.tsv` and `*_physio.tsv.gz` are read. Where there is one for each eye, the first by name is.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

from eyestream.errors import RecordingError
from eyestream_lab.corpora.corpus import PARTICIPANTS, Dataset, Part, open_corpus, table_of
from eyestream_lab.corpora.kinds import Kind

Data = TypeVar("Data")

_BIDS = re.compile(
    r"(?P<person>sub-[A-Za-z0-9]+)(_(?P<session>ses-[A-Za-z0-9]+))?_task-(?P<task>[A-Za-z0-9]+)"
    r"(_acq-[A-Za-z0-9]+)?(_(?P<run>run-[0-9]+))?(_recording-[A-Za-z0-9]+)?_physio\.tsv(\.gz)?"
)
_GAZEBASE = re.compile(r"S_(?P<round>\d)(?P<person>\d{3})_(?P<session>S\d)_(?P<task>[A-Z0-9]+)\.csv(\.gz)?")


def open_folder(folder: Path, kind: Kind[Data]) -> Dataset[Data]:
    """The corpus in a folder, by its layout; no recording is opened yet.

    Raises
    ------
    RecordingError
        when it holds no recording of its layout, or as `open_corpus`.
    """
    if (folder / "dataset_description.json").is_file():
        return _bids(folder, kind)
    if any(folder.glob("Round_*")):
        return _named(folder, kind, _gazebase(folder))
    return open_corpus(folder, kind)


def _bids(folder: Path, kind: Kind[Data]) -> Dataset[Data]:
    """With the labels of `participants.tsv`, where there is one."""
    header, *lines = table_of(folder / PARTICIPANTS) if (folder / PARTICIPANTS).is_file() else [["participant_id"]]
    told = {line[0]: tuple(line[1:]) for line in lines if len(line) == len(header)}
    found: dict[tuple[str, str], tuple[Part, Path]] = {}
    for path in sorted(folder.glob("sub-*/**/*_physio.tsv*")):
        name = _BIDS.fullmatch(path.name)
        if name is None:
            continue
        task = "_".join(one for one in (name["task"], name["session"], name["run"]) if one)
        labels = told.get(name["person"], ("",) * (len(header) - 1))
        found.setdefault((name["person"], task), (Part(name["person"], path.name, task, labels), path))
    return _named(folder, kind, iter(found.values()), tuple(header[1:]))


def _gazebase(folder: Path) -> Iterator[tuple[Part, Path]]:
    for path in sorted(folder.glob("Round_*/**/S_*.csv*")):
        name = _GAZEBASE.fullmatch(path.name)
        if name is not None:
            task = f"{name['task']}_{name['session']}_R{name['round']}"
            yield Part(name["person"], path.name, task), path


def _named(
    folder: Path, kind: Kind[Data], found: Iterator[tuple[Part, Path]], label_names: tuple[str, ...] = ()
) -> Dataset[Data]:
    """Refuse a folder without a recording, and two recordings of one name."""
    elsewhere: dict[str, Path] = {}
    parts = []
    for part, path in found:
        if part.recording in elsewhere:
            raise RecordingError(f"{path}: a second recording of this name; the first is {elsewhere[part.recording]}")
        elsewhere[part.recording] = path
        parts.append(part)
    if not parts:
        raise RecordingError(f"{folder}: holds no recording of its layout; expected participants.tsv, BIDS or GazeBase")
    return Dataset(folder, kind, tuple(parts), label_names, elsewhere)
