"""Fractional assignment with the least largest load, for many small programs at once.

Jobs i are shared among machines j: u_ij >= 0, sum_j u_ij = 1; job i put wholly on machine j loads it by loads_ij. The
program: minimise r where sum_i u_ij loads_ij - r + slack_j = 0. Revised simplex method (Dantzig), each basis inverted
anew, from a given single assignment. What comes out is only ever used as a *proposal*: `transport` computes what it
proves. So neither the cap on pivots nor rounding can make a bound wrong.
"""

import numpy as np
from numpy.typing import NDArray

__all__ = ["least_load"]

Array = NDArray[np.float64]

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
