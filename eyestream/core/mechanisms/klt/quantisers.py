"""Lloyd-Max quantisers of the standard normal law (Max, IRE Trans. Inf. Theory 6(1), 1960; Lloyd, IEEE Trans. Inf.
Theory 28(2), 1982), as they are written down here: points that each machine found by itself would differ in last bits.
"""

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

__all__ = ["MOST_BITS", "Quantiser", "quantiser"]

Array = NDArray[np.float64]

MOST_BITS = 6

# fmt: off
_ABOVE: dict[int, tuple[float, ...]] = {
    1: (0.797884560803,),
    2: (0.452780034636, 1.510417608499),
    3: (0.245094178944, 0.756005281206, 1.343909278505, 2.151945704537),
    4: (0.128395029851, 0.388048299490, 0.656759118532, 0.942340456487, 1.256231197347, 1.618046386022,
        2.069017226531, 2.732589570995),
    5: (0.065889659771, 0.198051829669, 0.331378305760, 0.466699522977, 0.604933624009, 0.747135703688,
        0.894565117388, 1.048783319923, 1.211804380609, 1.386340339587, 1.576228078612, 1.787233217703,
        2.028728399395, 2.317739404195, 2.691119577377, 3.260732493401),
    6: (0.033409506370, 0.100278289304, 0.167296903369, 0.234566985336, 0.302192846372, 0.370282645259,
        0.438949671659, 0.508313780898, 0.578503030519, 0.649655581064, 0.721921940570, 0.795467655841,
        0.870476586544, 0.947154944743, 1.025736349077, 1.106488239537, 1.189720141861, 1.275794486434,
        1.365141019810, 1.458276374698, 1.555831224705, 1.658588900424, 1.767541882991, 1.883977240522,
        2.009611042594, 2.146810217056, 2.298981209760, 2.471304797618, 2.672273835255, 2.917406790723,
        3.240437055012, 3.744101270895),
}
"""The points above 0, by the number of bits; the others lie opposite."""
# fmt: on

_POWER = {
    1: 0.636619772368,
    2: 0.882518152171,
    3: 0.965452239211,
    4: 0.990498991992,
    5: 0.997495331644,
    6: 0.999355760335,
}


@dataclass(frozen=True, eq=False)
class Quantiser:
    """2^b points for a standard normal score, each the mean of its cell.

    Attributes
    ----------
    points : (L,) increasing.
    borders : (L - 1,) between them.
    power : mean square of the quantised score, 1 - D with D the distortion.
    spread : mean square of a point drawn uniformly.
    """

    points: Array
    borders: Array
    power: float
    spread: float


@cache
def quantiser(bits: int) -> Quantiser:
    """With 2^`bits` points, 1 to MOST_BITS."""
    above = _ABOVE[bits]
    points = np.array([*(-point for point in reversed(above)), *above])
    spread = math.fsum(point * point for point in above) / len(above)  # fsum rounds once, after the last
    return Quantiser(points, (points[1:] + points[:-1]) / 2, _POWER[bits], spread)
