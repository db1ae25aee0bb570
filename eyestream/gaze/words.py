"""Wordbooks: how often each sequence of n saccades occurs in the window (Bulling et al. 2011), in whole numbers."""

import math
from collections import deque

from eyestream.gaze.events import Saccade

__all__ = ["LETTERS", "LONGEST_WORD", "Wordbooks", "letter_of"]

LARGE_DIRECTIONS, SMALL_DIRECTIONS = 16, 8
LETTERS = SMALL_DIRECTIONS + LARGE_DIRECTIONS
LONGEST_WORD = 4


def letter_of(saccade: Saccade, small_below_deg: float) -> int:
    """0 to 7 for a small saccade to the right, up right, ..., 8 to 23 for a large one.

    Sectors are centred on the axes: noise does not split horizontal saccades between two letters.
    """
    small = math.hypot(saccade.dx, saccade.dy) < small_below_deg
    directions = SMALL_DIRECTIONS if small else LARGE_DIRECTIONS
    sector = math.floor(math.atan2(saccade.dy, saccade.dx) * directions / math.tau + 0.5) % directions
    return sector if small else SMALL_DIRECTIONS + sector


class Wordbooks:
    """Words of 1 to 4 consecutive letters of a sequence that grows at its end and shrinks at its beginning."""

    def __init__(self) -> None:
        self._letters: deque[int] = deque()
        self._counts: list[dict[int, int]] = [{} for _ in range(LONGEST_WORD)]
        self._squares = [0] * LONGEST_WORD

    def push(self, letter: int) -> None:
        """A new last letter: one new word of each length."""
        self._letters.append(letter)
        word = 0
        for n in range(1, min(LONGEST_WORD, len(self._letters)) + 1):
            word += self._letters[-n] * LETTERS ** (n - 1)
            counts = self._counts[n - 1]
            before = counts.get(word, 0)
            counts[word] = before + 1
            self._squares[n - 1] += 2 * before + 1

    def pop(self) -> None:
        """The first letter goes, and the words that begin with it."""
        word = 0
        for n in range(1, min(LONGEST_WORD, len(self._letters)) + 1):
            word = word * LETTERS + self._letters[n - 1]
            counts = self._counts[n - 1]
            before = counts[word]
            if before == 1:
                del counts[word]
            else:
                counts[word] = before - 1
            self._squares[n - 1] -= 2 * before - 1
        self._letters.popleft()

    def features(self) -> list[float]:
        """For n = 1 to 4, over all 24^n words: number that occur, most, least, most - least, mean, variance."""
        out: list[float] = []
        for n, counts in enumerate(self._counts, start=1):
            words = LETTERS**n
            most = max(counts.values(), default=0)
            least = min(counts.values()) if len(counts) == words else 0
            mean = max(len(self._letters) - n + 1, 0) / words
            out += [len(counts), most, least, most - least, mean, self._squares[n - 1] / words - mean * mean]
        return out
