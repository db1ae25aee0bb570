"""Feature recordings as Parquet: a column of seconds, then one column a feature. pyarrow reads it (extra `parquet`)."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eyestream.errors import ConfigError, RecordingError
from eyestream.rim.files.formats import Format
from eyestream.rim.files.recordings import Recording, refuse_gaze

Array = NDArray[np.float64]


def load_parquet(path: Path) -> Recording:
    """The recording in the file: seconds in the first column, features in the others; null is NaN.

    Raises
    ------
    RecordingError
        when it is damaged or cut off, or a column holds no numbers.
    ConfigError
        when pyarrow is not installed.
    """
    arrow, parquet = _library(path)
    try:
        table = parquet.read_table(path)
        columns = [_numbers(arrow, path, name, table.column(i)) for i, name in enumerate(table.column_names)]
    except (arrow.ArrowException, OSError) as error:
        raise RecordingError(
            f"{path}: is not a .parquet recording, or a damaged one ({type(error).__name__})"
        ) from None
    if len(columns) < 2:
        raise RecordingError(f"{path}: expected a column of seconds and at least one feature")
    refuse_gaze(path, table.column_names)
    return Recording(columns[0], np.column_stack(columns[1:]), tuple(table.column_names[1:]), str(path))


def save_parquet(recording: Recording, path: Path) -> None:
    """Write seconds as doubles and features as floats, NaN as NaN."""
    arrow, parquet = _library(path)
    with np.errstate(all="ignore"):  # what float32 cannot hold becomes infinite, that is, missing
        features = recording.features.astype(np.float32)
    columns = [arrow.array(recording.t), *(arrow.array(np.ascontiguousarray(column)) for column in features.T)]
    parquet.write_table(arrow.Table.from_arrays(columns, names=["t_s", *recording.names]), path)


def _numbers(arrow: Any, path: Path, name: str, column: Any) -> Array:
    kind = column.type
    if not (arrow.types.is_floating(kind) or arrow.types.is_integer(kind)):
        raise RecordingError(f"{path}: column {name}: expected numbers, found {kind}")
    return np.asarray(column.cast(arrow.float64(), safe=False).to_numpy(), dtype=np.float64)


def _library(path: Path) -> tuple[Any, Any]:
    try:
        import pyarrow  # noqa: PLC0415  an extra
        import pyarrow.parquet  # noqa: PLC0415
    except ImportError:
        raise ConfigError(f"{path}: Parquet needs pyarrow: pip install 'eyestream-lab[parquet]'") from None
    return pyarrow, pyarrow.parquet


FORMAT = Format(rows=load_parquet, save=save_parquet)
