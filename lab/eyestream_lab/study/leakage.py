"""Temporal privacy leakage of Cao, Yoshikawa, Xiao, Xiong: Quantifying Differential Privacy under Temporal
Correlations, ICDE 2017.

A value l_t is released at every t with epsilon, and the adversary knows the Markov chain that the values follow. What
the whole series of releases tells of one l_t is bounded by

    TPL_t = BPL_t + FPL_t - epsilon,   BPL_t = L(P_B, BPL_{t-1}) + epsilon,   FPL_t = L(P_F, FPL_{t+1}) + epsilon

with P_B the backward and P_F the forward transitions and L the largest value of a linear-fractional program over two
rows q, d of the matrix,

    L(P, alpha) = max over rows and sets J of log( (q_J (e^alpha - 1) + 1) / (d_J (e^alpha - 1) + 1) ),

q_J and d_J the sums over J. The best J of two rows is found greedily: begin with all j where q_j > d_j and drop those
whose ratio does not exceed the value reached, until none is dropped (their Algorithm 1, Theorem 4). The series of BPL
with constant epsilon converges unless some q_J is large enough (Theorem 5); its limit solves
d y^2 + (1 - d - q e^epsilon) y = e^epsilon (1 - q), y = e^alpha.

Uncorrelated values (equal rows) leak epsilon, values that determine each other T epsilon. The unit is the chunk; this
is a figure of a model, under the assumption that the adversary knows that model and no other correlation.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def fit(sequences: Sequence[NDArray[np.intp]], states: int) -> tuple[Array, Array]:
    """Forward (from, to) and backward (to, from) transition matrices of sequences of states.

    One count is spread over the cells of each row: a
    transition that was never seen is rare, not impossible. Without it small samples would have no supremum.
    """
    counts = np.zeros((states, states))
    for sequence in sequences:
        np.add.at(counts, (sequence[:-1], sequence[1:]), 1.0)
    counts += 1.0 / states
    return counts / counts.sum(axis=1, keepdims=True), counts.T / counts.T.sum(axis=1, keepdims=True)


def increment(transitions: Array, alpha: float) -> tuple[float, float, float]:
    """L(P, alpha) with the sums (q, d) of the set that attains it; (0, 0, 0) when all rows are equal."""
    best = (0.0, 0.0, 0.0)
    for q in transitions:
        for d in transitions:
            found = _greedy(q, d, alpha)
            if found[0] > best[0]:
                best = found
    return best


def _greedy(q: Array, d: Array, alpha: float) -> tuple[float, float, float]:
    chosen = q > d
    if alpha == 0 or not chosen.any():
        return 0.0, 0.0, 0.0
    while True:
        sum_q, sum_d = float(q[chosen].sum()), float(d[chosen].sum())
        value = _log_affine(sum_q, alpha) - _log_affine(sum_d, alpha)
        with np.errstate(divide="ignore"):
            ratio = np.log(q[chosen]) - np.log(d[chosen])
        kept = chosen.copy()
        kept[np.flatnonzero(chosen)[ratio <= value]] = False
        if kept.sum() == chosen.sum() or not kept.any():
            return value, sum_q, sum_d
        chosen = kept


def _log_affine(share: float, alpha: float) -> float:
    """log(share (e^alpha - 1) + 1) without overflow."""
    if share <= 0:
        return 0.0
    return float(np.logaddexp(math.log(share) + alpha, math.log1p(-share) if share < 1 else -math.inf))


def backward_leakage(transitions: Array, epsilon: float, length: int) -> Array:
    """(length,) BPL of constant epsilon with the backward transitions; with the forward ones, FPL from the end."""
    leaked = np.empty(length)
    leaked[0] = epsilon
    for t in range(1, length):
        leaked[t] = increment(transitions, float(leaked[t - 1]))[0] + epsilon
    return leaked


def total_leakage(backward: Array, forward: Array, epsilon: float, length: int) -> Array:
    """(length,) TPL at every time of a series of `length` releases."""
    total: Array = (
        backward_leakage(backward, epsilon, length) + backward_leakage(forward, epsilon, length)[::-1] - epsilon
    )
    return total


def supremum(transitions: Array, epsilon: float) -> float:
    """Limit of BPL (or FPL) for constant epsilon and time without end; infinite where it grows for ever.

    Examples
    --------
    Chunks that do not depend on each other leak epsilon; a chunk that determines the next one leaks without end:

    >>> supremum(np.array([[0.5, 0.5], [0.5, 0.5]]), 1.0), supremum(np.eye(2), 1.0)
    (1.0, inf)

    The pair (q, d) that attains L at the limit is found by iterating; the limit itself is the closed form of Theorem 5
    for that pair.
    """
    alpha = epsilon
    for _ in range(100_000):
        _, q, d = increment(transitions, alpha)
        limit = _closed_form(q, d, epsilon)
        _, at_limit_q, at_limit_d = increment(transitions, min(limit, 1e6))
        if (q, d) == (at_limit_q, at_limit_d):
            return limit
        alpha = increment(transitions, alpha)[0] + epsilon
    return math.inf


def _closed_form(q: float, d: float, epsilon: float) -> float:
    """Fixed point of log((q (e^a - 1) + 1) / (d (e^a - 1) + 1)) + epsilon (Theorem 5)."""
    if q <= d:
        return epsilon
    if d == 0:
        log_q = math.log(q)
        if q >= 1 or log_q + epsilon >= 0:
            return math.inf
        return math.log1p(-q) + epsilon - math.log1p(-math.exp(log_q + epsilon))
    scale = math.exp(-epsilon)  # y = z e^epsilon, so that nothing overflows
    b = q + (d - 1) * scale
    root = b + math.sqrt(b * b + 4 * d * (1 - q) * scale)
    return epsilon + math.log(root / (2 * d))
