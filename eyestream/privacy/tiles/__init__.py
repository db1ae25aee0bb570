"""Tile response: where the eye dwells, slot by slot, as coarse gaze that is provably private. `TILES.md` derives it."""

from eyestream.privacy.tiles.calibration import TileCalibration
from eyestream.privacy.tiles.field import Field
from eyestream.privacy.tiles.reader import Gaze, Reader
from eyestream.privacy.tiles.response import TileResponse, TileSession
from eyestream.privacy.tiles.size import MOST_BITS, slots_touched, word_bits

__all__ = [
    "MOST_BITS",
    "Field",
    "Gaze",
    "Reader",
    "TileCalibration",
    "TileResponse",
    "TileSession",
    "slots_touched",
    "word_bits",
]
