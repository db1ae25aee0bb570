"""Chunks of n rows of one feature when the rows, not the chunks, follow a chain; CFPA and DCFPA with k = 1.

With one coefficient CFPA adds noise to the sum of the rows. DCFPA adds it to the sum of the differences, which is the
last row. The secret is the whole chunk; what lies ahead of it depends on its last row, what lies behind on its first:

    epsilon' = max over two chunks of own + backward(first row, first row') + forward(last row, last row').

Rows take evenly spaced values, so a sum has few values and its joint law with the next end row is a table. An output
between two possible sums tells less than one of them (`emissions`), so the sums are the extreme outputs.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eyestream.errors import ConfigError
from eyestream.lab.correlation.attack import strongest_kernels
from eyestream.lab.correlation.chains import MarkovClass
from eyestream.lab.correlation.profile import recursion
from eyestream.lab.correlation.steps import kernel_step

__all__ = ["RowsBound", "first_coefficient"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class RowsBound:
    """What a session tells about the middle one of its chunks.

    Attributes
    ----------
    own : loss of that chunk's own release, for the values that rows can take.
    total : upper bound of epsilon'.
    attained : log of the change of odds that some outputs reach.
    """

    own: float
    total: float
    attained: float


def first_coefficient(process: MarkovClass, n: int, scale: float, *, differences: bool, side: int) -> RowsBound:
    """epsilon' of CFPA (or DCFPA) with k = 1, rows of values 0, 1, .. S - 1.

    Parameters
    ----------
    process
        One chain of rows.
    n
        Rows of a chunk, at least 2.
    scale
        lambda of the noise, in units of the values: `fourier_scale` with the range S - 1 for the published one.
    differences
        DCFPA in place of CFPA.
    side
        Chunks before, and after, the one in question.

    Raises
    ------
    ConfigError
        when the class is not one chain from its stationary law, n is below 2, or the scale is not positive.
    """
    if not (process.is_exact and process.steady) or n < 2:
        raise ConfigError(f"process, n: one chain of rows from its stationary law and n >= 2 are needed, n is {n}")
    if not (np.isfinite(scale) and scale > 0):
        raise ConfigError(f"scale: a Laplace scale must be positive and finite, not {scale}")
    states, rows, back = process.states, process.lowest, process.backward(2)[0].lowest
    own = _own(rows, n, scale, differences=differences)
    loss = float(own.max())
    ahead, behind = _kernels(rows, back, n, scale, differences=differences)
    with np.errstate(divide="ignore"):
        logs = [np.log(kernels) for kernels in (ahead, behind)]
    bounds = [recursion([kernel_step(log, loss)] * side, states)[0][-1] for log in logs]
    reached = [strongest_kernels([log] * side, states)[0] for log in logs]
    return RowsBound(loss, _worst(own, bounds[1], bounds[0]), _worst(own, reached[1], reached[0]))


def _kernels(rows: Array, back: Array, n: int, scale: float, *, differences: bool) -> tuple[Array, Array]:
    """(O, S, S) from last row to last row of the next chunk, and backward from first row to first row."""
    if not differences:
        return _sum_kernels(rows, n, scale), _sum_kernels(back, n, scale)
    levels = np.arange(len(rows))
    outputs = np.exp(-np.abs(levels[:, None] - levels) / scale)
    far = np.linalg.matrix_power(back, n - 1)
    ahead = np.linalg.matrix_power(rows, n)[None] * outputs[:, None, :]
    return ahead, np.array([(back * seen) @ far for seen in outputs])


def _worst(own: Array, backward: Array, forward: Array) -> float:
    """Largest own + backward + forward over two chunks, own (S, S, S, S) by first, last, first', last' row."""
    return float((own + backward[:, None, :, None] + forward[None, :, None, :]).max())


def _own(rows: Array, n: int, scale: float, *, differences: bool) -> Array:
    """(S, S, S, S) largest loss of a release about two chunks of given first and last rows; -inf if impossible."""
    levels = np.arange(float(len(rows)))
    highest = np.where(np.eye(len(rows), dtype=bool), levels, -np.inf)
    lowest = np.where(np.eye(len(rows), dtype=bool), levels, np.inf)
    for _ in range(n - 1):
        highest = (highest[:, :, None] + np.where(rows > 0, levels, -np.inf)).max(axis=1)
        lowest = (lowest[:, :, None] + np.where(rows > 0, levels, np.inf)).min(axis=1)
    if differences:
        apart = np.abs(levels[:, None] - levels) / scale
        own = np.broadcast_to(apart[None, :, None, :], (len(rows),) * 4).copy()
    else:
        over = highest[:, :, None, None] - lowest[None, None]
        own = np.maximum(over, over.transpose(2, 3, 0, 1)) / scale
    possible = np.isfinite(highest)
    own[~(possible[:, :, None, None] & possible[None, None])] = -np.inf
    return own


def _sum_kernels(rows: Array, n: int, scale: float) -> Array:
    """(O, S, S) sum over m of P(sum of n rows = m, the n-th row = y | x before them) exp(-|o - m| / lambda)."""
    states = len(rows)
    sums = n * (states - 1) + 1
    joint = np.zeros((sums, states, states))
    joint[0] = np.eye(states)
    for _ in range(n):
        moved = joint @ rows
        joint = np.zeros_like(moved)
        for level in range(states):
            joint[level:, :, level] = moved[: sums - level, :, level]
    distance = np.abs(np.subtract.outer(np.arange(sums), np.arange(sums)))
    kernels: Array = np.einsum("om,mxy->oxy", np.exp(-distance / scale), joint)
    return kernels
