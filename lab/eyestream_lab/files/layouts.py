"""Layouts: text tables of other people's data sets, whose columns have no names or other ones.

A layout is a TOML file. It says how a table is cut into columns and what they are called; for rows of features also how
far apart rows are. Gaze needs a profile beside it, which says what the named columns mean and in which unit.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from eyestream.errors import ConfigError, RecordingError
from eyestream.gaze.entry import USUAL
from eyestream.gaze.profile import Profile
from eyestream.problems import Problems
from eyestream.rim.files import path_of
from eyestream.rim.files.delimited import DELIMITERS, is_number, opened, read_columns, read_header
from eyestream.rim.files.gaze import GazeRecording, recording_of
from eyestream.rim.files.gaze_columns import GazeColumns, wanted_columns
from eyestream.rim.files.recordings import Recording, check_file
from eyestream.strict import read

Array = NDArray[np.float64]
Table = Mapping[str, Array | list[str]]

_FOLDER = Path(__file__).resolve().parents[1] / "data" / "layouts"
_SKIP, _REST, _ALL_FEATURES = "-", "...", "features"

SHIPPED = tuple(sorted(path.stem for path in _FOLDER.glob("*.toml")))
"""Names of the layouts that come with eyestream."""


class Layout(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the files of a data set are laid out.

    Attributes
    ----------
    name
        As in messages.
    holds
        Rows of features, or gaze.
    delimiters
        The first of them that gives the first line enough columns is taken.
    header
        Whether the first line has the names; `columns` is empty then. A first line without any number is left out.
    columns
        Names in order. "-" is a column that is not read, "..." at the end whatever follows, and "features" stands for
        the 52 features in their order.
    step_s, first_s
        Of rows of features: seconds from row to row, and the time of the first.
    head
        Columns with the motion of the head. They are read and told of; no feature holds them.
    file
        Regular expression of a file's name, whose groups are labels, `person` among them.
    labels
        For a group, what its values are called.
    """

    name: str
    holds: Literal["features", "gaze"]
    delimiters: tuple[Literal["comma", "semicolon", "tab", "space"], ...] = ("comma",)
    header: bool = False
    columns: tuple[str, ...] = ()
    step_s: float = 0.0
    first_s: float = 0.0
    head: tuple[str, ...] = ()
    file: str = ""
    labels: dict[str, dict[str, str]] = msgspec.field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns, in order, each its own; without "..."."""
        names: list[str] = []
        for column in self.columns:
            if column == _ALL_FEATURES:
                names += USUAL.names
            elif column != _REST:
                names.append(f"{_SKIP}{len(names)}" if column == _SKIP else column)
        return tuple(names)

    @property
    def more(self) -> bool:
        """Whether columns may follow that are not named."""
        return self.columns[-1:] == (_REST,)


def load_layout(name: str) -> Layout:
    """The shipped layout `name`, or the one in the file `name` when that has a slash or ends with .toml.

    Raises
    ------
    ConfigError
        when there is none, or it is not a layout; the key is named.
    """
    path = path_of("layout", name, _FOLDER, SHIPPED)
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: cannot read the layout: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: not TOML: {error}") from None
    problems = Problems()
    layout = read(Layout, table, problems)
    problems.refuse(f"{path}: ")
    assert layout is not None
    _check(layout, str(path))
    return layout


def _check(layout: Layout, where: str) -> None:
    """Check what the type of one key cannot say."""

    def need(holds: bool, key: str, wanted: str) -> None:
        if not holds:
            raise ConfigError(f"{where}: {key}: expected {wanted}")

    need(bool(layout.delimiters), "delimiters", "at least one")
    need(layout.header != bool(layout.columns), "columns", "names without a header, and none with one")
    need(_REST not in layout.columns[:-1], "columns", f"{_REST!r} at the end only")
    need(len(set(layout.names)) == len(layout.names), "columns", "different names")
    need((layout.holds == "features") == (layout.step_s > 0), "step_s", "more than 0 for features, and none for gaze")
    need(layout.header or set(layout.head) <= set(layout.names), "head", "names out of columns")
    try:
        groups = set(re.compile(layout.file).groupindex)
    except re.error as error:
        raise ConfigError(f"{where}: file: not a regular expression: {error}") from None
    need(not layout.file or "person" in groups, "file", "a group (?P<person>...)")
    need(set(layout.labels) <= groups, "labels", "groups of file")


def labels_of(path: Path, layout: Layout) -> dict[str, str]:
    """Parts of a file's name: person first, then the other groups in their order.

    Raises
    ------
    RecordingError
        when the name is not one of the layout's.
    """
    found = re.match(layout.file, path.name)
    if not layout.file or found is None:
        raise RecordingError(
            f"{path}: the name is not one of layout {layout.name}, which tells person and labels by it"
        )
    told = {group: layout.labels.get(group, {}).get(value, value) for group, value in found.groupdict().items()}
    return {"person": told.pop("person")} | told


def load_features(path: Path, layout: Layout) -> Recording:
    """Rows of features; every column that is named, in the layout's order.

    Raises
    ------
    RecordingError
        when the file is missing, damaged, has too few columns, or holds what is not a number.
    """
    table = _read_table(path, layout, None)
    names = tuple(table)
    values = np.column_stack([np.asarray(table[name], dtype=np.float64) for name in names])
    if not len(values):
        raise RecordingError(f"{path}: holds no rows")
    t = np.asarray(layout.first_s + layout.step_s * np.arange(len(values)), dtype=np.float64)
    return Recording(t, values, names, str(path))


def load_gaze(path: Path, profile: Profile, layout: Layout) -> tuple[GazeRecording, dict[str, Array]]:
    """Gaze in the columns that layout and profile name, and beside it the motion of the head as the file has it.

    The head is (n,) a column, by name. Nothing protects it: whoever publishes it publishes it as it is.

    Raises
    ------
    RecordingError, ConfigError
        As `load_features` and `eyestream.rim.files.gaze.load_gaze`.
    """
    if layout.holds != "gaze":
        raise RecordingError(f"{path}: layout {layout.name} is of rows of features, not of gaze")
    columns = profile.columns
    wanted = wanted_columns(profile, layout.names if not layout.header else columns.pupil)
    table = _read_table(path, layout, wanted, (columns.label,))
    recording = recording_of(path, profile, GazeColumns.of(profile, table))
    return recording, {name: np.asarray(table[name], dtype=np.float64) for name in layout.head}


@dataclass(frozen=True)
class _Cut:
    """How one file is cut into columns."""

    delimiter: str
    names: tuple[str, ...]
    header: bool


def _read_table(path: Path, layout: Layout, numbers: list[str] | None, texts: tuple[str, ...] = ()) -> Table:
    """Columns by name.

    Parameters
    ----------
    numbers, texts
        Those that are wanted, beside the head's; None: all that have a name. Texts that are not there are left out.

    Raises
    ------
    RecordingError
        naming the file and the column or line that is wrong.
    """
    cut = _cut(path, layout)
    wanted = [name for name in cut.names if not name.startswith(_SKIP)] if numbers is None else numbers
    present = [name for name in texts if name in cut.names]
    every = list(dict.fromkeys([*wanted, *layout.head]))
    return read_columns(path, cut.names, every, present, delimiter=cut.delimiter, header=cut.header)


def _cut(path: Path, layout: Layout) -> _Cut:
    check_file(path)
    with opened(path) as file:
        first = file.readline().rstrip("\r\n")
    least = max(len(layout.names), 2)
    counts = {name: len(first.split(DELIMITERS[name])) for name in layout.delimiters}
    for name, count in counts.items():
        delimiter = DELIMITERS[name]
        if layout.header and count >= least:
            return _Cut(delimiter, tuple(read_header(path, delimiter)), header=True)
        if not layout.header and (count == least or (layout.more and count > least)):
            names = (*layout.names, *(f"{_SKIP}{i}" for i in range(least, count)))
            return _Cut(delimiter, names, header=not any(map(is_number, first.split(delimiter))))
    seen = ", ".join(f"{count} by {name}" for name, count in counts.items())
    wanted = f"{least}{' or more' if layout.more or layout.header else ''} columns"
    raise RecordingError(f"{path}: line 1: {wanted} are wanted by layout {layout.name}, found {seen}")
