"""Tile response: where the eye dwells, slot by slot, as coarse gaze that is provably private. `TILES.md` derives it."""

from eyestream.core.tiles.calibration import TileCalibration
from eyestream.core.tiles.field import Field
from eyestream.core.tiles.reader import Gaze, WordReader
from eyestream.core.tiles.size import MOST_BITS, slots_touched, word_bits

__all__ = ["MOST_BITS", "Field", "Gaze", "TileCalibration", "WordReader", "slots_touched", "word_bits"]
