"""Evidence of one release on the public state, for the output law of each mechanism.

A state y stands for one value of the chunk. All that matters of a mechanism is how the likelihoods p(o | y) of an
output o compare between states:

- `log_ratio` (S, S), the largest log p(o | y) / p(o | y') over the outputs o, exact for every law here;
- `outputs` (O, S), rows of log p(o | y) up to a constant of the row, each of an output that can occur. They are
  *complete* when for every vector g > 0 and every two rows of a chain the largest ratio of the averages of p(o | .) g
  is attained at one of them. Then they give tighter bounds than `log_ratio`, which allows more vectors.

Laplace noise on M coordinates c_i(y) of scales lambda_i: log_ratio = sum_i |c_i(y) - c_i(y')| / lambda_i, attained
where every o_i is beyond the further one. And `outputs` are the points whose every coordinate is that of some state:
between two neighbouring values of c_i the ratio of two averages is (a e^2x + b) / (c e^2x + d) in x = o_i / lambda_i,
monotone.

LPA, CFPA, DCFPA. A chunk becomes integers, by the same projection, coordinates and snap that the mechanism uses, and
the noise on integer i of block b has the rate alpha_b: the log-ratio of two chunks is sum alpha_b |a_bi - a'_bi|, and
nothing is estimated. (The sampler's deviation, below 10^-6 a chunk, is left out.) Shrinking, smoothing and clipping
are functions of what was released.

`klt`. A chunk has a code word: the quantiser's cells of its scores along public directions, moved by what the released
past predicts. Whatever the past, and however fine the quantiser, the chunks that share a word are all that lie in some
box along the step's directions. So the sets of public chunks that a box can cut out are all the cells there can be, and
often more than there are: what is computed with them is an upper bound. Cells of a book are no boxes: with books every
set of public chunks counts as one that a word may cut out. (In as many dimensions as there are chunks less one that is
hardly more than the convex sets, which cells are.)
"""

from dataclasses import dataclass
from itertools import product
from types import FunctionType

import numpy as np
from numpy.typing import NDArray

from eyestream.core.mechanism import Mechanism
from eyestream.errors import ConfigError
from eyestream_lab.parts import part_of

Array = NDArray[np.float64]

_MOST_OUTPUTS = 512

_MOST_STATES = 9


@dataclass(frozen=True, eq=False)
class Emission:
    """One release of a chunk, given the state.

    Attributes
    ----------
    log_ratio : (S, S) largest log p(o | y) / p(o | y') over the outputs.
    outputs : (O, S) log-likelihoods of possible outputs, each row up to a constant.
    complete : whether no other output tells more, whatever else is known.
    """

    log_ratio: Array
    outputs: Array
    complete: bool

    @property
    def loss(self) -> float:
        """Largest entry of `log_ratio`: epsilon of one release for the values that the states stand for."""
        return float(self.log_ratio.max())


def laplace(points: Array, scales: Array | float) -> Emission:
    """Laplace noise on coordinates.

    Parameters
    ----------
    points
        (S, M) coordinates of the value of each state, all features one after the other, as they are noised: projected
        onto the mechanism's ball before. (S,) for one coordinate.
    scales
        (M,) or one, lambda of each coordinate, positive.

    Raises
    ------
    ConfigError
        when shapes do not fit or a scale is not positive.
    """
    points = np.array(points, dtype=np.float64)
    points = points[:, None] if points.ndim == 1 else points
    if points.ndim != 2 or not np.isfinite(points).all():
        raise ConfigError(f"points: finite (S, M) coordinates are needed, not shape {points.shape}")
    scales = np.broadcast_to(np.asarray(scales, dtype=np.float64), points.shape[1:])
    if not (np.isfinite(scales).all() and (scales > 0).all()):
        raise ConfigError("scales: a Laplace scale must be positive and finite")
    places = points / scales
    distances = np.abs(places[:, None, :] - places[None, :, :])
    ratio = distances.sum(axis=2)
    levels = [np.unique(column) for column in places.T]
    if np.log([len(level) for level in levels]).sum() > np.log(_MOST_OUTPUTS) + 1e-9:
        return Emission(ratio, -ratio, False)
    corners = np.stack([axis.ravel() for axis in np.meshgrid(*levels, indexing="ij")], axis=1)
    return Emission(ratio, -np.abs(corners[:, None, :] - places[None, :, :]).sum(axis=2), True)


def response(epsilon: float, cells: NDArray[np.bool_]) -> Emission:
    """k-ary randomised response of a word that is a function of the state and of released values.

    A released word j has the likelihood rho / K, times e^epsilon for the states whose word is j. These states are a
    cell. Which cells can occur depends on what was released before; the supremum is over all that are given.

    Parameters
    ----------
    epsilon
        Of the response.
    cells
        (C, S) the sets of states that share a word, for every word and every past that can be reached: with words of
        one bit both a set and the rest. The identity when every state has a word of its own.

    Raises
    ------
    ConfigError
        when epsilon is not positive or `cells` are not boolean rows over states.
    """
    if not epsilon > 0:
        raise ConfigError(f"epsilon: must be positive, not {epsilon}")
    cells = np.asarray(cells)
    if cells.ndim != 2 or cells.dtype != np.bool_:
        raise ConfigError(f"cells: boolean rows over states are needed, not {cells.dtype} of shape {cells.shape}")
    outputs = epsilon * np.unique(np.vstack([cells, np.zeros(cells.shape[1], dtype=bool)]), axis=0)
    ratio: Array = (outputs[:, :, None] - outputs[:, None, :]).max(axis=0)
    return Emission(ratio, outputs, len(outputs) <= _MOST_OUTPUTS)


def emission_of(mechanism: Mechanism, chunks: Array) -> Emission:
    """One release of a chunk that is one of S public ones.

    Parameters
    ----------
    mechanism
        One whose entry refers to its law.
    chunks
        (S, F, n) the public chunks, finite; S is at most 9 for `klt`.

    Raises
    ------
    ConfigError
        for another mechanism or shape.
    """
    if chunks.ndim != 3 or chunks.shape[1:] != (mechanism.features, mechanism.n):
        raise ConfigError(f"chunks: (S, {mechanism.features}, {mechanism.n}) are needed, not {chunks.shape}")
    law = part_of(mechanism.name).get("law", FunctionType)
    if law is None:
        raise ConfigError(f"no output law is known of {mechanism.name} for public chunks")
    frame = mechanism.frame
    found: Emission = law(mechanism, [np.clip(chunk[frame.active], *frame.range) for chunk in chunks])
    return found


def box_cells(points: Array) -> NDArray[np.bool_]:
    """(C, S) the sets of points (S, m) that a box along the axes can hold without the others; not empty, not all."""
    cells = []
    for cell in any_cells(len(points)):
        low, high = points[cell].min(axis=0), points[cell].max(axis=0)
        inside = ((points >= low) & (points <= high)).all(axis=1)
        if not (inside & ~cell).any():
            cells.append(cell)
    return np.array(cells)


def any_cells(states: int) -> NDArray[np.bool_]:
    """(C, S) all sets of some of so many points; not empty, not all."""
    if not 2 <= states <= _MOST_STATES:
        raise ConfigError(f"points: from 2 to {_MOST_STATES} can be told apart by words, not {states}")
    return np.array(list(product((False, True), repeat=states)))[1:-1]
