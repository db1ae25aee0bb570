"""Kinds of a corpus: rows of features, gaze, fixations, or maps. A kind reads and writes one recording."""

import struct
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from eyestream.errors import RecordingError
from eyestream.gaze.profile import Profile
from eyestream.gaze.samples import Samples
from eyestream.rim.files import recordings
from eyestream.rim.files.delimited import read_columns, read_header
from eyestream.rim.files.extraction import load_rows, stem
from eyestream.rim.files.gaze import GazeRecording, load_gaze
from eyestream.rim.files.profiles import load_profile
from eyestream.rim.files.recordings import Recording
from eyestream_lab.files.gaze_writing import save_gaze

Data = TypeVar("Data")


@dataclass(frozen=True)
class Kind(Generic[Data]):
    """How one recording is read and written, by functions that processes can be given.

    Attributes
    ----------
    name
        As in messages.
    load
        Of a file; RecordingError when it is not one.
    save
        To exactly this path.
    released_name
        Name of the released file, from that of the raw one.
    extent
        Rows, rows with a value, rate and names of columns.
    rate_hz
        Rows a second that somebody declared; None where nobody did. What is released of recordings is at this rate,
        whatever their own times say.
    """

    name: str
    load: Callable[[Path], Data]
    save: Callable[[Data, Path], None]
    released_name: Callable[[str], str]
    extent: "Callable[[Data], Extent]"
    rate_hz: float | None = None


@dataclass(frozen=True)
class Extent:
    """Counts of a recording before anything is released of it."""

    rows: int
    valid: int
    rate_hz: float
    names: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Map:
    """How much gaze fell on each cell of a field: (H, W), the first row at the top; edges in degrees."""

    density: NDArray[np.float64]
    x_deg: NDArray[np.float64]
    y_deg: NDArray[np.float64]


def on_grid(xy: NDArray[np.float64], rate_hz: float, labels: NDArray[np.str_] | None = None) -> GazeRecording:
    """Gaze (n, 2) in degrees at the moments 0, 1 / rate and so on, without pupils; lost where it is NaN."""
    samples = Samples.of(np.arange(len(xy)) / rate_hz, *xy.T)
    return GazeRecording(samples, labels, load_profile("degrees").at_rate(rate_hz), "")


def _rows_extent(recording: Recording) -> Extent:
    valid = int(np.isfinite(recording.features).any(axis=1).sum())
    return Extent(len(recording.t), valid, recording.rate_hz, recording.names)


ROWS: Kind[Recording] = Kind("rows", recordings.load, recordings.save, str, _rows_extent)
"""Rows of features, in the formats of `eyestream.rim.files.recordings`."""


def rows_of_gaze(profile: Profile) -> Kind[Recording]:
    """Rows of the 52 features, made of gaze as `profile` declares it. What is released are rows, as `.npz`."""
    return Kind(
        "rows", partial(load_rows, profile=profile), recordings.save, partial(_with_suffix, ".npz"), _rows_extent
    )


def gaze_kind(profile: Profile) -> Kind[GazeRecording]:
    """Gaze as `profile` declares it. What is released is a table in degrees, of the profile `degrees`, without
    pupils.

    A profile that leaves the rate open needs one, as in `load_profile("degrees").at_rate(60.0)`, for all systems that
    release gaze.
    """

    load, name = partial(_load_gaze, profile), partial(_with_suffix, ".csv.gz")
    return Kind("gaze", load, _save_gaze, name, _gaze_extent, profile.rate_hz)


def _load_gaze(profile: Profile, path: Path) -> GazeRecording:
    recording = load_gaze(path, profile)
    if len(recording.samples) > 1 and not (np.diff(recording.samples.t) > 0).all():
        raise RecordingError(f"{path}: the time of a sample does not go forward")
    return recording


def _save_gaze(recording: GazeRecording, path: Path) -> None:
    labels = recording.labels if recording.labels is not None else np.full(len(recording.samples), "-")
    save_gaze(recording.samples, labels, path)


def _with_suffix(suffix: str, name: str) -> str:
    return f"{stem(Path(name))}{suffix}"


def _gaze_extent(recording: GazeRecording) -> Extent:
    samples = recording.samples
    return Extent(len(samples), int(samples.valid.sum()), recording.profile.fixed_rate_hz, ("x_deg", "y_deg"))


@dataclass(frozen=True, eq=False)
class Fixations:
    """Where somebody fixated: (n, 2) degrees, to the right and up."""

    places: NDArray[np.float64]


def _load_fixations(path: Path) -> Fixations:
    names = read_header(path, ",")
    table = read_columns(path, names, _PLACE, [], delimiter=",", header=True)
    return Fixations(np.column_stack([np.asarray(table[name], dtype=np.float64) for name in _PLACE]))


def _save_fixations(found: Fixations, path: Path) -> None:
    np.savetxt(path, found.places, "%.4f", ",", header=",".join(_PLACE), comments="")


def _fixations_extent(found: Fixations) -> Extent:
    return Extent(len(found.places), int(np.isfinite(found.places).all(axis=1).sum()), 1.0, tuple(_PLACE))


_PLACE = ["x_deg", "y_deg"]

FIXATIONS: Kind[Fixations] = Kind(
    "fixations",
    _load_fixations,
    _save_fixations,
    str,
    _fixations_extent,
)
"""Tables of fixations with commas, `x_deg,y_deg` among their columns; they have no rate."""


def _load_map(path: Path) -> Map:
    try:
        with np.load(path, allow_pickle=False) as stored:
            return Map(stored["density"], stored["x_deg"], stored["y_deg"])
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise RecordingError(f"{path}: is not a map ({type(error).__name__})") from None


def _save_map(found: Map, path: Path) -> None:
    """The numbers, and the same as a picture beside them: white is the largest."""
    with path.open("wb") as file:
        np.savez_compressed(file, density=found.density, x_deg=found.x_deg, y_deg=found.y_deg)
    top = float(found.density.max())
    grey = np.rint(found.density * (255.0 / top if top > 0 else 0.0)).astype(np.uint8)
    path.with_suffix(".png").write_bytes(_png(grey))


def _png(grey: NDArray[np.uint8]) -> bytes:
    """A greyscale picture (H, W) of 8 bits (PNG specification, third edition, sections 5 and 11)."""

    def piece(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    height, width = grey.shape
    lines = np.concatenate((np.zeros((height, 1), np.uint8), grey), axis=1)  # each line begins with its filter, none
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    pieces = ((b"IHDR", header), (b"IDAT", zlib.compress(lines.tobytes(), 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(piece(kind, data) for kind, data in pieces)


def _map_extent(found: Map) -> Extent:
    return Extent(len(found.density), int((found.density > 0).any(axis=1).sum()), 0.0, ("density",))


def _map_name(task: str) -> str:
    return f"{task}.npz"


MAPS: Kind[Map] = Kind(
    "maps",
    _load_map,
    _save_map,
    _map_name,
    _map_extent,
)
"""Maps, as `.npz` with a `.png` beside each."""
