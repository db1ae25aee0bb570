"""Balls that make a sensitivity true: projection of any input, and the same ball once more in integers.

The floating-point projection makes the released value a good one. The guarantee does not rest on it: the coordinates
are then snapped to a grid and *held* to a ball of integers, in integer arithmetic, and the sensitivity is read off that
ball.

The step of the grid is a power of two, about 2^-20 of the noise's scale. Rounding moves each coordinate by up to half a
step, so the ball of integers is wider than radius/step by the norm of half a step *in every coordinate*.
"""

import math

import numpy as np
from numpy.typing import NDArray

__all__ = ["EuclideanLattice", "TaxicabLattice", "project_euclidean", "project_taxicab", "steps_for"]

_GRID_BITS = 20
_LARGEST_SQUARE = 2**62


def project_euclidean(residual: NDArray[np.float64], radius: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scale each row of `residual` (B, m) into the Euclidean ball of `radius` (B,), in place.

    A row whose norm is not finite (its squares overflow) becomes zero, that is, the centre.
    """
    return _scale(residual, radius, np.sqrt(np.einsum("ij,ij->i", residual, residual)))


def project_taxicab(residual: NDArray[np.float64], radius: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scale each row of `residual` (B, m) into the L1 ball of `radius` (B,), in place; see `project_euclidean`."""
    return _scale(residual, radius, np.abs(residual).sum(axis=1))


def _scale(
    residual: NDArray[np.float64], radius: NDArray[np.float64], norm: NDArray[np.float64]
) -> NDArray[np.float64]:
    finite = np.isfinite(norm)
    np.copyto(residual, 0.0, where=~finite[:, None])  # infinity times 0 would be NaN
    residual *= np.where(finite, radius / np.maximum(norm, radius), 0.0)[:, None]
    return residual


def steps_for(scale: NDArray[np.float64]) -> NDArray[np.float64]:
    """Grid steps (B,) for noise of `scale` (B,): the power of two in (scale / 2^21, scale / 2^20]."""
    steps: NDArray[np.float64] = 2.0 ** np.floor(np.log2(scale) - _GRID_BITS)
    return steps


def _integers(values: NDArray[np.float64], bound: NDArray[np.int64]) -> NDArray[np.int64]:
    """Nearest integers between -`bound` and `bound`, whatever `values` are.

    Clipped twice: a number that does not fit is cast to something else on every processor, and so is NaN.
    """
    a = np.clip(np.rint(values), -bound, bound).astype(np.int64)
    return np.clip(a, -bound, bound, out=a)


class EuclideanLattice:
    """Integers a with sum_i w_i a_i^2 <= rho^2, one ball per row.

    Parameters
    ----------
    radius
        (B,) radius of the ball of the real coordinates in the norm sqrt(sum w_i a_i^2).
    steps
        (B,) grid steps.
    weights
        (B, M) integer weights; 0 marks a coordinate that is not released: its integer is always 0.

    Attributes
    ----------
    largest : bound on every |a_i|.
    taxicab : (B,) largest sum_i |a_i - b_i| between two points of the ball (Cauchy-Schwarz:
        sqrt(sum 1/w_i) times twice rho, rounded down).
    euclidean : (B,) largest Euclidean distance of two points, for unit weights.

    Raises
    ------
    OverflowError
        when sum_i w_i a_i^2 might not fit into 64 bits.
    """

    def __init__(self, radius: NDArray[np.float64], steps: NDArray[np.float64], weights: NDArray[np.int64]) -> None:
        rho = radius / steps + np.sqrt(weights.sum(axis=1) / 4)
        if (weights.sum(axis=1) * (rho + 1) ** 2).max() >= _LARGEST_SQUARE:
            raise OverflowError("the coordinates do not fit into 64-bit integers")
        self._squares = np.floor(rho**2).astype(np.int64)
        self._bound = np.array([math.isqrt(int(s)) for s in self._squares], dtype=np.int64)[:, None]
        self._weights = weights
        self._kept = (weights > 0).astype(np.int64)
        self._per_step = 1.0 / steps[:, None]
        self.largest = int(self._bound.max())
        spread = np.where(weights > 0, 1.0 / np.maximum(weights, 1), 0.0).sum(axis=1)  # a multiple of 1/2: exact
        self.taxicab = np.array(
            [math.isqrt(int(4 * s) * int(square)) for s, square in zip(spread, self._squares, strict=True)],
            dtype=np.int64,
        )
        self.euclidean = 2 * np.sqrt(self._squares.astype(np.float64)) * (1 + 2.0**-50)

    def snap(self, coordinates: NDArray[np.float64]) -> NDArray[np.int64]:
        """Integers (B, M) of the ball next to real `coordinates` (B, M)."""
        a = _integers(coordinates * self._per_step, self._bound)
        a *= self._kept
        norm = (a * a * self._weights).sum(axis=1)
        outside = norm > self._squares
        factor = np.where(outside, np.sqrt(self._squares / np.maximum(norm, 1)) * (1 - 2.0**-30), 1.0)
        a = np.trunc(a * factor[:, None]).astype(np.int64)
        norm = (a * a * self._weights).sum(axis=1)
        a *= (norm <= self._squares)[:, None]  # what the shrinking did not bring inside is the centre
        return a


class TaxicabLattice:
    """Integers a with sum_i |a_i| <= rho, one ball per row; otherwise as `EuclideanLattice`."""

    def __init__(self, radius: NDArray[np.float64], steps: NDArray[np.float64], count: int) -> None:
        rho = radius / steps + count / 2
        if count * (rho.max() + 1) >= _LARGEST_SQUARE:
            raise OverflowError("the coordinates do not fit into 64-bit integers")
        self._limit = np.floor(rho).astype(np.int64)
        self._per_step = 1.0 / steps[:, None]
        self.largest = int(self._limit.max())
        self.taxicab = 2 * self._limit

    def snap(self, coordinates: NDArray[np.float64]) -> NDArray[np.int64]:
        """Integers (B, M) of the ball next to real `coordinates` (B, M)."""
        limit = self._limit[:, None]
        a = _integers(coordinates * self._per_step, limit)
        norm = np.abs(a).sum(axis=1)
        factor = np.where(norm > self._limit, self._limit / np.maximum(norm, 1) * (1 - 2.0**-30), 1.0)
        a = np.trunc(a * factor[:, None]).astype(np.int64)
        a *= (np.abs(a).sum(axis=1) <= self._limit)[:, None]
        return a
