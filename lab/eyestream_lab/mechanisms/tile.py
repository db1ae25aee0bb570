"""The laboratory's part of the tile response."""

import numpy as np
from numpy.typing import NDArray

from eyestream.core.calibration import Calibration
from eyestream.core.mechanisms.tile.mechanism import Tile, TileCore
from eyestream.core.noise import Noise
from eyestream.core.tiles import Field
from eyestream_lab.audit.estimate import response_bound
from eyestream_lab.audit.trials import SHARP, AuditPart, Case, Cells
from eyestream_lab.calibration.tiles import calibrate_tiles, tile_calibration

Array = NDArray[np.float64]

_SLOT_US = 1_000_000


def synthetic_tiles() -> Calibration:
    """A calibration made by hand: a field of 4 x 8 cells, and a person who goes through all of them and is lost."""
    field = Field(columns=8, rows=4, cell_deg=5.0)
    person = 10 * np.eye(field.cells + 1, dtype=np.int64)
    return tile_calibration(calibrate_tiles([person], field, _SLOT_US, prior_slots=30, source="made by hand"), 1)


class TileTrial:
    """A slot that is lost and a slot in one corner, as the first of a session; a cell for each word."""

    def __init__(self, case: Case, noise: Noise | None) -> None:
        self.mechanism = Tile(synthetic_tiles(), case.epsilon, noise=noise)
        self._epsilon = case.epsilon
        core = self.mechanism.core
        assert isinstance(core, TileCore)
        self._words = core.code.words
        self._lost, self._corner = np.zeros((2, self.mechanism.features, 1))
        self._corner[0], self._lost[-1] = 10.0, 10.0
        self.partitions = {"word": self._words}

    def sharp(self, draws: int) -> bool:
        """By the own word, and by one other."""
        return response_bound(self._words, self._epsilon, draws // 2) >= SHARP * self._epsilon

    def observe(self) -> tuple[Cells, Cells]:
        """Cells of a hundred releases of either neighbour."""
        return self._cells(self._lost), self._cells(self._corner)

    def _cells(self, chunk: Array) -> Cells:
        release = self.mechanism.release
        return {"word": np.array([int(release(chunk)[-1, 0]) for _ in range(100)])}


AUDIT = AuditPart(
    trial=TileTrial,
    shapes=((1, None),),
    draws=(lambda k, epsilon: 4_000, lambda k, epsilon: 200_000),
    synthetic=lambda n, features, width: synthetic_tiles(),
)
