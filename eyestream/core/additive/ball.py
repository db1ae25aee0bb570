"""Balls that make a sensitivity true: projection of any input, and the same ball once more in integers.

The floating-point projection, a factor for every row, makes the released value a good one. The guarantee does not rest
on it: the coordinates are then snapped to a grid and *held* to a ball of integers, in integer arithmetic, and the
sensitivity is read off that ball. What the projection has not brought inside becomes the centre.

The step of the grid is a power of two, 2^-20 to 2^-21 of the noise's scale. Rounding moves each coordinate by up to
half a step, so the ball of integers is wider than radius/step by the norm of half a step *in every coordinate*.
"""

import math

import numpy as np
from numpy.typing import NDArray

_GRID_BITS = 20
_COARSEST_GRID_BITS = 10
_EXTENT_BITS = 30
_LARGEST_SQUARE = 2**62


def l2_factor(residual: NDArray[np.float64], radius: NDArray[np.float64]) -> NDArray[np.float64]:
    """Factor (B, 1) that takes each row of `residual` (B, m) into the Euclidean ball of `radius` (B,); 1 inside it.

    A row whose squares overflow gets 0, that is, becomes the centre.
    """
    return _factor(np.sqrt(np.vecdot(residual, residual)), radius)


def l1_factor(residual: NDArray[np.float64], radius: NDArray[np.float64]) -> NDArray[np.float64]:
    """Factor (B, 1) that takes each row of `residual` (B, m) into the L1 ball of `radius` (B,); 1 inside it."""
    return _factor(np.abs(residual).sum(axis=1), radius)


def _factor(norm: NDArray[np.float64], radius: NDArray[np.float64]) -> NDArray[np.float64]:
    return (radius / np.maximum(norm, radius))[:, None]


def steps_for(scale: NDArray[np.float64], extent: NDArray[np.float64]) -> NDArray[np.float64]:
    """Grid steps (B,) for noise of `scale` (B,): the power of two in (scale / 2^21, scale / 2^20].

    At a very large epsilon, where the integers of a ball whose coordinates have the weighted extent sqrt(sum w) radius
    (B,) would not fit into 64 bits, the step is the least power of two with which they do, at most scale / 2^10.

    Raises
    ------
    OverflowError
        when that is not enough.
    """
    fine = np.frexp(scale)[1] - 1 - _GRID_BITS
    share, power = np.frexp(extent)
    fitting = power - _EXTENT_BITS - (share * share <= 0.5)  # the least with extent <= 2^(fitting + 30.5)
    steps: NDArray[np.float64] = np.ldexp(1.0, np.maximum(fine, fitting))
    if (steps > scale / 2.0**_COARSEST_GRID_BITS).any():
        raise OverflowError("the coordinates do not fit into 64-bit integers")
    return steps


def _integers(
    near: NDArray[np.float64], lowest: NDArray[np.float64], highest: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Whole numbers next to `near` (B, M), which is overwritten, between two bounds, whatever they are: also NaN."""
    np.rint(near, out=near)
    np.fmax(near, lowest, out=near)
    np.fmin(near, highest, out=near)
    return near.astype(np.int64)


class L2Lattice:
    """Integers a with sum_i w_i a_i^2 <= rho^2, one ball per row.

    Parameters
    ----------
    radius
        (B,) radius of the ball of the real coordinates in the norm sqrt(sum w_i a_i^2).
    steps
        (B,) grid steps.
    weights
        (B, M) integer weights 1 or 2; 0 marks a coordinate that is not released: its integer is always 0.

    Attributes
    ----------
    largest : bound on every |a_i|.
    l1_diameter : (B,) largest sum_i |a_i - b_i| between two points of the ball (Cauchy-Schwarz:
        sqrt(sum 1/w_i) times twice rho, rounded down).

    Raises
    ------
    OverflowError
        when sum_i w_i a_i^2 might not fit into 64 bits.
    ValueError
        for other weights.
    """

    def __init__(self, radius: NDArray[np.float64], steps: NDArray[np.float64], weights: NDArray[np.int64]) -> None:
        if weights.min() < 0 or weights.max() > 2:
            raise ValueError("the weights of coordinates are 0, 1 or 2")
        rho = radius / steps + np.sqrt(weights.sum(axis=1) / 4)
        if not (weights.sum(axis=1) * (rho + 1) ** 2 < _LARGEST_SQUARE).all():  # NaN: refused
            raise OverflowError("the coordinates do not fit into 64-bit integers")
        self._squares = np.floor(rho * rho).astype(np.int64)
        kept = weights > 0
        bound = np.array([math.isqrt(int(s)) for s in self._squares], dtype=np.int64)
        self._highest = (bound[:, None] * kept).astype(np.float64)  # below 2^31: exact
        self._lowest = -self._highest
        self._weights = weights
        self._per_step = kept / steps[:, None]
        self.largest = int(bound.max())
        spread = np.where(kept, 1.0 / np.maximum(weights, 1), 0.0).sum(axis=1)  # a multiple of 1/2: exact
        self.l1_diameter = np.array(
            [math.isqrt(int(4 * s) * int(square)) for s, square in zip(spread, self._squares, strict=True)],
            dtype=np.int64,
        )

    def snap(self, coordinates: NDArray[np.float64], factor: NDArray[np.float64]) -> NDArray[np.int64]:
        """Integers (B, M) of the ball next to real `coordinates` (B, M) times the projection's `factor` (B, 1)."""
        near = self._per_step * factor
        near *= coordinates
        a = _integers(near, self._lowest, self._highest)
        a *= (np.vecdot(a * self._weights, a) <= self._squares)[:, None]  # this, in integers, is what holds
        return a


class L1Lattice:
    """Integers a with sum_i |a_i| <= rho, one ball per row; otherwise as `L2Lattice`."""

    def __init__(self, radius: NDArray[np.float64], steps: NDArray[np.float64], count: int) -> None:
        rho = radius / steps + count / 2
        if not (count * (rho + 1) < _LARGEST_SQUARE).all():
            raise OverflowError("the coordinates do not fit into 64-bit integers")
        self._limit = np.floor(rho).astype(np.int64)
        self._highest = self._limit[:, None].astype(np.float64)
        self._lowest = -self._highest
        self._per_step = 1.0 / steps[:, None]
        self.largest = int(self._limit.max())
        self.l1_diameter = 2 * self._limit

    def snap(self, coordinates: NDArray[np.float64], factor: NDArray[np.float64]) -> NDArray[np.int64]:
        """Integers (B, M) of the ball next to real `coordinates` (B, M) times the projection's `factor` (B, 1)."""
        a = _integers(self._per_step * factor * coordinates, self._lowest, self._highest)
        a *= (np.abs(a).sum(axis=1) <= self._limit)[:, None]
        return a
