"""Calibrations of tiles as files, for who learns them: they are stored as all calibrations are."""

from pathlib import Path

from eyestream.privacy.mechanisms.tile.tables import calibration_of, tiles_of
from eyestream.privacy.tiles import TileCalibration
from eyestream.rim.files import calibrations
from eyestream.streams import FrontEndMark

__all__ = ["load_tiles", "save_tiles"]


def save_tiles(tiles: TileCalibration, path: str | Path, people: int = 0, front_end: FrontEndMark | None = None) -> str:
    """Write what was learned of so many people to exactly `path`; its content hash."""
    made = calibration_of(tiles, people, front_end)
    calibrations.save(made, path)
    return made.content_hash


def load_tiles(source: str | Path) -> TileCalibration:
    """Read the file `source`, or the shipped calibration of that name; raises CalibrationError as `load`."""
    return tiles_of(calibrations.load(source))
