"""The difference signal of a chunk and its inverse.

y_1 = x_1, y_t = x_t - x_{t-1}; the inverse is the cumulative sum. Bozkir et al. (PLOS ONE 2021) print the inverse as
the sum of two neighbouring differences, which does not invert anything; the cumulative sum does.
"""

import numpy as np
from numpy.typing import NDArray

__all__ = ["difference", "integrate"]


def difference(signals: NDArray[np.float64]) -> NDArray[np.float64]:
    """Differences along the last axis with the first element kept; same shape, a new array."""
    result = np.empty_like(signals)
    result[..., 0] = signals[..., 0]
    np.subtract(signals[..., 1:], signals[..., :-1], out=result[..., 1:])
    return result


def integrate(differences: NDArray[np.float64]) -> NDArray[np.float64]:
    """Cumulative sum along the last axis, the inverse of `difference`; same shape, a new array."""
    result: NDArray[np.float64] = np.cumsum(differences, axis=-1)
    return result
