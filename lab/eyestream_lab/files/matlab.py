"""Gaze in MATLAB's files: a matrix whose columns the profile names, or a variable for each column. scipy reads them.

Names of variables are those of the file, and of fields the last part: ``ETdata.pos`` is ``pos``.
"""

import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.io import loadmat
from scipy.io.matlab import MatReadError

from eyestream.errors import RecordingError
from eyestream.gaze.profile import Profile
from eyestream.rim.files.delimited import reading
from eyestream.rim.files.formats import Format
from eyestream.rim.files.gaze_columns import GazeColumns, wanted_columns

Array = NDArray[np.float64]

_FEWEST = 20
"""Samples: what is shorter tells something about the recording."""


def read_matlab(path: Path, profile: Profile) -> GazeColumns:
    """The columns that the profile names; raises RecordingError where they are not there."""
    columns = matlab_columns(path, profile.table.names)
    for name in wanted_columns(profile, [*columns]):
        if name not in columns:
            raise RecordingError(f"{path}: no column {name!r}; the columns are {', '.join(map(repr, columns))}")
    return GazeColumns.of(profile, {name: values for name, values in columns.items() if name != profile.columns.label})


def matlab_columns(path: Path, names: Sequence[str] = ()) -> dict[str, Array]:
    """Columns (n,) of the longest table in the file.

    Parameters
    ----------
    names
        Names of a matrix' columns; without any, each variable of the most usual length is a column.

    Raises
    ------
    RecordingError
        The file is damaged, of version 7.3, or holds no such table.
    """
    found = dict(_arrays(_loaded(path), ""))
    matrices = {name: values for name, values in found.items() if values.ndim == 2}
    if names:
        fits = [values for values in matrices.values() if values.shape[1] == len(names)]
        if not fits:
            told = ", ".join(f"{name} ({' x '.join(map(str, values.shape))})" for name, values in matrices.items())
            raise RecordingError(f"{path}: no matrix has {len(names)} columns; the matrices are {told or 'none'}")
        return dict(zip(names, max(fits, key=len).T, strict=True))
    vectors = {name.rpartition(".")[2]: values for name, values in found.items() if values.ndim == 1}
    lengths = [len(values) for values in vectors.values()]
    usual = max(lengths, key=lambda length: (lengths.count(length) > 2, length), default=0)
    columns = {name: values for name, values in vectors.items() if len(values) == usual}
    if len(columns) < 2:
        name, matrix = max(matrices.items(), key=lambda one: len(one[1]), default=("", np.zeros((0, 0))))
        if not len(matrix):
            raise RecordingError(f"{path}: holds no table of numbers")
        told = f"the {matrix.shape[1]} columns of {name!r} have no names"
        raise RecordingError(f"{path}: {told}: give them, --columns t_s,-,x,y for four")
    return columns


def _loaded(path: Path) -> Mapping[str, Any]:
    try:
        with reading(path):
            return dict(loadmat(path, simplify_cells=True))
    except NotImplementedError:
        raise RecordingError(f"{path}: is of version 7.3: save it with -v7") from None
    except (MatReadError, ValueError, TypeError, KeyError, IndexError, zlib.error) as error:
        raise RecordingError(f"{path}: is not a .mat file, or a damaged one ({type(error).__name__})") from None


def _arrays(table: Mapping[str, Any], where: str) -> list[tuple[str, Array]]:
    """Arrays of numbers that may be samples, by name; those of structures too."""
    found: list[tuple[str, Array]] = []
    for name, value in table.items():
        if isinstance(value, Mapping):
            found += _arrays(value, f"{where}{name}.")
        elif (
            isinstance(value, np.ndarray)
            and value.dtype.kind in "biuf"
            and value.ndim in {1, 2}
            and len(value) >= _FEWEST
        ):
            found.append((f"{where}{name}", value.astype(np.float64)))
    return found


FORMAT = Format(gaze=read_matlab)
