"""Hidden Markov chains of chunk means, one for each asked feature: what released words tell of them, and their cells.

Everything here is a function of released words and public figures, added up as `eyestream.core.portable` says: the
sidecar and every reader find the same numbers, to the last bit. A change is counted in the feature's unit, the root
mean square of its changes in the corpus. A *belief* (d, 65) is how likely each change of `GRID` is, for d features.
Arrays of one chunk may have more axes in front, one chunk each.
"""

from collections.abc import Sequence
from hashlib import shake_128

import numpy as np
from numpy.typing import NDArray

from eyestream.core.mechanisms.asked.tables import AskedTables
from eyestream.core.portable import decay, total

Array = NDArray[np.float64]

MOST = 4.0
"""Largest change that is coded, in units."""

GRID = np.arange(-MOST, MOST + 0.125, 0.125)
"""All its numbers, and their distances, are exact."""

_STEP = float(GRID[1] - GRID[0])
_FLOOR = 1e-4
"""Beside the law of a step: a jump to anywhere."""

_SESSIONS, _CHUNKS = 40, 12
_ROUNDS = 8
_NEARER = 1e-6


class Chains:
    """The chains of some features, and the randomised response that their words meet.

    Parameters
    ----------
    tables, features
        Figures of all features, and which (d,) are asked for.
    cells
        Of each feature in a session's first chunk. From chunk to chunk they go on to the next feature, round and round.
    replace
        Probability that the words of a chunk, one for each feature, are replaced together.

    Attributes
    ----------
    start : (d, 65) belief of a session's first chunk.
    law : (d, 65, 65) of the next change, given the one before.
    """

    def __init__(self, tables: AskedTables, features: NDArray[np.intp], cells: Sequence[int], replace: float) -> None:
        self._cells = np.array(cells)
        self._replaced, self._kept, self._drawn = replace, 1.0 - replace, replace / float(np.prod(self._cells))
        self.start = shares_of(_bell(GRID / tables.first[features][:, None]) + 0.02)
        kept, spread, share = (part[features][:, :, None, None] for part in (tables.keeps, tables.moves, tables.shares))
        bells = share / spread * _bell((GRID - kept * GRID[:, None]) / spread)
        self.law = shares_of(total(bells.reshape(*bells.shape[:2], -1)).reshape(len(features), len(GRID), -1) + _FLOOR)

    def onward(self, belief: Array) -> Array:
        """Belief about the next chunk, before its word is known."""
        return total(belief[..., None] * self.law)

    def cells(self, turn: int) -> NDArray[np.int64]:
        """(d,) cells of each feature in the chunk `turn` of a session."""
        return np.roll(self._cells, turn)

    def borders(self, predicted: Array, turn: int) -> Array:
        """(d, most cells - 1) borders of the cells in the chunk `turn`; infinite behind a feature's last cell."""
        cells = self.cells(turn)
        borders = np.full((*predicted.shape[:-1], int(cells.max()) - 1), np.inf)
        for own in np.unique(cells).tolist():
            borders[..., cells == own, : own - 1] = self._cut(predicted[..., cells == own, :], own)
        return borders

    def _cut(self, predicted: Array, cells: int) -> Array:
        """(d, cells - 1) borders: Lloyd's for what the response leaves of a word, on the predicted law (d, 65).

        The best reading of a released word is between the mean of its cell and the mean of all, as the word may have
        been drawn; borders lie midway between readings (Lloyd, IEEE Trans. Inf. Theory 28(2), 1982).
        """
        weights = np.stack([predicted, predicted * GRID])[..., None]
        mean = total(weights[1])
        shares, odds = (np.arange(cells) + 0.5) / cells, self._kept / (self._replaced / cells)
        below = (np.cumsum(predicted, axis=-1)[..., None] < shares).sum(axis=-2)
        readings = GRID[np.minimum(below, len(GRID) - 1)]
        for _ in range(_ROUNDS):
            readings = np.sort(readings) + _NEARER * np.arange(cells)  # cells that are empty, too
            held, sums = total(weights * parts_of((readings[..., 1:] + readings[..., :-1]) / 2))
            readings = (odds * sums + mean) / (odds * held + 1)
        borders: Array = np.sort((readings[..., 1:] + readings[..., :-1]) / 2)  # readings of cells that are empty
        return borders

    def odds(self, predicted: Array, borders: Array, word: NDArray[np.int64]) -> Array:
        """(d, 65) chance of the released word (d,) of a chunk with these borders where a feature's change is known."""
        hit = np.take_along_axis(parts_of(borders), word[..., None, None], axis=-1)[..., 0]
        held = readings_of(predicted, hit)
        others = [np.multiply.reduce(np.delete(held, feature, -1), axis=-1) for feature in range(held.shape[-1])]
        odds: Array = self._drawn + self._kept * np.stack(others, axis=-1)[..., None] * hit
        return odds

    def told(self, predicted: Array, borders: Array, word: NDArray[np.int64]) -> Array:
        """Belief after the released word."""
        return shares_of(predicted * self.odds(predicted, borders, word))

    def smoothed(self, belief: Array, later: Array) -> Array:
        """Belief about a chunk after all words of its session, from `belief` and the smoothed one a chunk later."""
        odds = later / self.onward(belief)
        return shares_of(belief * total((self.law * odds[:, None, :]).swapaxes(1, 2)))

    def expected(self, values: Array, *, later: bool = False, chunks: int = 128) -> Array:
        """(d,) mean square error of readings of `values` (d, 65), as the model has it: over evenly spread words.

        `later`: of the readings of each chunk after the word of the next one.
        """
        belief, error = self.start, np.zeros(len(self.start))
        even = np.sqrt(np.array([2.0, 3.0, 5.0, 7.0][: len(belief) + 1]))
        for chunk in range(chunks):
            predicted = self.onward(belief) if chunk else belief
            borders, lot = self.borders(predicted, chunk), (chunk + 0.5) * even % 1.0
            change = GRID[np.minimum((np.cumsum(predicted, axis=1) < lot[1:, None]).sum(axis=1), len(GRID) - 1)]
            drawn = lot[0] < 1.0 - self._kept
            word = np.where(drawn, np.floor(lot[1:] * self.cells(chunk)), words_of(change, borders)).astype(np.int64)
            before, belief = belief, self.told(predicted, borders, word)
            read = self.smoothed(before, belief) if later and chunk else belief
            error = error + readings_of(read, (values - readings_of(read, values)[:, None]) ** 2)
        return error / chunks

    def follows(self, values: Array, residual: Array) -> Array:
        """(d,) correlation of readings with `values` (d, 65) and what `residual` adds to their variance.

        Over sessions that go as the model has it, each one's own mean subtracted from both.
        """
        size = len(self.start)
        digest = shake_128(b"sessions of a chain").digest(8 * _SESSIONS * _CHUNKS * (2 * size + 1))
        lots = (np.frombuffer(digest, "<u8") / 2.0**64).reshape(_SESSIONS, _CHUNKS, -1)
        own, (truth, read) = np.arange(size), np.zeros((2, _SESSIONS, _CHUNKS, size))
        belief = law = np.broadcast_to(self.start, (_SESSIONS, *self.start.shape))
        for chunk in range(_CHUNKS):  # of all sessions together
            lot = lots[:, chunk]
            predicted = self.onward(belief) if chunk else belief
            place = np.minimum((np.cumsum(law, axis=-1) < lot[:, :size, None]).sum(axis=-1), len(GRID) - 1)
            borders = self.borders(predicted, chunk)
            drawn = np.floor(lot[:, size:-1] * self.cells(chunk)).astype(np.int64)
            word = np.where(lot[:, -1:] < 1.0 - self._kept, drawn, words_of(GRID[place], borders))
            belief, law = self.told(predicted, borders, word), self.law[own, place]
            truth[:, chunk], read[:, chunk] = values[own, place], readings_of(belief, values)
        x, y = (part - part.mean(axis=1, keepdims=True) for part in (truth, read))
        spread = (x * x).mean(axis=(0, 1)) + residual
        return np.asarray((x * y).mean(axis=(0, 1)) / np.sqrt(np.maximum(spread * (y * y).mean(axis=(0, 1)), 1e-300)))


def words_of(changes: Array, borders: Array) -> NDArray[np.int64]:
    """(d,) the cells of changes (d,)."""
    word: NDArray[np.int64] = (changes[..., None] > borders).sum(axis=-1)
    return word


def readings_of(belief: Array, values: Array = GRID) -> Array:
    """(d,) mean of `values`, of the grid or of each feature's, under a belief."""
    return total((belief * values)[..., None])[..., 0]


def parts_of(borders: Array) -> Array:
    """(d, 65, cells) which part of the surroundings of each number of `GRID` lies in each cell."""
    below = np.clip((borders[..., None, :] - GRID[:, None]) / _STEP + 0.5, 0.0, 1.0)
    ends = np.ones((*below.shape[:-1], 1))
    return np.diff(np.concatenate([0 * ends, below, ends], axis=-1))


def shares_of(weights: Array) -> Array:
    """The weights (..., m) divided by their sum."""
    return weights / total(weights[..., None])


def _bell(distance: Array) -> Array:
    """e^(-x^2 / 2)."""
    return decay(distance * distance / 2)
