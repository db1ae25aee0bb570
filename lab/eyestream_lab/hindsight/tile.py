"""Hindsight of tiles: forward and backward recursion of their hidden Markov model."""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from eyestream.core.mechanisms.tile.mechanism import TileCore, write_gaze
from eyestream.core.tiles.calibration import UNIT
from eyestream.core.tiles.motion import scaled
from eyestream.core.tiles.reader import Gaze, TileCode, WordReader


def look_back(core: TileCore, states: Sequence[NDArray[np.float64]], out: Sequence[NDArray[np.float64]]) -> None:
    """Write the gaze of a whole session, each slot estimated from all of its released words."""
    words = [int(state[0]) for state in states]
    for page, word, gaze in zip(out, words, gaze_in_hindsight(core.code, words), strict=True):
        write_gaze(page, gaze, word)


def gaze_in_hindsight(code: TileCode, words: Iterable[int]) -> list[Gaze]:
    """The gaze of a whole session's slots, each estimated from all of the session's released words, later ones too."""
    reader, told = WordReader(code), []
    for word in words:
        labels = reader.labels
        reader.follow(word)
        told.append((word, labels, reader.belief))
    gaze = []
    later, lost = np.full_like(reader.belief.seen, UNIT), np.full_like(reader.belief.lost, UNIT)
    for turn in range(len(told) - 1, -1, -1):
        word, labels, belief = told[turn]
        gaze.append(code.gaze(belief.seen * later, belief.lost * lost))
        if turn:
            here = np.where(labels == word, later, later / code.odds)
            away = lost if word == code.lost_word else lost / code.odds
            later, lost = code.motion.looked_back(told[turn - 1][2], *scaled(here, away))
    return gaze[::-1]
