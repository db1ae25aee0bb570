"""Hidden Markov chains of chunk means, one for each asked feature: what released words tell of them, and their cells.

Everything here is a function of released words and public figures, added up as `eyestream.core.portable` says: the
sidecar and every reader find the same numbers, to the last bit. A change is counted in the feature's unit, the root
mean square of its changes in the corpus. A *belief* (d, 65) is how likely each change of `GRID` is, for d features.
"""

import numpy as np
from numpy.typing import NDArray

from eyestream.core.mechanisms.asked.tables import AskedTables
from eyestream.core.portable import decay, total

__all__ = ["GRID", "MOST", "Chains"]

Array = NDArray[np.float64]

MOST = 4.0
"""Largest change that is coded, in units."""

GRID = np.arange(-MOST, MOST + 0.125, 0.125)
"""All its numbers, and their distances, are exact."""

_STEP = float(GRID[1] - GRID[0])
_FLOOR = 1e-4
"""Beside the law of a step: a jump to anywhere."""

_ROUNDS = 8
_NEARER = 1e-6


class Chains:
    """The chains of some features, and the randomised response that their words meet.

    Parameters
    ----------
    tables, features
        Figures of all features, and which (d,) are asked for.
    cells
        Of each feature.
    replace
        Probability that the words of a chunk, one for each feature, are replaced together.

    Attributes
    ----------
    start : (d, 65) belief of a session's first chunk.
    """

    def __init__(self, tables: AskedTables, features: NDArray[np.intp], cells: int, replace: float) -> None:
        self._cells = cells
        words = cells ** len(features)
        self._kept, self._drawn = 1.0 - replace, replace / words
        self._odds = self._kept / (replace / cells)
        self.start = _shares(_bell(GRID / tables.first[features][:, None]) + 0.02)
        kept, spread, share = (part[features][:, :, None, None] for part in (tables.keeps, tables.moves, tables.shares))
        bells = share / spread * _bell((GRID - kept * GRID[:, None]) / spread)
        self._law = _shares(total(bells.reshape(*bells.shape[:2], -1)).reshape(len(features), len(GRID), -1) + _FLOOR)

    def onward(self, belief: Array) -> Array:
        """Belief about the next chunk, before its word is known."""
        return total(belief[:, :, None] * self._law)

    def borders(self, predicted: Array) -> Array:
        """(d, cells - 1) borders of the cells: Lloyd's for what the response leaves of a word, on the predicted law.

        The best reading of a released word is between the mean of its cell and the mean of all, as the word may have
        been drawn; borders lie midway between readings (Lloyd, IEEE Trans. Inf. Theory 28(2), 1982).
        """
        weights = np.stack([predicted, predicted * GRID])[..., None]
        mean = total(weights[1])
        shares = (np.arange(self._cells) + 0.5) / self._cells
        below = (np.cumsum(predicted, axis=1)[:, :, None] < shares).sum(axis=1)
        readings = GRID[np.minimum(below, len(GRID) - 1)]
        for _ in range(_ROUNDS):
            readings = np.sort(readings, axis=1) + _NEARER * np.arange(self._cells)  # cells that are empty, too
            held, sums = total(weights * _parts((readings[:, 1:] + readings[:, :-1]) / 2))
            readings = (self._odds * sums + mean) / (self._odds * held + 1)
        borders: Array = (readings[:, 1:] + readings[:, :-1]) / 2
        return borders

    def told(self, predicted: Array, borders: Array, word: NDArray[np.int64]) -> Array:
        """Belief after the released word (d,) of a chunk with these borders."""
        hit = np.take_along_axis(_parts(borders), word[:, None, None], axis=2)[..., 0]
        held = readings_of(predicted, hit)
        others = np.array([np.multiply.reduce(np.delete(held, feature)) for feature in range(len(held))])
        return _shares(predicted * (self._drawn + self._kept * others[:, None] * hit))

    def smoothed(self, belief: Array, later: Array) -> Array:
        """Belief about a chunk after all words of its session, from `belief` and the smoothed one a chunk later."""
        odds = later / self.onward(belief)
        return _shares(belief * total((self._law * odds[:, None, :]).swapaxes(1, 2)))

    def expected(self, values: Array, chunks: int = 128) -> Array:
        """(d,) mean square error of readings of `values` (d, 65), as the model has it: over evenly spread words."""
        belief, error = self.start, np.zeros(len(self.start))
        even = np.sqrt(np.array([2.0, 3.0, 5.0, 7.0][: len(belief) + 1]))
        for chunk in range(chunks):
            predicted = self.onward(belief) if chunk else belief
            borders, lot = self.borders(predicted), (chunk + 0.5) * even % 1.0
            change = GRID[np.minimum((np.cumsum(predicted, axis=1) < lot[1:, None]).sum(axis=1), len(GRID) - 1)]
            drawn = lot[0] < 1.0 - self._kept
            word = np.where(drawn, np.floor(lot[1:] * self._cells), words_of(change, borders)).astype(np.int64)
            belief = self.told(predicted, borders, word)
            error = error + readings_of(belief, (values - readings_of(belief, values)[:, None]) ** 2)
        return error / chunks


def words_of(changes: Array, borders: Array) -> NDArray[np.int64]:
    """(d,) the cells of changes (d,)."""
    word: NDArray[np.int64] = (changes[:, None] > borders).sum(axis=1)
    return word


def readings_of(belief: Array, values: Array = GRID) -> Array:
    """(d,) mean of `values`, of the grid or of each feature's, under a belief."""
    return total((belief * values)[:, :, None])[:, 0]


def _parts(borders: Array) -> Array:
    """(d, 65, cells) which part of the surroundings of each number of `GRID` lies in each cell."""
    below = np.clip((borders[:, None, :] - GRID[:, None]) / _STEP + 0.5, 0.0, 1.0)
    ends = np.ones((*below.shape[:2], 1))
    return np.diff(np.concatenate([0 * ends, below, ends], axis=2), axis=2)


def _shares(weights: Array) -> Array:
    """The weights (..., m) divided by their sum."""
    return weights / total(weights[..., None])


def _bell(distance: Array) -> Array:
    """e^(-x^2 / 2)."""
    return decay(distance * distance / 2)
