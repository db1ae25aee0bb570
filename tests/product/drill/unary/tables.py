"""Figures of the mechanism."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eyestream.errors import CalibrationError

__all__ = ["Counts"]


@dataclass(frozen=True, eq=False, repr=False)
class Counts:
    """How many counts there are, (1,): from 0 to the n rows of a spell."""

    scale: NDArray[np.float64]

    def check(self, features: int, n: int) -> None:
        """Refuse figures of other spells."""
        if (features, self.scale.tolist()) != (1, [n + 1.0]):
            raise CalibrationError(f"expected {n + 1} counts of one flag")
