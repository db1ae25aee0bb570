"""The signals whose balls bound the sensitivity: what calibration, error model and declared range need to know."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from eyestream.core.additive.error_model import cfpa_noise, dcfpa_noise, lpa_noise
from eyestream.core.spectrum import difference, integrate

__all__ = ["CHUNKS", "DIFFERENCES", "VALUES", "Signals"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Signals:
    """Signals of chunks, and the ball that holds them.

    With R the width of a feature's range, Delta_1 and Delta_2 of all chunks of n rows inside the range are twice the
    radius `reach(n)` R / 2, around the signal of the middle of the range.

    Attributes
    ----------
    there, back : from chunks (.., n) to signals, and back.
    order : norm of the ball, 1 (taxicab) or 2 (Euclidean).
    truncates : whether the first k Fourier coefficients are kept; if not, every value is, and K is 1.
    noise : N(k) of `eyestream.core.additive.error_model`, (K,), for n.
    reach : as above.
    lost : a bound (F,) on what truncation costs inside the range, of n, R (F,) and the radius (F,).
    """

    there: Callable[[Array], Array]
    back: Callable[[Array], Array]
    order: Literal[1, 2]
    truncates: bool
    noise: Callable[[int], Array]
    reach: Callable[[int], float]
    lost: Callable[[int, Array, Array], Array]


def _itself(signals: Array) -> Array:
    return signals


def _lost_of_chunks(n: int, width: Array, radius: Array) -> Array:
    return n * width**2 / 4


def _lost_of_differences(n: int, width: Array, radius: Array) -> Array:
    """The radius squared times the squared norm of the cumulative sum, 1 / (4 sin^2(pi / (4 n + 2)))."""
    lost: Array = radius**2 / (4 * np.sin(np.pi / (4 * n + 2)) ** 2)
    return lost


VALUES = Signals(_itself, _itself, 1, truncates=False, noise=lpa_noise, reach=float, lost=_lost_of_chunks)
"""The chunk itself, every value of it."""

CHUNKS = Signals(
    _itself, _itself, 2, truncates=True, noise=cfpa_noise, reach=lambda n: float(np.sqrt(n)), lost=_lost_of_chunks
)
"""The chunk itself, its first coefficients."""

DIFFERENCES = Signals(
    difference,
    integrate,
    2,
    truncates=True,
    noise=dcfpa_noise,
    reach=lambda n: float(np.sqrt(4 * n - 3)),
    lost=_lost_of_differences,
)
"""The differences from row to row, the first row kept; their first coefficients."""
