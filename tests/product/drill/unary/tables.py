"""Figures of the mechanism. Nothing is learned of people: only names, units and rate of the recordings are used."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eyestream.core.calibration import Calibration, Corpus
from eyestream.errors import CalibrationError
from tests.product.drill.unary.usual import Usual

__all__ = ["Counts", "calibrate"]


@dataclass(frozen=True, eq=False, repr=False)
class Counts:
    """How many counts there are, (1,): from 0 to the n rows of a spell."""

    scale: NDArray[np.float64]

    def check(self, features: int, n: int) -> None:
        """Refuse figures of other spells."""
        if (features, self.scale.tolist()) != (1, [n + 1.0]):
            raise CalibrationError(f"expected {n + 1} counts of one flag")


def calibrate(corpus: Corpus, *, share: float = 0.5, description: str = "declared", **others: Any) -> Calibration:
    """Of spells of `corpus.n` flags; from which `share` on the right is a session's usual side."""
    one, nothing = np.ones(1), np.zeros(1)
    counts, usual = Counts(one * (corpus.n + 1)), Usual(one * share)
    return corpus.calibration(
        "unary", counts, description=description, lo=nothing, hi=one, fill=nothing, takes_off=usual
    )
