"""A calibration of tiles among the others: its input are the counts of a slot, its figures those of the model."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eyestream.core.calibration import Calibration
from eyestream.core.tiles import Field, TileCalibration
from eyestream.errors import CalibrationError

Whole = NDArray[np.int32]

NAME = "tile"
"""Name of the mechanism."""

MOST_SAMPLES = 2**20
"""Most samples of one cell in one slot; more count as so many."""


@dataclass(frozen=True, eq=False, repr=False)
class TileTables:
    """Figures of the model of motion, as `eyestream.core.tiles.TileCalibration` has them."""

    prior: Whole
    across: Whole
    upright: Whole
    shares: Whole
    scatter: Whole
    changes: Whole
    lost: Whole
    figures: NDArray[np.float64]
    """(3,) width of a cell in degrees, length of a slot in microseconds, and for how many slots the prior counts."""

    @property
    def scale(self) -> NDArray[np.float64]:
        """(F,) ones: every cell, and how many samples were lost, is input."""
        return np.ones(self.prior.size + 1)

    def check(self, features: int, n: int) -> None:
        """Raise CalibrationError when the figures are not of so many features and rows."""
        if (features, n) != (self.prior.size + 1, 1):
            raise CalibrationError(f"calibration of tiles: expected {self.prior.size + 1} counts of one slot")
        if self.prior.ndim != 2 or self.figures.shape != (3,):
            raise CalibrationError("calibration of tiles: expected the weights of a field, and three figures")
        self.tiles("")

    def tiles(self, source: str) -> TileCalibration:
        """The figures as the model takes them; raises CalibrationError when they are none."""
        cell_deg, slot_us, prior_slots = self.figures.tolist()
        rows, columns = self.prior.shape
        arrays = {name: value for name, value in vars(self).items() if name != "figures"}
        field = Field(columns, rows, cell_deg)
        return TileCalibration(field=field, slot_us=int(slot_us), prior_slots=int(prior_slots), source=source, **arrays)


def tiles_of(calibration: Calibration) -> TileCalibration:
    """A calibration's figures for the model of motion.

    Raises
    ------
    CalibrationError
        when it is one of rows.
    """
    if not isinstance(calibration.tables, TileTables):
        raise CalibrationError(f"expected a calibration of tiles, not one of {calibration.mechanism}")
    return calibration.tables.tiles(calibration.provenance.corpus)
