"""The most that a release could be worth at an epsilon, under klt's Gaussian model: causal rate-distortion.

**What an eps-LDP channel can carry.** Let y be released of x with l(x) = P(y | x), and u = l / E l its ratio to the
mean over x. Epsilon says that u lies in [a, a e^eps] for some a, and E u = 1. The information is the mean over y of
E[u ln u], and u ln u is convex, so it is largest where u takes both ends alone, the upper one with probability q:
f(q) = q e^eps eps / (1 + q s) - ln(1 + q s), s = e^eps - 1. Its largest value, at 1 + q s = eps e^eps / s, is

    I(eps) = t - 1 - ln t,   t = eps / (1 - e^-eps)   [nats],

whatever x's law and however many words there are. The k-ary response with k = 1 / q words of equal probability attains
it, where that is an integer (2.263 nats, 3.26 bits, at epsilon 4.8).

**What that can say about a chunk.** Scores of a chunk follow klt's model (`klt.schedule`). Given
the released past the innovation is normal. Described with I nats, the least squared error of jointly normal
coordinates of worth w_i (their part of the error that counts) is that of reverse water-filling, D_i = min(1, theta /
w_i) with sum ln(1 / D_i) / 2 = I (Cover and Thomas, Elements of Information Theory, section 10.3.3). The filter goes on
with what was then known. Every chunk spends its information on itself.

So it is a figure of a model, and no theorem about people: the data are not normal, what lies outside of the model's
scores counts as lost, and a chunk that spent some of its information on later ones might do a little better.

**What one number can say of itself.** Of a release y of a number x on a grid, whose law is p, what counts are the
columns c_i = P(y | x_i) up to a factor. Epsilon says that a column's entries differ by e^eps at most, and the best
columns have entries 1 and e^eps alone (Kairouz, Oh, Viswanath, JMLR 17, 2016). A column read as its mean explains
(sum p x c)^2 / (sum p c) of the variance. So the best release is a linear programme over columns: `one_shot` takes all
columns whose e^eps lie side by side, as those of cells do.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from eyestream.core.calibration import JointTables
from eyestream_lab.calibration.row_parts import inverse_root

__all__ = ["Target", "causal_limit", "most_information", "one_shot", "water_filling"]

Array = NDArray[np.float64]


def most_information(epsilon: float) -> float:
    """Nats that one release of pure `epsilon` can tell about its input, whatever it is.

    Examples
    --------
    >>> round(most_information(4.8), 3)
    2.263
    """
    t = epsilon / -math.expm1(-epsilon)
    return t - 1 - math.log(t)


def one_shot(epsilon: float) -> float:
    """Least share of a normal number's variance that any release of it, once, with cells and `epsilon` leaves.

    Examples
    --------
    >>> round(one_shot(4.8), 3)
    0.161
    """
    grid = np.arange(-4, 4, 1 / 16) + 1 / 32
    p, top = np.exp(-(grid**2) / 2), math.exp(epsilon)
    p /= p.sum()
    borders = range(0, len(p) + 1, 2)
    ends = np.array([(i, j) for i in borders for j in borders if i < j])
    places = np.arange(len(p))[:, None]
    columns = np.where((places >= ends[:, 0]) & (places < ends[:, 1]), top, 1.0)
    worth = (p * grid @ columns) ** 2 / (p @ columns)
    told = -linprog(-worth, A_eq=columns, b_eq=np.ones(len(p)), method="highs").fun
    return float(1 - told / (p @ grid**2))


def water_filling(worth: Array, nats: float) -> Array:
    """(d,) share of each coordinate's variance that is left: the least sum of worth * share with so much told."""
    ordered = np.sort(worth[worth > 0])[::-1]
    if len(ordered) == 0 or nats <= 0:
        return np.ones(len(worth))
    logs = np.cumsum(np.log(ordered))
    counts = np.arange(1, len(ordered) + 1)
    levels = np.exp((logs - 2 * nats) / counts)  # theta when the first so many coordinates are described
    level = levels[np.flatnonzero(levels < ordered)[-1]]
    with np.errstate(divide="ignore"):
        return np.where(worth > level, level / worth, 1.0)


@dataclass(frozen=True, eq=False)
class Target:
    """Weights of squared errors.

    Attributes
    ----------
    weights : (A,) of the released features, in standard deviations of each; they sum to 1.
    rows : of a chunk.
    residual : (A,) share of each feature's variance that lies outside of the scores.
    """

    weights: Array
    rows: int
    residual: Array


def causal_limit(tables: JointTables, target: Target, epsilon: float, chunks: int) -> float:
    """Explained share of the variance, mean over a session of so many chunks of `epsilon` each."""
    components, d = tables.covariances.shape[:2]
    total = np.tile(np.eye(d), components)
    poles = np.repeat(tables.poles, d)
    decay = np.multiply.outer(poles, poles)
    state = np.zeros((components * d, components * d))
    for j, own in enumerate(tables.covariances):
        state[j * d : (j + 1) * d, j * d : (j + 1) * d] = own
    drive = state * (1 - decay)
    each = np.repeat(target.weights, tables.expand.shape[1] // len(target.weights)) / target.rows
    metric = (tables.expand * each) @ tables.expand.T
    nats, lost = most_information(epsilon), 0.0
    for turn in range(chunks):
        state = state * decay + drive if turn else state
        white = inverse_root(total @ state @ total.T)
        root = np.linalg.pinv(white, hermitian=True)
        worth, rotation = np.linalg.eigh(root @ metric @ root)
        left = water_filling(np.maximum(worth, 0.0), nats)
        lost += float(np.maximum(worth, 0.0) @ left)
        described = left < 1
        seen = (rotation.T @ white)[described] @ total
        noise = np.diag(left[described] / (1 - left[described]))
        crossed = state @ seen.T
        state = state - crossed @ np.linalg.solve(seen @ crossed + noise, crossed.T)
        state = (state + state.T) / 2
    return 1 - lost / chunks - float(target.weights @ target.residual)
