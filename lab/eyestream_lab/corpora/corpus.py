"""A corpus: recordings of people at tasks in one folder, read one recording at a time.

A folder of ours has recordings with `participants.tsv` beside them, whose columns are `participant_id`, `recording`
(the name of a file beside it) and `task`. Other columns are labels. They are released as they are.
`eyestream_lab.corpora.layouts` knows folders of other people.
"""

import csv
import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Generic, TypeVar

from eyestream.errors import ConfigError, RecordingError
from eyestream.gaze.entry import SHIPPED
from eyestream.streams import same_rate
from eyestream_lab.corpora.kinds import Extent, Kind

Data = TypeVar("Data")

PARTICIPANTS = "participants.tsv"
_COLUMNS = ("participant_id", "recording", "task")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_BESIDE = {"participants.tsv", "claim.json", "claim.md"}
"""Names that the release itself takes, in small letters."""


@dataclass(frozen=True)
class Part:
    """One recording: a line of `participants.tsv`.

    Attributes
    ----------
    person, recording, task
        The three columns that every corpus has.
    labels
        The other cells of the line, in the order of the columns.
    """

    person: str
    recording: str
    task: str
    labels: tuple[str, ...] = ()


@dataclass(frozen=True)
class Survey:
    """Survey of every recording of a corpus, by part, and a hash of the files: never published."""

    extents: dict[Part, Extent]
    digest: str
    declared_hz: float | None = None

    @property
    def rate_hz(self) -> float:
        """Public rows a second: declared with the kind of the corpus, or those of the front end whose rows these are.

        It is never read from a recording: it would be released without noise.

        Raises
        ------
        ConfigError
            when nobody declared it.
        """
        known = (entry.rate_hz for entry in SHIPPED.values() if entry.names == self.names)
        found = self.declared_hz if self.declared_hz is not None else next(known, None)
        if found is None:
            first = next(iter(self.extents.values())).rate_hz
            raise ConfigError(
                "nothing declares how many rows or samples a second the corpus has, and what its recordings say is not "
                f"published: expected --rate-hz, such as --rate-hz {first:.4g}"
            )
        return found

    def check_rate(self) -> None:
        """Raise RecordingError where a recording has another rate than the public one; ConfigError as `rate_hz`."""
        for part, extent in self.extents.items():
            if not same_rate(extent.rate_hz, self.rate_hz):
                told = f"{extent.rate_hz:g} rows a second, expected {self.rate_hz:g}"
                raise RecordingError(f"{part.recording}: has {told}, or --rate-hz for another rate")

    @property
    def names(self) -> tuple[str, ...]:
        """Columns of all recordings."""
        return next(iter(self.extents.values())).names

    def longest(self, parts: Sequence[Part]) -> int:
        """Rows of the longest of `parts`."""
        return max(self.extents[part].rows for part in parts)


@dataclass(frozen=True)
class Dataset(Generic[Data]):
    """Recordings of people at tasks, in one folder.

    Attributes
    ----------
    folder
        Where they are.
    kind
        What they hold.
    parts
        All of them, in the order of `participants.tsv`.
    label_names
        Names of the other columns.
    elsewhere
        Where recordings are that do not lie in the folder itself, by name.
    """

    folder: Path
    kind: Kind[Data]
    parts: tuple[Part, ...]
    label_names: tuple[str, ...] = ()
    elsewhere: Mapping[str, Path] = field(default_factory=dict)

    @cached_property
    def people(self) -> tuple[str, ...]:
        """Each once, in the order in which they come."""
        return tuple(dict.fromkeys(part.person for part in self.parts))

    @cached_property
    def tasks(self) -> tuple[str, ...]:
        """Each once, in the order in which they come."""
        return tuple(dict.fromkeys(part.task for part in self.parts))

    def most(self, units: Callable[[Part], int] = lambda part: 1) -> int:
        """The largest sum of `units` over one person's recordings; of recordings where nothing else is counted."""
        return max(sum(units(part) for part in self.parts if part.person == person) for person in self.people)

    def of_task(self, task: str) -> tuple[Part, ...]:
        """The parts of a task, one of each person."""
        return tuple(part for part in self.parts if part.task == task)

    def path(self, part: Part) -> Path:
        """The file of one recording."""
        return self.elsewhere.get(part.recording, self.folder / part.recording)

    def load(self, part: Part) -> Data:
        """One recording, from its file."""
        return self.kind.load(self.path(part))

    def check_cohort(self, least: int) -> None:
        """Refuse a corpus in which somebody lacks a task, or a task has fewer than `least` people.

        Raises
        ------
        ConfigError
            with the name of the task or the person.
        """
        for task in self.tasks:
            there = {part.person for part in self.of_task(task)}
            missing = [person for person in self.people if person not in there]
            if missing:
                raise ConfigError(f"{self.folder}: {missing[0]} has no recording of task {task}")
            if len(there) < least:
                raise ConfigError(f"{self.folder}: task {task} has {len(there)} people, {least} are needed")

    def survey(self) -> Survey:
        """Read every recording once, one at a time, and refuse what cannot be released.

        Raises
        ------
        RecordingError
            when a recording is missing, damaged, empty or without a valid row, or has another rate or other columns
            than the first one.
        """
        extents: dict[Part, Extent] = {}
        digest = hashlib.sha256()
        for part in self.parts:
            path = self.path(part)
            extent = self.kind.extent(self.load(part))
            if extent.valid == 0:
                raise RecordingError(f"{path}: {part.person} has no valid row in it")
            first = next(iter(extents.values()), extent)
            if not same_rate(extent.rate_hz, first.rate_hz):
                wanted = f"{self.parts[0].recording} {first.rate_hz:g}"
                raise RecordingError(f"{path}: has {extent.rate_hz:g} rows a second, {wanted}")
            if extent.names != first.names:
                raise RecordingError(f"{path}: has other columns than {self.parts[0].recording}")
            extents[part] = extent
            digest.update(hashlib.sha256(path.read_bytes()).digest())
        return Survey(extents, digest.hexdigest(), self.kind.rate_hz)


def open_corpus(folder: Path, kind: Kind[Data]) -> Dataset[Data]:
    """The corpus in a folder; no recording is opened yet.

    Raises
    ------
    RecordingError
        when `participants.tsv` is missing or damaged, or a line cannot be used; the line is named.
    """
    path = folder / PARTICIPANTS
    header, *lines = table_of(path)
    for name in _COLUMNS:
        if header.count(name) != 1:
            found = (
                "two columns are called so" if name in header else f"there are {', '.join(map(repr, header)) or 'none'}"
            )
            raise RecordingError(f"{path}: line 1: expected a column {name!r}, with tabs between columns; {found}")
    parts = tuple(_parts(path, header, lines))
    if not parts:
        raise RecordingError(f"{path}: names no recording")
    _check(path, parts, kind)
    return Dataset(folder, kind, parts, tuple(name for name in header if name not in _COLUMNS))


def table_of(path: Path) -> list[list[str]]:
    """The cells of a table with tabs, the header first; it may be the only line, and empty.

    Raises
    ------
    RecordingError
        when it cannot be read, or is no such table.
    """
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return list(csv.reader(file, delimiter="\t")) or [[]]
    except OSError as error:
        raise RecordingError(f"{path}: cannot be read: {error.strerror}") from None
    except (UnicodeDecodeError, csv.Error):
        raise RecordingError(f"{path}: is not a table with tabs in UTF-8") from None


def participants_table(label_names: Sequence[str], parts: Sequence[Part]) -> str:
    """The text of `participants.tsv`."""
    lines = [(*_COLUMNS, *label_names), *((p.person, p.recording, p.task, *p.labels) for p in parts)]
    return "".join("\t".join(line) + "\n" for line in lines)


def _parts(path: Path, header: list[str], lines: list[list[str]]) -> Iterator[Part]:
    for number, line in enumerate(lines, start=2):
        if len(line) != len(header):
            raise RecordingError(f"{path}: line {number}: expected {len(header)} cells, found {len(line)}")
        cells = dict(zip(header, line, strict=True))
        for name in _COLUMNS:
            if not _NAME.fullmatch(cells[name]):
                shape = "a name of letters, digits, dots, dashes and underscores; a path is not one"
                raise RecordingError(f"{path}: line {number}: {name}: expected {shape}")
        labels = tuple(cell for name, cell in cells.items() if name not in _COLUMNS)
        yield Part(cells["participant_id"], cells["recording"], cells["task"], labels)


def _check(path: Path, parts: Sequence[Part], kind: Kind[Data]) -> None:
    """Refuse two lines for one person at one task, and two recordings that would have one released name."""
    tried: set[tuple[str, str]] = set()
    named = set(_BESIDE)
    for number, part in enumerate(parts, start=2):
        if (part.person, part.task) in tried:
            raise RecordingError(f"{path}: line {number}: {part.person} has a recording of task {part.task} already")
        released = kind.released_name(part.recording).lower()
        if released in named:
            raise RecordingError(f"{path}: line {number}: a second recording would be released as {released}")
        tried.add((part.person, part.task))
        named.add(released)
        if not (path.parent / part.recording).is_file():
            raise RecordingError(f"{path}: line {number}: there is no file {part.recording} beside it")
