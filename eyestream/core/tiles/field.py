"""The field of gaze as a grid of square cells, and the content of a slot as samples counted in them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Counts = NDArray[np.int64]

LEAST_SEEN = 0.3
"""A slot is lost when less than this share of its samples was tracked, or when it has none."""


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
        """Number of all cells."""
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


def dwelt(occupancy: Counts, shape: tuple[int, ...]) -> NDArray[np.intp]:
    """(...,) the cell with the medians of a slot's samples on either axis, or -1 where the slot was lost.

    Parameters
    ----------
    occupancy
        (..., cells + 1) of `Field.occupancy`.
    shape
        Rows and columns of the field.
    """
    grid = occupancy[..., :-1].reshape(*occupancy.shape[:-1], *shape)
    seen = grid.sum(axis=(-2, -1))
    row, column = ((2 * grid.sum(axis=axis).cumsum(axis=-1) >= seen[..., None]).argmax(axis=-1) for axis in (-1, -2))
    return np.where(seen > LEAST_SEEN * occupancy[..., -1] / (1 - LEAST_SEEN), row * shape[1] + column, -1)


def _middles(count: int, width: float) -> Array:
    middles: Array = (np.arange(count, dtype=np.float64) - (count - 1) / 2) * width
    return middles
