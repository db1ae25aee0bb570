"""Formats of recordings: how the name of a file ends decides who reads the file, and is looked up here alone.

The product reads tables of text and ``.npz``. Another distribution adds a format by an entry point of the group
``eyestream.formats``. The name of the entry point is the ending, and its object is a `Format`::

    [project.entry-points."eyestream.formats"]
    xdf = "eyestream_lab.files.xdf:FORMAT"               # files whose names end with .xdf
    "_physio.tsv" = "eyestream_lab.files.bids:FORMAT"    # an ending that begins with _ stands as it is

The longest ending that fits a name wins, so ``a_physio.tsv`` is BIDS and no plain table.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import TYPE_CHECKING

from eyestream.doors import installed, loaded
from eyestream.errors import ConfigError
from eyestream.rim.files.delimited import is_packed

if TYPE_CHECKING:
    from eyestream.gaze.profile import Profile
    from eyestream.rim.files.gaze_columns import GazeColumns
    from eyestream.rim.files.recordings import Recording


@dataclass(frozen=True)
class Format:
    """Readers and writer of one kind of file. A reader raises RecordingError, or ConfigError for the profile.

    Attributes
    ----------
    gaze
        Reads the columns of gaze that a profile names; None: such a file holds no gaze.
    rows
        Reads rows of features, whose shapes and times `recordings.load` then checks; None: it holds none.
    save
        Writes rows of features to a path; None: nothing is written in this format.
    packed
        Whether the name may end with .gz too.
    """

    gaze: "Callable[[Path, Profile], GazeColumns] | None" = None
    rows: "Callable[[Path], Recording] | None" = None
    save: "Callable[[Recording, Path], None] | None" = None
    packed: bool = False


_OF_THE_LABORATORY = {
    ".asc": "an EyeLink file: pip install eyestream-lab",
    ".mat": "a MATLAB file: pip install eyestream-lab",
    "_physio.tsv": "a BIDS file: pip install eyestream-lab",
    ".xdf": "an XDF file: pip install 'eyestream-lab[xdf]'",
    ".parquet": "a Parquet file: pip install 'eyestream-lab[parquet]'",
}
"""Endings that eyestream-lab reads: who does not have it reads what to install."""


def format_of(path: Path, ours: Mapping[str, Format]) -> Format | None:
    """The format of a file by its name; None: it is in no known one.

    Parameters
    ----------
    ours
        The product's formats of what is wanted, by ending.

    Raises
    ------
    ConfigError
        eyestream-lab reads such files, and is not installed.
    """
    name, others = path.name.lower().removesuffix(".gz"), _installed()
    found = [ending for ending in {*ours, *others, *_OF_THE_LABORATORY} if name.endswith(ending)]
    if not found:
        return None
    ending = max(found, key=len)
    if ending not in ours and ending not in others:
        raise ConfigError(f"{path}: is {_OF_THE_LABORATORY[ending]}")
    chosen = ours[ending] if ending in ours else loaded(others[ending], Format)
    return chosen if chosen.packed or not is_packed(path) else None


def endings(ours: Mapping[str, Format], what: str) -> str:
    """The endings of all formats that have `what` (``gaze`` or ``rows``), in words; imports those of others."""
    others = [ending for ending, point in _installed().items() if getattr(loaded(point, Format), what) is not None]
    *names, last = [*ours, *others]
    return f"{', '.join(names)} or {last}"


@cache
def _installed() -> dict[str, EntryPoint]:
    """Formats of other distributions, by ending; they are imported when a file has the ending."""
    points = installed("eyestream.formats")
    return {point.name if point.name.startswith("_") else f".{point.name}": point for point in points}
