"""What one release tells of the public state, for the output law of each mechanism.

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
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eyestream.errors import ConfigError

__all__ = ["Emission", "laplace", "response"]

Array = NDArray[np.float64]

_MOST_OUTPUTS = 512


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
