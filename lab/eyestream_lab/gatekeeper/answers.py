"""Applications ask where somebody looked. Answers come from *released* gaze alone, so a question costs nothing.

The gatekeeper of David-John, Hosfelt, Butler, Jain (TVCG 2021) answers from raw gaze. This one keeps slots of released
gaze. What it says follows from these and from the question, so whoever has the released gaze could have answered by
himself.

A **look** is a run of slots, none of them lost, whose gaze stays within `NEAR_DEG` of the run's first. At one or two
slots a second it stands for a fixation. Looks and the moves between them are events of released gaze: their number and
times never follow the eye itself.
"""

import itertools
import math
from collections import deque
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from eyestream_lab.gatekeeper.questions import DwellTime, FixationsWithin, NextTile, Question, Rectangle, Saccades

NEAR_DEG = 5.0
MOST_SLOTS = 7200
"""Slots of released gaze that are kept: two hours of seconds."""

MOST_ANSWERS = 100
"""Looks in one answer, the newest."""


class Slot(NamedTuple):
    """Released gaze of [start_s, end_s) on the tracker's clock; `lost` is the probability that the eye was."""

    start_s: float
    end_s: float
    x_deg: float
    y_deg: float
    lost: float


class Look(NamedTuple):
    """A run of slots: [start_s, end_s), and their mean direction."""

    start_s: float
    end_s: float
    x_deg: float
    y_deg: float


class Tile(NamedTuple):
    """A tile of a video: column from the left, row from above, and the share of the expected gaze that lies in it."""

    column: int
    row: int
    share: float


class Gatekeeper:
    """Released gaze of one session, and answers from it."""

    def __init__(self) -> None:
        self._slots: deque[Slot] = deque(maxlen=MOST_SLOTS)

    def take(self, slot: Slot) -> None:
        """The next slot of released gaze."""
        self._slots.append(slot)

    def looks(self) -> list[Look]:
        """All that are known, also the one that may go on."""
        runs: list[list[Slot]] = []
        before: Slot | None = None
        for slot in self._slots:
            if slot.lost < 0.5:
                first = runs[-1][0] if runs and before is not None and before.lost < 0.5 else None
                near = first is not None and math.hypot(slot.x_deg - first.x_deg, slot.y_deg - first.y_deg) <= NEAR_DEG
                if near:
                    runs[-1].append(slot)
                else:
                    runs.append([slot])
            before = slot
        return [_look(run) for run in runs]

    def answer(self, asked: Question, expected: "Expected | None" = None) -> list[Look] | float | int | Tile | None:
        """The answer to a question: looks, seconds, a number of moves, or a tile.

        Parameters
        ----------
        expected
            Weights of where the eye is expected next, from released gaze; a question for a tile needs them, and is
            answered with None without.
        """
        match asked:
            case FixationsWithin():
                looks = [look for look in self._recent(asked.last_s) if asked.within.holds(look.x_deg, look.y_deg)]
                return looks[-MOST_ANSWERS:]
            case DwellTime():
                return self._dwelt(asked.within, asked.last_s)
            case Saccades():
                inside = [asked.within.holds(look.x_deg, look.y_deg) for look in self._recent(asked.last_s)]
                return sum(not one and other for one, other in itertools.pairwise(inside))
            case NextTile():
                return None if expected is None else expected.tile(asked)

    def _recent(self, last_s: float) -> list[Look]:
        since = self._since(last_s)
        return [look for look in self.looks() if look.end_s > since]

    def _since(self, last_s: float) -> float:
        return self._slots[-1].end_s - max(last_s, 0.0) if self._slots else 0.0

    def _dwelt(self, within: Rectangle, last_s: float) -> float:
        since = self._since(last_s)
        inside = (slot for slot in self._slots if slot.lost < 0.5 and within.holds(slot.x_deg, slot.y_deg))
        return math.fsum(max(0.0, slot.end_s - max(slot.start_s, since)) for slot in inside)


class Expected:
    """Where the eye is expected in the next slot, as released gaze tells.

    Parameters
    ----------
    weights
        (rows, columns) of the cells.
    x_deg, y_deg
        (columns,) and (rows,) their middles.
    """

    def __init__(self, weights: NDArray[np.float64], x_deg: NDArray[np.float64], y_deg: NDArray[np.float64]) -> None:
        self._weights, self._x, self._y = weights, x_deg, y_deg

    def tile(self, asked: NextTile) -> Tile | None:
        """The heaviest tile, the first of several; None where nothing is expected inside the video."""
        within = asked.within
        column = np.floor((self._x - within.left) / (within.right - within.left) * asked.across).astype(int)
        row = np.floor((within.top - self._y) / (within.top - within.bottom) * asked.upright).astype(int)
        across, upright = (column >= 0) & (column < asked.across), (row >= 0) & (row < asked.upright)
        own = (row[upright][:, None] * asked.across + column[across]).ravel()
        if len(own) == 0:
            return None
        shares = np.bincount(own, self._weights[np.ix_(upright, across)].ravel(), asked.across * asked.upright)
        best = int(shares.argmax())
        return Tile(best % asked.across, best // asked.across, float(shares[best] / self._weights.sum()))


def _look(run: list[Slot]) -> Look:
    x, y = (math.fsum(values) / len(run) for values in zip(*((slot.x_deg, slot.y_deg) for slot in run), strict=True))
    return Look(run[0].start_s, run[-1].end_s, x, y)
