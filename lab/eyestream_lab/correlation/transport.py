"""Largest ratio of two averages of one positive vector whose entries are close to each other, bounded from above.

Given rows p, q >= 0 and exponents A (A(y, y) = 0), this module bounds

    log max over g > 0 of (g . p) / (g . q)   where g(y) <= exp(A(y, y')) g(y') for all y, y'.

Write K(y, y') = p(y) exp(A(y, y')) / q(y'). For *every* matrix u >= 0 with rows of sum 1,

    g . p = sum_y sum_y' u(y, y') p(y) g(y) <= sum_y' g(y') q(y') [sum_y u(y, y') K(y, y')]
         <= (g . q) max_y' sum_y u(y, y') K(y, y'),

so each u is a proof of a bound: it says where the mass of p is carried so that q covers it. By duality of linear
programs the best u attains the maximum when A is a directed distance (it may be made one: `closure`). The best u is a
fractional assignment of jobs y to machines y' with the least load (`assignment`). Whatever comes from there, the bound
is computed from u again and rounded outward: a bad plan loosens it and cannot make it wrong.
"""

import numpy as np
from numpy.typing import NDArray

from eyestream_lab.correlation.assignment import least_load

__all__ = ["closure", "largest_log_ratio", "single_assignment"]

Array = NDArray[np.float64]

_BLOCK = 1500
_DROPPED = 30.0  # an edge this many nats above the load of the first assignment would carry less than 1e-13


def closure(exponents: Array) -> Array:
    """Shortest paths of `exponents` (S, S): the tightest A with the same vectors g; it is a (directed) distance."""
    result = np.array(exponents, dtype=np.float64)
    np.fill_diagonal(result, 0.0)
    for middle in range(len(result)):
        np.minimum(result, result[:, [middle]] + result[[middle], :], out=result)
    np.fill_diagonal(result, 0.0)
    return result


def _rounding(states: int, largest: float) -> float:
    """What is added to every bound, in nats, to cover its own floating-point error.

    A load is a sum of at most S products u exp(log p + A - log q), with |log p|, |log q| <= 745 and |A| <= `largest`:
    its relative error is below (1600 + 4 S + 2 `largest`) 2^-52.
    """
    return (1600 + 4 * states + 2 * largest) * 2.0**-52


def largest_log_ratio(log_above: Array, log_below: Array, exponents: Array) -> tuple[Array, Array]:
    """Bounds of log max (g . p) / (g . q) for N pairs of rows.

    Parameters
    ----------
    log_above, log_below
        (N, S) logarithms of the rows p and q, -inf for zero, each with a finite entry. They need not sum to 1.
    exponents
        (S, S) finite A, closed (see `closure`), zero on the diagonal; g(y) <= exp(A(y, y')) g(y').

    Returns
    -------
    upper : (N,) never below the maximum.
    lower : (N,) never above the maximum: what one such g attains.
    """
    upper, lower = np.empty(len(log_above)), np.empty(len(log_above))
    outward = _rounding(len(exponents), float(np.abs(exponents).max()))
    for start in range(0, len(log_above), _BLOCK):
        block = slice(start, start + _BLOCK)
        above, below = _bounds(log_above[block], log_below[block], exponents)
        upper[block], lower[block] = above + outward, np.minimum(below - outward, above)
    return upper, lower


def single_assignment(log_above: Array, log_below: Array, exponents: Array) -> Array:
    """(N,) the bound of the best plan that carries every p(y) to one state alone: quick, and looser."""
    costs = _costs(log_above, log_below, exponents)
    plan, scale = _first_plan(costs)
    outward = _rounding(len(exponents), float(np.abs(exponents).max()))
    bound: Array = scale + _load(plan, costs - scale[:, None, None]) + outward
    return bound


def _costs(log_p: Array, log_q: Array, exponents: Array) -> Array:
    """(N, S, S) log K; +inf toward a state that q does not reach, -inf where there is nothing to carry."""
    reached = ~np.isneginf(log_q)[:, None, :]
    costs = np.where(reached, log_p[:, :, None] - np.where(reached, log_q[:, None, :], 0.0) + exponents, np.inf)
    return np.where(np.isneginf(log_p)[:, :, None], -np.inf, costs)


def _first_plan(costs: Array) -> tuple[Array, Array]:
    """Plan (N, S, S) that carries everything where it costs least, and the logarithm of its dearest edge (N,)."""
    plan = np.zeros(costs.shape)
    np.put_along_axis(plan, np.argmin(costs, axis=2)[:, :, None], 1.0, axis=2)
    return plan, costs.max(axis=(1, 2), where=plan > 0, initial=-np.inf)


def _bounds(log_p: Array, log_q: Array, exponents: Array) -> tuple[Array, Array]:
    """Both bounds of one block, not yet rounded outward."""
    costs = _costs(log_p, log_q, exponents)
    plan, scale = _first_plan(costs)
    relative = costs - scale[:, None, None]
    loads = np.exp(np.minimum(relative, _DROPPED))
    better, prices = least_load(loads, relative < _DROPPED, plan.argmax(axis=2))
    least = scale + np.minimum(_load(plan, relative), _load(better, relative))
    return least, _attained(prices, log_p, log_q, exponents)


def _load(plan: Array, relative: Array) -> Array:
    """(N,) logarithm of the largest load of plans (N, S, S) with rows of sum 1, from the logarithms of the loads."""
    carried = np.where(plan > 0, plan * np.exp(np.minimum(relative, 700.0)), 0.0)
    largest: Array = np.log(carried.sum(axis=1).max(axis=1))
    return largest


def _attained(prices: Array, log_p: Array, log_q: Array, exponents: Array) -> Array:
    """(N,) the ratio of one vector g that obeys the closed exponents, made from prices g q of sum 1, (N, S)."""
    with np.errstate(divide="ignore"):
        reached = ~np.isneginf(log_q)
        log_g = np.where(reached, np.log(prices) - np.where(reached, log_q, 0.0), -np.inf)
    log_g = (log_g[:, :, None] - exponents).max(axis=1)  # raised to exp(-A) times any other entry
    highest = (np.where(reached, log_g, np.inf)[:, None, :] + exponents).min(axis=2)
    log_g = np.where(reached, log_g, highest)
    attained: Array = np.logaddexp.reduce(log_g + log_p, axis=1) - np.logaddexp.reduce(log_g + log_q, axis=1)
    return attained
