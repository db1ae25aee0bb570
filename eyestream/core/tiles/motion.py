"""How gaze moves from slot to slot: a hidden Markov model of public statistics, in exact arithmetic.

The hidden state of a slot is the cell where the eye dwells, or "lost". From one slot to the next the eye moves by one
of J kernels (Gaussian steps, a matrix for each axis), or jumps to a place of the *habit*: the corpus' places, and more
and more the places that this session's released words have told of.

**One result everywhere.** Weights are whole numbers, `UNIT` = 2^24 in all, kernels and shares whole numbers that sum to
`SHARE` = 2^14. Each product of matrices is then a sum of whole numbers below 2^53, which float64 holds exactly: neither
the order of addition nor a fused operation can change a bit. After it, weights are rounded to whole numbers again, by
operations that IEEE 754 rounds alike. Nothing is ever impossible: a weight is at least 1.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eyestream.core.tiles.calibration import SHARE, UNIT, TileCalibration

__all__ = ["Belief", "Motion"]

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Belief:
    """What the released words tell of one slot; not to be changed.

    Attributes
    ----------
    seen : (rows, columns) weights of the cells, whole numbers.
    lost : weight of a lost eye, a whole number; all together make about `UNIT`.
    habit : (rows, columns) weights of the places, summed over the slots that were told of.
    slots : how many slots the habit is of, the prior's included.
    """

    seen: Array
    lost: float
    habit: Array
    slots: int


class Motion:
    """The model of a calibration."""

    def __init__(self, calibration: TileCalibration) -> None:
        self._across = calibration.across.astype(np.float64)
        self._upright = calibration.upright.astype(np.float64)
        self._shares = calibration.shares.astype(np.float64)
        self._scatter = calibration.scatter.astype(np.float64)
        self._lost = calibration.lost.astype(np.float64)
        prior, slots = calibration.prior.astype(np.float64), calibration.prior_slots
        lost = float(np.rint(self._lost[0, 1] * UNIT / (self._lost[0, 1] + self._lost[1, 0])))
        self.start = Belief(np.maximum(np.rint(prior * (1 - lost / UNIT)), 1.0), max(lost, 1.0), prior * slots, slots)

    def predicted(self, belief: Belief) -> Belief:
        """The next slot's, before its word."""
        total = float(belief.seen.sum())
        habit = habit_of(belief)
        moved = self._stepped(belief.seen, self._shares) + self._shares[-1] * np.rint(habit * (total / UNIT))
        moved = np.rint(moved / SHARE)
        stays, leaves = self._lost[0]
        comes, remains = self._lost[1]
        seen = np.rint((moved * stays + np.rint(habit * (belief.lost / UNIT)) * comes) / SHARE)
        lost = float(np.rint((total * leaves + belief.lost * remains) / SHARE))
        return Belief(np.maximum(seen, 1.0), max(lost, 1.0), belief.habit, belief.slots)

    def told(self, predicted: Belief, inside: NDArray[np.bool_], lost: bool, odds: float) -> Belief:
        """After a word whose tile is `inside` (rows, columns), or "lost": these count `odds` times as much."""
        held = float(predicted.seen[inside].sum()) + predicted.lost * lost
        scale = UNIT / (held * odds + (float(predicted.seen.sum()) + predicted.lost - held))
        raised = odds * scale
        seen = np.maximum(np.rint(predicted.seen * np.where(inside, raised, scale)), 1.0)
        away = max(float(np.rint(predicted.lost * (raised if lost else scale))), 1.0)
        return Belief(seen, away, predicted.habit + seen, predicted.slots + 1)

    def looked_back(self, before: Belief, after: Array, lost: float) -> tuple[Array, float]:
        """Likelihoods of all later words for the cells of a slot, and for "lost", from those for the next slot.

        Parameters
        ----------
        before
            The slot's belief, whose habit the prediction used.
        after, lost
            (rows, columns) and scalar whole numbers up to `UNIT`: likelihoods of the next slot's word and of the later
            ones.
        """
        stays, leaves = self._lost[0]
        comes, remains = self._lost[1]
        home = float(np.rint((habit_of(before) * after).sum() / UNIT))
        stepped = self._stepped_back(after) + self._shares[-1] * home
        seen = np.rint((np.rint(stepped / SHARE) * stays + lost * leaves) / SHARE)
        away = float(np.rint((home * comes + lost * remains) / SHARE))
        return scaled(np.maximum(seen, 1.0), max(away, 1.0))

    def scattered(self, seen: Array) -> Array:
        """(rows, columns) weights of single samples, where the slot dwells in the cells with weights `seen`."""
        return np.rint(self._stepped(seen, self._scatter) / SHARE)

    def _stepped(self, weights: Array, shares: Array) -> Array:
        moved = np.zeros_like(weights)
        for share, across, upright in zip(shares, self._across, self._upright, strict=False):
            moved += share * np.rint((upright.T @ np.rint(weights @ across / SHARE)) / SHARE)
        return moved

    def _stepped_back(self, weights: Array) -> Array:
        moved = np.zeros_like(weights)
        for share, across, upright in zip(self._shares, self._across, self._upright, strict=False):
            moved += share * np.rint((upright @ np.rint(weights @ across.T / SHARE)) / SHARE)
        return moved


def habit_of(belief: Belief) -> Array:
    """(rows, columns) the session's habit as weights that make about `UNIT`."""
    return np.rint(belief.habit / belief.slots)


def scaled(seen: Array, lost: float) -> tuple[Array, float]:
    """Likelihoods with the same ratios, whole numbers up to `UNIT`, none below 1."""
    scale = UNIT / max(float(seen.max()), lost)
    return np.maximum(np.rint(seen * scale), 1.0), max(float(np.rint(lost * scale)), 1.0)
