"""Scalar quantisers for scores, and how many bits each score gets when the index is released by randomised response.

Lloyd-Max quantisers of the standard normal law (Max, IRE Trans. Inf. Theory 6(1), 1960; Lloyd, IEEE Trans. Inf. Theory
28(2), 1982) with 2^b points. Quantising and choosing bits decides how *useful* a release is; privacy does not rest on
it.
"""

import math
from dataclasses import dataclass
from functools import cache
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

__all__ = ["MOST_BITS", "Code", "Quantiser", "choose_code", "keep_probability", "quantiser"]

Array = NDArray[np.float64]

MOST_BITS = 6


@dataclass(frozen=True, eq=False)
class Quantiser:
    """2^b points for a standard normal score.

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
    """Lloyd-Max quantiser with 2^`bits` points, by Lloyd's fixed-point iteration to 1e-10."""
    normal, levels = NormalDist(), 2**bits
    points = np.array([1.2 * normal.inv_cdf((i + 0.5) / levels) for i in range(levels)])
    for _ in range(5000):
        borders = (points[1:] + points[:-1]) / 2
        mass = np.diff([0.0, *map(normal.cdf, borders), 1.0])
        density = np.array([0.0, *map(normal.pdf, borders), 0.0])
        moved = -np.diff(density) / mass
        if np.abs(moved - points).max() < 1e-10:
            break
        points = moved
    return Quantiser(points, borders, float((mass * points**2).sum()), float((points**2).mean()))


def keep_probability(epsilon: float, bits: int) -> float:
    """Probability (e^epsilon - 1) / (e^epsilon + 2^bits - 1) with which randomised response keeps the index."""
    return -math.expm1(-epsilon) / (1 + math.exp(bits * math.log(2) - epsilon) - math.exp(-epsilon))


@dataclass(frozen=True, eq=False)
class Code:
    """How some scores are released together.

    Attributes
    ----------
    scores : (d,) which scores, of those offered.
    bits : bits of each.
    slope : (d,) mean of the released point given the score, per unit of the score.
    residual : (d,) variance of the released point that the score does not explain.
    """

    scores: NDArray[np.intp]
    bits: tuple[int, ...]
    slope: Array
    residual: Array


def choose_code(worth: Array, epsilon: float) -> Code:
    """Bits for uncorrelated unit-variance scores whose perfect knowledge would remove the error `worth` (m,) each.

    One bit after the other goes where it removes most; of all totals the one is kept that removes most after the noise
    of the response,

        sum_i worth_i slope_i^2 / (slope_i^2 + residual_i),   slope = theta (1 - D),   slope^2 + residual = theta (1 -
        D) + (1 - theta) U,

    theta the probability of keeping, D the quantiser's distortion, U the mean square of a uniform point.
    """
    power = np.array([0.0] + [quantiser(b).power for b in range(1, MOST_BITS + 1)])
    spread = np.array([0.0] + [quantiser(b).spread for b in range(1, MOST_BITS + 1)])
    gains = np.append(np.diff(power), 0.0)
    bits = np.zeros(len(worth), dtype=np.intp)
    best, chosen = 0.0, bits.copy()
    while bits.sum() * math.log(2) < epsilon + 5 and bits.min() < MOST_BITS:
        bits[np.argmax(worth * gains[bits])] += 1
        theta = keep_probability(epsilon, int(bits.sum()))
        slope = theta * power[bits]
        removed = float((worth * slope**2 / np.maximum(slope + (1 - theta) * spread[bits], 1e-12)).sum())
        if removed > best:
            best, chosen = removed, bits.copy()
    scores = np.flatnonzero(chosen)
    theta = keep_probability(epsilon, int(chosen.sum()))
    slope = theta * power[chosen[scores]]
    residual = slope + (1 - theta) * spread[chosen[scores]] - slope**2
    return Code(scores, tuple(int(b) for b in chosen[scores]), slope, residual)
