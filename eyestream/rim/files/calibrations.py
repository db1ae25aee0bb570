"""Calibration files: one `.npz` each, with a JSON header, the arrays and a content hash that must agree with both."""

import json
import os
import zipfile
import zlib
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

import numpy as np

from eyestream.core.calibration import SCHEMA_VERSION, Calibration, Provenance, Tables
from eyestream.core.calibration.tables import STORED_NAMES
from eyestream.core.mechanisms.entry import referred
from eyestream.core.mechanisms.registry import entry_of
from eyestream.errors import CalibrationError, meant
from eyestream.rim.files import DATA
from eyestream.streams import FrontEndMark

_SHIPPED = DATA / "calibrations"

# What zip, zlib and numpy raise for a file with wrong bytes in it; RuntimeError is zip's word for an encrypted one.
_DAMAGED = (ValueError, OSError, EOFError, RuntimeError, MemoryError, zipfile.BadZipFile, zlib.error)


def shipped() -> list[str]:
    """Names of the calibrations of all features that come with the package; others have folders of their own."""
    return sorted(path.stem for path in _SHIPPED.glob("*.npz"))


def save(calibration: Calibration, path: str | Path) -> None:
    """Write `calibration` to exactly `path`."""
    header = calibration.header() | {"content_hash": calibration.content_hash}
    arrays: dict[str, Any] = {"header": np.array(json.dumps(header, sort_keys=True)), **dict(calibration.arrays())}
    with open(path, "wb") as file:  # a file object, so that numpy adds no suffix
        np.savez_compressed(file, **arrays)


def load(source: str | Path) -> Calibration:
    """Read the calibration file `source`, or the shipped calibration of that name.

    Raises
    ------
    CalibrationError
        when there is none, it is not a calibration, its version is another, or its content hash does not agree.
    """
    path, name = Path(source), str(source)
    known = {path.stem: path for path in sorted(_SHIPPED.rglob("*.npz"))}
    if name in known:  # first: the working directory may be one that nobody may look into
        path = known[name]
    elif not os.path.isfile(path):
        raise CalibrationError(
            f"{source}: no such file, and none of the shipped calibrations: {', '.join(known)}{meant(name, known)}"
        )
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
            header = json.loads(str(stored["header"]))
            arrays = {name: stored[name] for name in stored.files if name != "header"}
        calibration = _build(header, arrays)
    except (*_DAMAGED, KeyError, TypeError) as error:
        raise CalibrationError(f"{path}: is not a calibration file ({type(error).__name__})") from None
    if header["content_hash"] != calibration.content_hash:
        raise CalibrationError(f"{path}: the content does not agree with its hash: the file was damaged or changed")
    return calibration


def _build(header: dict[str, Any], arrays: dict[str, Any]) -> Calibration:
    if header["schema_version"] != SCHEMA_VERSION:
        raise CalibrationError(f"calibration of schema version {header['schema_version']}, {SCHEMA_VERSION} is wanted")
    made_for, entry = header["mechanism"], entry_of(header["mechanism"])
    tables = {name.removeprefix("tables."): arrays[name] for name in arrays if name.startswith("tables.")}
    extra: dict[str, Any] = {"fingerprints": arrays["fingerprints"]} if "fingerprints" in arrays else {}
    if "front_end" in header:
        extra["front_end"] = FrontEndMark(**header["front_end"])
    for key in entry.takes_off.keys() & header.keys():
        extra["takes_off"] = referred(entry.takes_off[key])(header[key], arrays)
    provenance = header["provenance"] | {"recordings": tuple(header["provenance"]["recordings"])}
    made = Calibration(
        mechanism=made_for,
        names=tuple(header["names"]),
        units=tuple(header["units"]),
        rate_hz=header["rate_hz"],
        n=header["n"],
        k=header["k"],
        **{name: arrays[name] for name in ("declared", "lo", "hi", "fill")},
        tables=_tables(entry.tables, tables),
        provenance=Provenance(**provenance),
        **extra,
    )
    entry.mechanism.domain.check(made)
    return made


def _tables(kind: type[Tables], arrays: dict[str, Any]) -> Tables:
    """The figures out of their arrays, which have other names in files."""
    names = {stored: name for name, stored in STORED_NAMES.items()}
    own = {names.get(stored, stored): array for stored, array in arrays.items()}
    missing = [one.name for one in fields(kind) if one.default is MISSING and one.name not in own]
    if missing:
        raise CalibrationError(
            f"calibration without {', '.join(missing)}: an earlier version of eyestream made it. Take a shipped "
            "calibration, or make it again with this version"
        )
    return kind(**own)
