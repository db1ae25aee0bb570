"""How the components behind the scores move from one chunk to the next, as the public model has it.

x_j(t+1) = p_j x_j(t) + w_j(t): each component by itself, its scores alike; or, where the calibration has a matrix for
each component, x_j(t+1) = A_j x_j(t) + w_j(t): the end of a chunk tells more of the next one than its start does. The
covariance of w is what keeps that of x_j as it is.
"""

import numpy as np
from numpy.typing import NDArray

from eyestream.core.calibration import JointTables
from eyestream.core.portable import product, transposed

__all__ = ["Motion"]

Array = NDArray[np.float64]


class Motion:
    """The stacked components x, D = J d numbers.

    Attributes
    ----------
    stationary : (D, D) covariance of x before anything is known.
    drive : (D, D) covariance of w.
    stays : (D,) which numbers do not change within a person.
    """

    def __init__(self, tables: JointTables) -> None:
        self._components, self._scores = tables.covariances.shape[:2]
        self.stays = np.repeat(tables.poles == 1.0, self._scores)
        self.stationary = _blocks(tables.covariances)
        self._poles = np.repeat(tables.poles, self._scores)
        self._moves = tables.moves
        self._matrix = None if tables.moves is None else _blocks(tables.moves)
        self.drive = self.stationary - self._carried(self.stationary)

    def forward(self, states: Array) -> Array:
        """(..., D) what is expected of x a chunk later."""
        return states * self._poles if self._matrix is None else states @ self._matrix.T

    def spread(self, covariance: Array) -> Array:
        """(..., D, D) of what is unknown of x a chunk later; the same bits on every processor."""
        later: Array = self._carried(covariance) + self.drive
        return later

    def onward(self, covariance: Array) -> Array:
        """(..., D, D) covariance of x a chunk later with x now, from that of x now; the same bits everywhere."""
        if self._moves is None:
            return covariance * self._poles[:, None]
        parts = covariance.reshape(*covariance.shape[:-2], self._components, self._scores, -1)
        return product(self._moves, parts).reshape(covariance.shape)

    def _carried(self, covariance: Array) -> Array:
        return self.onward(transposed(self.onward(covariance)))


def _blocks(each: Array) -> Array:
    """(J d, J d) with the matrices (J, d, d) along the diagonal."""
    count, size = each.shape[:2]
    whole = np.zeros((count * size, count * size))
    for j, one in enumerate(each):
        whole[j * size : (j + 1) * size, j * size : (j + 1) * size] = one
    return whole
