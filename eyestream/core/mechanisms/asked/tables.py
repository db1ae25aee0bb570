"""Figures of asked features: how far chunk means move, and how, feature by feature."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eyestream.errors import CalibrationError

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class AskedTables:
    """For every feature: chunk means x of what changed since the baseline, in units of `unit`, go

    x' = keeps_j x + moves_j N(0, 1)   with probability shares_j,  j = 1 .. J.
    """

    unit: Array
    """(F,) root mean square of x, of the rooted feature where roots are coded; 0 makes the feature a constant."""
    root: Array
    """(F,) mean root of the corpus where roots are coded; 0 where they are not."""
    residual: Array
    """(F,) mean square error of a chunk's mean where its x is known: what clip and mean root leave."""
    first: Array
    """(F,) root mean square of the first chunk's x."""
    shares: Array
    keeps: Array
    moves: Array
    """(F, J) each."""

    @property
    def scale(self) -> Array:
        """(F,) `unit`."""
        return self.unit

    def changes(self, units: Array) -> Array:
        """(m, F) what changes (m, F) in units are of each feature; where roots are coded, from the mean root."""
        reached = np.maximum(self.root + self.unit * units, 0.0)
        return np.where(self.root > 0, reached * reached - self.root * self.root, self.unit * units)

    def check(self, features: int, n: int) -> None:
        """Raise CalibrationError when the figures are not of so many features, or no law has them."""
        laws = (self.shares, self.keeps, self.moves)
        if any(part.shape != (features,) for part in (self.unit, self.root, self.residual, self.first)) or any(
            part.ndim != 2 or part.shape != self.shares.shape or len(part) != features for part in laws
        ):
            raise CalibrationError(f"the chains of the calibration are not of {features} features")
        if (
            (self.unit < 0).any()
            or (self.root < 0).any()
            or not all((part > 0).all() for part in (self.first, self.shares, self.moves))
        ):
            raise CalibrationError("a chain of the calibration has a unit, a share or a move that is not positive")
