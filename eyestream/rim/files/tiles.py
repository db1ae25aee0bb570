"""Calibrations of tiles as files: one `.npz` each, whole numbers and a JSON header whose content hash must agree."""

import json
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from eyestream.errors import CalibrationError, meant
from eyestream.privacy.tiles import Field, TileCalibration
from eyestream.rim.files.package_data import DATA

__all__ = ["load_tiles", "save_tiles", "shipped_tiles"]

_SHIPPED = DATA / "tiles"
_DAMAGED = (
    ValueError,
    OSError,
    EOFError,
    RuntimeError,
    MemoryError,
    zipfile.BadZipFile,
    zlib.error,
    KeyError,
    TypeError,
)


def shipped_tiles() -> list[str]:
    """Names of those that come with the package."""
    return sorted(path.stem for path in _SHIPPED.glob("*.npz"))


def save_tiles(calibration: TileCalibration, path: str | Path) -> None:
    """Write `calibration` to exactly `path`."""
    header = calibration.header() | {"content_hash": calibration.content_hash}
    arrays: dict[str, Any] = {"header": np.array(json.dumps(header, sort_keys=True)), **dict(calibration.arrays())}
    with open(path, "wb") as file:  # a file object, so that numpy adds no suffix
        np.savez_compressed(file, **arrays)


def load_tiles(source: str | Path) -> TileCalibration:
    """Read the file `source`, or the shipped calibration of that name.

    Raises
    ------
    CalibrationError
        when there is none, it is not a calibration of tiles, or its content hash does not agree.
    """
    names = shipped_tiles()
    path = _SHIPPED / f"{source}.npz" if str(source) in names else Path(source)
    if not path.is_file():
        known = f"{', '.join(names)}{meant(str(source), names)}"
        raise CalibrationError(f"{source}: no such file, and none of the shipped calibrations of tiles: {known}")
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
            header = json.loads(str(stored["header"]))
            arrays = {name: stored[name] for name in stored.files if name != "header"}
        field = Field(header["columns"], header["rows"], header["cell_deg"])
        own = {name: header[name] for name in ("slot_us", "prior_slots", "source")}
        calibration = TileCalibration(field=field, **own, **arrays)
    except _DAMAGED as error:
        raise CalibrationError(f"{path}: is not a calibration of tiles ({type(error).__name__})") from None
    if header.get("content_hash") != calibration.content_hash:
        raise CalibrationError(f"{path}: the content does not agree with its hash: the file was damaged or changed")
    return calibration
