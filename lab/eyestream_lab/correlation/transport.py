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

Fractional assignment with the least largest load, for many small programs at once.

Jobs i are shared among machines j: u_ij >= 0, sum_j u_ij = 1; job i put wholly on machine j loads it by loads_ij. The
program: minimise r where sum_i u_ij loads_ij - r + slack_j = 0. Revised simplex method (Dantzig), each basis inverted
anew, from a given single assignment. What comes out is only ever used as a *proposal*: `transport` computes what it
proves. So neither the cap on pivots nor rounding can make a bound wrong.
"""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_BLOCK = 1500
_DROPPED = 30.0  # an edge this many nats above the load of the first assignment would carry less than 1e-13

_PIVOTS_PER_STATE = 40
_TOLERANCE = 1e-12
_NUDGE = 1e-12  # loads are raised by at most this share, each by another one, so that pivots do not tie
_GOLDEN = 0.6180339887498949


def least_load(loads: Array, allowed: NDArray[np.bool_], first: NDArray[np.intp]) -> tuple[Array, Array]:
    """Plans u and the prices of the machines.

    Parameters
    ----------
    loads
        (N, S, S) of job i on machine j, not negative.
    allowed
        (N, S, S) where a job may go.
    first
        (N, S) machine on which each job is at the beginning; allowed.

    Returns
    -------
    plans : (N, S, S), not negative, rows of sum 1.
    prices : (N, S), not negative, of sum 1 (or all zero when nothing was found).
    """
    programs = _Programs(loads, allowed, first)
    programs.solve()
    plans = programs.plans()
    sums = plans.sum(axis=2, keepdims=True)
    single = np.zeros_like(plans)
    np.put_along_axis(single, first[:, :, None], 1.0, axis=2)
    plans = np.where(sums > 0.5, plans / np.maximum(sums, 0.5), single)
    prices = np.maximum(programs.prices, 0.0)
    return plans, prices / np.maximum(prices.sum(axis=1, keepdims=True), 1e-300)


class _Programs:
    """Columns are u (S^2, by job), r, slack (S); rows are jobs (S), machines (S)."""

    def __init__(self, loads: Array, allowed: NDArray[np.bool_], first: NDArray[np.intp]) -> None:
        count, self.states = first.shape
        self.r = self.states * self.states
        odd = np.modf(np.arange(1, self.r + 1) * _GOLDEN)[0].reshape(self.states, self.states)
        nudged = loads * (1 + _NUDGE * odd)
        machines = np.arange(self.states, 2 * self.states)
        self._columns = np.zeros((count, 2 * self.states, self.r + 1 + self.states))
        for job in range(self.states):
            here = np.arange(job * self.states, (job + 1) * self.states)
            self._columns[:, job, here] = 1.0
            self._columns[:, machines, here] = nudged[:, job, :]
        self._columns[:, self.states :, self.r] = -1.0
        self._columns[:, machines, self.r + 1 + np.arange(self.states)] = 1.0
        self._closed = np.zeros((count, self._columns.shape[2]), dtype=bool)
        self._closed[:, : self.r] = ~allowed.reshape(count, -1)
        self._basis = self._first_basis(nudged, first)
        self._values = np.zeros((count, 2 * self.states))
        self.prices = np.zeros((count, self.states))

    def _first_basis(self, loads: Array, first: NDArray[np.intp]) -> NDArray[np.intp]:
        """The single assignment: u of every job, and r in place of the slack of the fullest machine."""
        carried = np.zeros_like(loads)
        np.put_along_axis(carried, first[:, :, None], np.take_along_axis(loads, first[:, :, None], axis=2), axis=2)
        basis = np.empty((len(first), 2 * self.states), dtype=np.intp)
        basis[:, : self.states] = np.arange(self.states) * self.states + first
        basis[:, self.states :] = self.r + 1 + np.arange(self.states)
        basis[np.arange(len(first)), self.states + carried.sum(axis=1).argmax(axis=1)] = self.r
        return basis

    def solve(self) -> None:
        """Pivot until all programs are solved or the cap is reached."""
        active = np.arange(len(self._basis))
        for _ in range(_PIVOTS_PER_STATE * self.states):
            try:
                active = self._pivot(active)
            except np.linalg.LinAlgError:  # a basis lost its rank to rounding: what was found so far is proposed
                return
            if not len(active):
                return

    def _pivot(self, active: NDArray[np.intp]) -> NDArray[np.intp]:
        """One pivot of each active program; which of them go on."""
        columns, basis = self._columns[active], self._basis[active]
        each = np.arange(len(active))
        inverse = np.linalg.inv(np.take_along_axis(columns, basis[:, None, :], axis=2))
        now = inverse[:, :, : self.states].sum(axis=2)
        duals = inverse[each, np.argmax(basis == self.r, axis=1)]
        self._values[active], self.prices[active] = now, -duals[:, self.states :]
        reduced = -np.einsum("ar,arc->ac", duals, columns)
        reduced[:, self.r] = 0.0
        reduced[self._closed[active]] = np.inf
        enter = reduced.argmin(axis=1)
        direction = np.einsum("arc,ac->ar", inverse, columns[each, :, enter])
        with np.errstate(divide="ignore", invalid="ignore"):
            steps = np.where(direction > _TOLERANCE, np.maximum(now, 0.0) / direction, np.inf)
        leave = steps.argmin(axis=1)
        going = (reduced[each, enter] < -_TOLERANCE) & np.isfinite(steps[each, leave])
        self._basis[active[going], leave[going]] = enter[going]
        left: NDArray[np.intp] = active[going]
        return left

    def plans(self) -> Array:
        """(N, S, S) u as the basis has it, rows of sum 1 up to rounding."""
        flat = np.zeros((len(self._basis), self._columns.shape[2]))
        np.put_along_axis(flat, self._basis, np.maximum(self._values, 0.0), axis=1)
        return flat[:, : self.r].reshape(-1, self.states, self.states)


def closure(exponents: Array) -> Array:
    """Shortest paths of `exponents` (S, S): the tightest A with the same vectors g; it is a (directed) distance."""
    result = np.array(exponents, dtype=np.float64)
    np.fill_diagonal(result, 0.0)
    for middle in range(len(result)):
        np.minimum(result, result[:, [middle]] + result[[middle], :], out=result)
    np.fill_diagonal(result, 0.0)
    return result


def _rounding(states: int, largest: float) -> float:
    """Margin of every bound, in nats, for its own floating-point error.

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
