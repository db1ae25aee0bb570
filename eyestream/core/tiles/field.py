"""The field of gaze as a grid of square cells, and the content of a slot as samples counted in them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Field"]

Array = NDArray[np.float64]
Counts = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Field:
    """A rectangle around straight ahead.

    Attributes
    ----------
    columns, rows
        Cells from left to right, and from below upward.
    cell_deg
        Width and height of a cell.
    """

    columns: int
    rows: int
    cell_deg: float

    @property
    def cells(self) -> int:
        """In all."""
        return self.columns * self.rows

    @property
    def x_deg(self) -> Array:
        """(columns,) azimuth of the middles of the columns."""
        return _middles(self.columns, self.cell_deg)

    @property
    def y_deg(self) -> Array:
        """(rows,) elevation of the middles of the rows."""
        return _middles(self.rows, self.cell_deg)

    def occupancy(self, x: Array, y: Array, valid: NDArray[np.bool_]) -> Counts:
        """(cells + 1,) how many samples lie in each cell, row by row, and in the last place how many were lost.

        Total: gaze outside the field counts in the cell that is nearest; what is not finite is lost.

        Parameters
        ----------
        x, y, valid
            (n,) degrees, and whether the eye was tracked; n may be 0.
        """
        seen = valid & np.isfinite(x) & np.isfinite(y)
        cells = self._nearest(y[seen], self.rows) * self.columns + self._nearest(x[seen], self.columns)
        counts = np.zeros(self.cells + 1, dtype=np.int64)
        counts[:-1] = np.bincount(cells, minlength=self.cells)
        counts[-1] = len(x) - len(cells)
        return counts

    def _nearest(self, degrees: Array, count: int) -> NDArray[np.intp]:
        edge = count * self.cell_deg / 2
        inside = np.clip(degrees, -edge, edge)  # before the division: 1e308 stays finite
        return np.minimum(((inside + edge) / self.cell_deg).astype(np.intp), count - 1)


def _middles(count: int, width: float) -> Array:
    middles: Array = (np.arange(count, dtype=np.float64) - (count - 1) / 2) * width
    return middles
