"""Upper bounds on what a release can be worth at an epsilon, under klt's Gaussian model: causal rate-distortion.

**The capacity of an eps-LDP channel.** Let y be released of x. For a fixed y let l(x) = P(y | x), and u = l / E l its
ratio to the mean over x. Then E u = 1, and epsilon says that u lies in [a, a e^eps] for some a. The information that y
carries about x is the mean over y of E[u ln u]. As u ln u is convex, it is largest where u takes only the two ends of
that interval, the upper one with probability q:
f(q) = q e^eps eps / (1 + q s) - ln(1 + q s), s = e^eps - 1. Its largest value, at 1 + q s = eps e^eps / s, is

    I(eps) = t - 1 - ln t,   t = eps / (1 - e^-eps)   [nats],

for every law of x and every number of words. Where 1 / q is an integer, the k-ary response with k = 1 / q words of
equal probability attains it (2.263 nats, 3.26 bits, at epsilon 4.8).

**A chunk of a session** (`causal_limit`). Scores of a chunk follow klt's model (`klt.schedule`): given the released
past, they are jointly normal. Coordinate i has the worth w_i, its part of the squared error that counts. With I nats
the least error is that of reverse water-filling: the share D_i = min(1, theta / w_i) of coordinate i is left, where
sum ln(1 / D_i) / 2 = I (Cover and Thomas, Elements of Information Theory, section 10.3.3). A Kalman filter carries
what is then known to the next chunk.

This is a figure of a model, not a theorem about people. The data are not normal. What lies outside of the model's
scores counts as lost. A chunk that spent some of its information on later chunks might do a little better.

**One number, once** (`one_shot`). Let x lie on a grid with law p. An output y counts by its column c_i = P(y | x_i), up
to a factor. Epsilon says that the entries of a column differ by a factor of at most e^eps, and the best columns have
only the entries 1 and e^eps (Kairouz, Oh, Viswanath, JMLR 17, 2016). If y is decoded as the mean of x given y, its
column explains (sum p x c)^2 / (sum p c) of the variance. The best release is therefore a linear programme over
columns. `one_shot` takes the columns whose entries e^eps are neighbours on the grid, as those of intervals are.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from eyestream.core.calibration import JointTables
from eyestream_lab.calibration.row_parts import inverse_root

Array = NDArray[np.float64]


def most_information(epsilon: float) -> float:
    """Nats that one release of pure `epsilon` can carry about its input at most, whatever the law of the input.

    Examples
    --------
    >>> round(most_information(4.8), 3)
    2.263
    """
    t = epsilon / -math.expm1(-epsilon)
    return t - 1 - math.log(t)


def one_shot(epsilon: float) -> float:
    """Share of a normal number's variance that the best single release of it by intervals leaves at `epsilon`.

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
    """(d,) share of each coordinate's variance that is left: the least sum of worth * share that `nats` allow."""
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
    """Explained share of the variance at best: mean over the first `chunks` of a session, of `epsilon` each."""
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
        state = state * decay + drive if turn else state  # predicted: covariance of the components, given the past
        white = inverse_root(total @ state @ total.T)
        root = np.linalg.pinv(white, hermitian=True)
        worth, rotation = np.linalg.eigh(root @ metric @ root)  # coordinates whose errors add up
        left = water_filling(np.maximum(worth, 0.0), nats)
        lost += float(np.maximum(worth, 0.0) @ left)
        described = left < 1
        seen = (rotation.T @ white)[described] @ total
        # Seen with this noise, a coordinate of variance 1 keeps the share `left`: the description as a measurement.
        noise = np.diag(left[described] / (1 - left[described]))
        crossed = state @ seen.T
        state = state - crossed @ np.linalg.solve(seen @ crossed + noise, crossed.T)
        state = (state + state.T) / 2
    return 1 - lost / chunks - float(target.weights @ target.residual)
