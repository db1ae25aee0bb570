"""Recordings of feature streams: `.npz` with `t`, `features` and optionally `names`; `.csv` and `.tsv` with a header,
also with `.gz`; and what other distributions read (`eyestream.rim.files.formats`).

A recording is `t` (m,) seconds, strictly increasing, and `features` (m, F); NaN is a missing value.
"""

import csv
import gzip
import io
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eyestream.errors import RecordingError
from eyestream.gaze.entry import SHIPPED
from eyestream.rim.files.delimited import is_number, is_packed
from eyestream.rim.files.formats import Format, endings, format_of
from eyestream.rim.files.profiles import matching_profiles
from eyestream.streams import FrontEndMark

# What zip, zlib and numpy raise for a file with wrong bytes in it; RuntimeError is zip's word for an encrypted one.
_DAMAGED = (ValueError, OSError, EOFError, RuntimeError, MemoryError, zipfile.BadZipFile, zlib.error)


@dataclass(frozen=True, eq=False)
class Recording:
    """Rows of one person's feature stream.

    Attributes
    ----------
    t : (m,) seconds, strictly increasing.
    features : (m, F) float64; NaN is missing.
    names : F names.
    path : the file it comes from, for messages.
    simulated : whether it was made by `eyestream simulate`.
    simulation : version of its generator and its seed, when the file tells them.
    named : whether the file holds the names; if not, they are those of a front end of ours, or made up.
    others : keys of the file that are not part of a recording; nothing reads them.
    front_end : what made the rows out of gaze, when the file tells it.
    """

    t: NDArray[np.float64]
    features: NDArray[np.float64]
    names: tuple[str, ...]
    path: str = ""
    simulated: bool = False
    simulation: tuple[int, int] | None = None
    named: bool = True
    others: tuple[str, ...] = ()
    front_end: FrontEndMark | None = None

    @property
    def units(self) -> tuple[str, ...]:
        """F units: those of the front end that made the rows, and 1 where it is not known."""
        known = (entry.units for entry in SHIPPED.values() if entry.names == self.names)
        unknown = ("1",) * len(self.names)
        return unknown if self.front_end is None else next(known, unknown)

    @property
    def rate_hz(self) -> float:
        """Nominal rows a second: the inverse of the median step."""
        return float(1.0 / np.median(np.diff(self.t))) if len(self.t) > 1 else 1.0

    @property
    def gaps_s(self) -> float:
        """Seconds without rows, between rows that are further apart than `_GAP` periods."""
        steps = np.diff(self.t)
        return float((steps[steps * self.rate_hz > _GAP] - 1.0 / self.rate_hz).sum())


_GAP = 1.5
_MARK = ("profile", "front_end", "detector")
_KEYS = {"t", "features", "names", "simulated", "generator", "seed", *_MARK}


def check_file(path: Path) -> None:
    """Raise RecordingError unless there is a file."""
    if path.is_dir():
        raise RecordingError(f"{path}: is a folder, expected a file")
    if not path.is_file():
        raise RecordingError(f"{path}: no such file")


def load(path: str | Path) -> Recording:
    """Read a recording.

    Raises
    ------
    RecordingError
        when the file is missing, is not a recording, or its time does not increase (the line is named).
    ConfigError
        when its format needs eyestream-lab, or a library that is not installed.
    """
    path = Path(path)
    check_file(path)
    found = format_of(path, _OURS)
    if found is None or found.rows is None:
        raise RecordingError(f"{path}: a recording is a {endings(_OURS, 'rows')} file, .csv and .tsv also with .gz")
    first_line = {_NPZ: 0, _TEXT: 2}.get(found, 1)
    return _check(found.rows(path), first_line)


def save(recording: Recording, path: str | Path) -> None:
    """Write a recording in the format that the name of `path` says, else as text; values as float32."""
    found = format_of(path := Path(path), _OURS)
    (_save_text if found is None or found.save is None else found.save)(recording, path)


def _single(recording: Recording) -> NDArray[np.float32]:
    with np.errstate(all="ignore"):  # what float32 cannot hold becomes infinite, that is, missing
        return recording.features.astype(np.float32)


def _save_npz(recording: Recording, path: Path) -> None:
    """Names only when `named`."""
    arrays: dict[str, Any] = {"t": recording.t, "features": _single(recording)}
    if recording.named:
        arrays["names"] = np.array(recording.names)
    if recording.simulated:
        arrays["simulated"] = np.array(True)
    if recording.simulation is not None:
        arrays["generator"], arrays["seed"] = map(np.array, recording.simulation)
    if recording.front_end is not None:
        arrays |= {key: np.array(getattr(recording.front_end, key)) for key in _MARK}
    with open(path, "wb") as file:  # a file object, so that numpy adds no suffix
        np.savez_compressed(file, **arrays)


def _save_text(recording: Recording, path: Path) -> None:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n", delimiter=_delimiter(path))
    writer.writerow(["t_s", *recording.names])
    for t, row in zip(recording.t, _single(recording), strict=True):
        writer.writerow([repr(float(t)), *("" if np.isnan(v) else str(v) for v in row)])
    data = text.getvalue().encode()
    path.write_bytes(gzip.compress(data, mtime=0) if is_packed(path) else data)


def _check(recording: Recording, first_line: int) -> Recording:
    """The recording, if it is one; `first_line` is the number of its first row in messages."""
    path, t, shape = recording.path, recording.t, recording.features.shape
    if t.ndim != 1 or len(shape) != 2 or len(t) != shape[0]:
        raise RecordingError(
            f"{path}: expected t of shape (m,) and features of shape (m, F), found {t.shape} and {shape}"
        )
    if len(t) == 0:
        raise RecordingError(f"{path}: holds no rows")
    if len(recording.names) != shape[1] or len(set(recording.names)) != shape[1]:
        raise RecordingError(f"{path}: expected {shape[1]} different names, found {len(set(recording.names))}")
    if not np.isfinite(t).all():
        raise RecordingError(f"{path}: line {first_line + int(np.argmax(~np.isfinite(t)))}: the time is not a number")
    falls = np.flatnonzero(np.diff(t) <= 0)
    if len(falls):
        line = first_line + int(falls[0]) + 1
        raise RecordingError(f"{path}: line {line}: time does not increase; it is t, the first column, in seconds")
    return recording


def refuse_gaze(path: Path, header: Sequence[str]) -> None:
    """Raise RecordingError for the header of a table of gaze: as features, gaze itself would be released.

    Every reader of tables of rows asks this.
    """
    if any(entry.names == tuple(header[1:]) for entry in SHIPPED.values()):
        return
    fits = matching_profiles(header)
    if fits:
        told = ", ".join(fits[0].columns.gaze)
        raise RecordingError(f"{path}: columns {told} look like gaze, not like features: try --profile {fits[0].name}")


def _default_names(features: int) -> tuple[str, ...]:
    """Those of a front end of ours that has so many; else made up."""
    known = (entry.names for entry in SHIPPED.values() if len(entry.names) == features)
    return next(known, tuple(f"feature_{i}" for i in range(features)))


def _load_npz(path: Path) -> Recording:
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays, np.errstate(all="ignore"):
            missing = {"t", "features"} - set(arrays.files)
            if missing:
                raise RecordingError(f"{path}: has no array {' and no array '.join(sorted(missing))}")
            features = arrays["features"].astype(np.float64)
            named = "names" in arrays.files
            told = {"generator", "seed"} <= set(arrays.files)
            marked = set(_MARK) <= set(arrays.files)
            return Recording(
                t=arrays["t"].astype(np.float64),
                features=features,
                names=tuple(map(str, arrays["names"])) if named else _default_names(features.shape[-1]),
                path=str(path),
                simulated="simulated" in arrays.files and bool(arrays["simulated"]),
                simulation=(int(arrays["generator"]), int(arrays["seed"])) if told else None,
                named=named,
                others=tuple(sorted(set(arrays.files) - _KEYS)),
                front_end=FrontEndMark(*(str(arrays[key]) for key in _MARK)) if marked else None,
            )
    except (*_DAMAGED, TypeError, IndexError) as error:
        raise RecordingError(f"{path}: is not a .npz recording ({type(error).__name__})") from None


def _delimiter(path: Path) -> str:
    return "\t" if path.name.lower().removesuffix(".gz").endswith(".tsv") else ","


def _load_text(path: Path) -> Recording:
    opener = gzip.open if is_packed(path) else open
    try:
        with opener(path, "rt", encoding="utf-8", newline="") as file:
            rows = list(csv.reader(file, delimiter=_delimiter(path)))
    except (OSError, EOFError, UnicodeDecodeError, csv.Error, zlib.error) as error:
        kind = ".tsv" if _delimiter(path) == "\t" else ".csv"
        raise RecordingError(f"{path}: is not a {kind} recording ({type(error).__name__})") from None
    if not rows or len(rows[0]) < 2:
        empty = "" if rows else ", found an empty file"
        raise RecordingError(
            f"{path}: line 1: expected a header with a column of seconds and at least one feature{empty}"
        )
    header, width = rows[0], len(rows[0])
    if any(is_number(cell) for cell in header[1:]):  # a row: as a name it would be told in messages
        raise RecordingError(f"{path}: line 1: expected a header with names, found numbers")
    refuse_gaze(path, header)
    values = np.empty((len(rows) - 1, width))
    for line, row in enumerate(rows[1:], start=2):
        if len(row) != width:
            raise RecordingError(f"{path}: line {line}: expected {width} values, found {len(row)}")
        try:
            values[line - 2] = [float(cell) if cell.strip() else np.nan for cell in row]
        except ValueError:
            wrong = next(name for name, cell in zip(header, row, strict=True) if cell.strip() and not is_number(cell))
            raise RecordingError(f"{path}: line {line}: column {wrong}: expected a number") from None
    return Recording(values[:, 0], values[:, 1:], tuple(header[1:]), str(path))


_NPZ = Format(rows=_load_npz, save=_save_npz)
_TEXT = Format(rows=_load_text, save=_save_text, packed=True)
_OURS = {".npz": _NPZ, ".csv": _TEXT, ".tsv": _TEXT}
