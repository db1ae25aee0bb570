"""From released words to gaze: all that anybody can know from them. It never sees anything else.

Who holds the calibration, epsilon and the released words can read them, so the same code reads in the sidecar, in an
application and in an attacker's hands.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eyestream.core.noise.response import ResponseLaw
from eyestream.core.tiles.calibration import UNIT, TileCalibration
from eyestream.core.tiles.motion import Belief, Motion
from eyestream.core.tiles.size import word_bits
from eyestream.core.tiles.tiling import tiling

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Gaze:
    """Where the eye dwelt in a slot, as far as released words tell.

    Attributes
    ----------
    x_deg, y_deg
        Azimuth and elevation: medians of what is believed of a sample of the slot. They are there for a lost eye too.
    error_deg
        A sample of the slot is believed to lie within so many degrees with probability one half, if the eye was seen.
    lost
        Probability that the eye was lost.
    """

    x_deg: float
    y_deg: float
    error_deg: float
    lost: float


class TileCode:
    """Public figures that sidecar and readers share: the model, the size of a word, its response.

    Parameters
    ----------
    calibration, epsilon
        Of one slot.

    Attributes
    ----------
    bits, words : of one word; the last one of the words says "lost".
    law : the response.
    odds : how much likelier a word is from its own tile than from any other: at most e^epsilon, rounded once.
    """

    def __init__(self, calibration: TileCalibration, epsilon: float) -> None:
        self.calibration, self.epsilon = calibration, epsilon
        self.motion = Motion(calibration)
        self.bits = word_bits(epsilon)
        self.words = 2**self.bits
        self.law = ResponseLaw([self.words], epsilon)
        self.odds = float(self.law.gain * (self.words - 1) / (self.words - self.law.gain))
        self.lost_word = self.words - 1

    def tiling(self, predicted: Belief) -> NDArray[np.intp]:
        """(rows, columns) which word each cell has."""
        return tiling(predicted.places, self.words - 1)

    def told(self, predicted: Belief, labels: NDArray[np.intp], word: int) -> Belief:
        """The belief after a released word."""
        return self.motion.told(predicted, labels == word, word == self.lost_word, self.odds)

    def gaze(self, seen: Array, lost: Array) -> Gaze:
        """The estimate from weights of modes and cells, and of "lost": whole numbers whose sum is below 2^53."""
        field = self.calibration.field
        total, away = float(seen.sum()), float(lost.sum())
        samples = self.motion.scattered(np.rint(seen * (UNIT / total)))
        x = _median(samples.sum(axis=0), field.x_deg, field.cell_deg)
        y = _median(samples.sum(axis=1), field.y_deg, field.cell_deg)
        apart = (field.x_deg - x) ** 2 + (field.y_deg[:, None] - y) ** 2
        order = np.argsort(apart, axis=None, kind="stable")
        inside = np.cumsum(samples.reshape(-1)[order])
        half = order[int(np.searchsorted(inside, inside[-1] / 2))]
        error = float(np.sqrt(apart.reshape(-1)[half]))
        return Gaze(x, y, max(error, field.cell_deg / 2), away / (total + away))


class WordReader:
    """One session's released words, read in order.

    Parameters
    ----------
    code
        Public figures.
    belief
        Of the slot that was read last, to go on from there; None: at a session's start.

    Attributes
    ----------
    belief : of the slot that was read last, or of a session's start.
    """

    def __init__(self, code: TileCode, belief: Belief | None = None) -> None:
        self.code = code
        self.belief = code.motion.start if belief is None else belief
        self._predicted: Belief | None = code.motion.start if belief is None else None
        self._labels: NDArray[np.intp] | None = None

    @property
    def labels(self) -> NDArray[np.intp]:
        """(rows, columns) which word each cell has in the slot that comes next."""
        if self._labels is None:
            self._labels = self.code.tiling(self._next())
        return self._labels

    def _next(self) -> Belief:
        """The belief about the slot that comes next, before its word."""
        if self._predicted is None:
            self._predicted = self.code.motion.predicted(self.belief)
        return self._predicted

    def take(self, word: int) -> Gaze:
        """Read the next slot's released word."""
        self.follow(word)
        return self.code.gaze(self.belief.seen, self.belief.lost)

    def follow(self, word: int) -> None:
        """The same, without looking where the gaze is."""
        self.belief = self.code.told(self._next(), self.labels, word)
        self._predicted = self._labels = None


def _median(weights: Array, places: Array, width: float) -> float:
    """Where half of the weight lies on both sides, weights spread evenly over their cells."""
    before = np.concatenate(([0.0], np.cumsum(weights)))
    half = float(before[-1]) / 2
    cell = int(np.searchsorted(before, half, side="right")) - 1
    cell = min(cell, len(places) - 1)
    share = (half - float(before[cell])) / float(weights[cell])
    return float(places[cell]) + (share - 0.5) * width
