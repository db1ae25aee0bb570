"""Where the eye is expected in the next slot, by the public model of tiles and the released words: for a gatekeeper."""

from collections.abc import Mapping

import numpy as np

from eyestream.core.calibration import Calibration
from eyestream.core.mechanisms.tile.tables import tiles_of
from eyestream.core.tiles.reader import TileCode, WordReader
from eyestream.errors import ConfigError
from eyestream_lab.gatekeeper.answers import Expected


class NextTileReading:
    """The model's expectation, while every slot of a session has come."""

    def __init__(self, calibration: Calibration) -> None:
        self._tiles = tiles_of(calibration)
        self._reader: WordReader | None = None
        self._session, self._next = -1, 0

    def take(self, session: int, index: int, epsilon: float, told: Mapping[str, float]) -> Expected | None:
        """After a chunk; None once one of its session is missing, or where it does not read as it was released.

        Whoever may write chunks chose its numbers: none of them raises an error.
        """
        if session != self._session:
            self._session, self._next = session, 0
            self._reader = self._begun(epsilon)
        if self._reader is not None:
            self._reader = self._reader if index == self._next and _reads(self._reader, told) else None
        self._next += 1
        if self._reader is None:
            return None
        field = self._tiles.field
        return Expected(self._reader.code.motion.predicted(self._reader.belief).places, field.x_deg, field.y_deg)

    def _begun(self, epsilon: float) -> WordReader | None:
        """A session's reader; None where no word has this epsilon."""
        try:
            return WordReader(TileCode(self._tiles, epsilon))
        except ConfigError:
            return None


def _reads(reader: WordReader, told: Mapping[str, float]) -> bool:
    """Whether the next chunk is what its word says."""
    word = told.get("word", -1.0)
    if not (0 <= word < reader.code.words and word.is_integer()):
        return False
    gaze = reader.take(int(word))
    return np.array_equal(np.array([gaze.x_deg, gaze.y_deg], np.float32), [told["gaze_x"], told["gaze_y"]])
