"""How gaze moves from slot to slot: a hidden Markov model of public statistics, in exact arithmetic.

The hidden state of a slot is a *mode*, a way of moving, and the cell where the eye dwells, or "lost". From one slot to
the next the eye moves by one of J kernels (Gaussian steps, a matrix for each axis), or jumps to a place of the *habit*:
the corpus' places, and more and more the places that this session's released words have told of. How often it does
each is a matter of the mode. A mode seldom changes, so the released words tell more and more clearly which one it is.

**One result everywhere.** Weights are whole numbers, `UNIT` = 2^24 in all, kernels and shares whole numbers that sum to
`SHARE` = 2^14. Each product of matrices is then a sum of whole numbers below 2^53, which float64 holds exactly: neither
the order of addition nor a fused operation can change a bit. After it, weights are rounded to whole numbers again, by
operations that IEEE 754 rounds alike. Nothing is ever impossible: a weight is at least 1.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eyestream.core.tiles.calibration import SHARE, UNIT, TileCalibration

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Belief:
    """The belief of released words about one slot; not to be changed.

    Attributes
    ----------
    seen : (modes, rows, columns) weights of the modes and cells, whole numbers.
    lost : (modes,) weights of a lost eye, whole numbers; all together make about `UNIT`.
    habit : (rows, columns) weights of the places, summed over the slots that were told of.
    slots : how many slots the habit is of, the prior's included.
    """

    seen: Array
    lost: Array
    habit: Array
    slots: int

    @property
    def places(self) -> Array:
        """(rows, columns) weights of the cells, whatever the mode."""
        places: Array = self.seen.sum(axis=0)
        return places


class Motion:
    """The model of a calibration."""

    def __init__(self, calibration: TileCalibration) -> None:
        self._across = calibration.across.astype(np.float64)
        self._upright = calibration.upright.astype(np.float64)
        self._shares = calibration.shares.astype(np.float64)[:, :, None, None]
        self._scatter = calibration.scatter.astype(np.float64)[:, :, None, None]
        self._lost = calibration.lost.astype(np.float64)
        self._changes = calibration.changes.astype(np.float64)
        prior, slots, modes = calibration.prior.astype(np.float64), calibration.prior_slots, len(self._shares)
        lost = float(np.rint(self._lost[0, 1] * UNIT / (self._lost[0, 1] + self._lost[1, 0])))
        seen = np.maximum(np.rint(prior * ((1 - lost / UNIT) / modes)), 1.0)
        self.start = Belief(
            np.stack([seen] * modes), np.full(modes, max(np.rint(lost / modes), 1.0)), prior * slots, slots
        )

    def predicted(self, belief: Belief) -> Belief:
        """The next slot's, before its word: the mode may change, then the eye moves as the mode says."""
        habit = habit_of(belief)
        own, away = _mixed(self._changes.T, belief.seen), _mixed(self._changes.T, belief.lost)
        total = own.sum(axis=(1, 2))
        jumps = self._shares[:, -1] * np.rint(habit * (total / UNIT)[:, None, None])
        moved = np.rint((_stepped(own, self._shares, self._across, self._upright) + jumps) / SHARE)
        stays, leaves = self._lost[0]
        comes, remains = self._lost[1]
        seen = np.rint((moved * stays + np.rint(habit * (away / UNIT)[:, None, None]) * comes) / SHARE)
        lost = np.rint((total * leaves + away * remains) / SHARE)
        return Belief(np.maximum(seen, 1.0), np.maximum(lost, 1.0), belief.habit, belief.slots)

    def told(self, predicted: Belief, inside: NDArray[np.bool_], lost: bool, odds: float) -> Belief:
        """After a word whose tile is `inside` (rows, columns), or "lost": these count `odds` times as much.

        A mode that expected the word gains weight by the same product, so that the words choose among the modes.
        """
        total, away = float(predicted.seen.sum()), float(predicted.lost.sum())
        held = float(predicted.places[inside].sum()) + away * lost
        scale = UNIT / (held * odds + (total + away - held))
        raised = odds * scale
        seen = np.maximum(np.rint(predicted.seen * np.where(inside, raised, scale)), 1.0)
        gone = np.maximum(np.rint(predicted.lost * (raised if lost else scale)), 1.0)
        return Belief(seen, gone, predicted.habit + seen.sum(axis=0), predicted.slots + 1)

    def looked_back(self, before: Belief, after: Array, lost: Array) -> tuple[Array, Array]:
        """Likelihoods of all later words for the cells of a slot, and for "lost", from those for the next slot.

        Parameters
        ----------
        before
            The slot's belief, whose habit the prediction used.
        after, lost
            (modes, rows, columns) and (modes,) whole numbers up to `UNIT`: likelihoods of the next slot's word and of
            the later ones.
        """
        stays, leaves = self._lost[0]
        comes, remains = self._lost[1]
        home = np.rint((habit_of(before) * after).sum(axis=(1, 2)) / UNIT)
        stepped = _stepped(after, self._shares, self._across.swapaxes(1, 2), self._upright.swapaxes(1, 2))
        moved = np.rint((stepped + self._shares[:, -1] * home[:, None, None]) / SHARE)
        seen = np.rint((moved * stays + (lost * leaves)[:, None, None]) / SHARE)
        away = np.rint((home * comes + lost * remains) / SHARE)
        return scaled(_mixed(self._changes, seen), _mixed(self._changes, away))

    def scattered(self, seen: Array) -> Array:
        """(rows, columns) weights of single samples, where the slot dwells in the cells with weights `seen`."""
        samples: Array = np.rint(_stepped(seen, self._scatter, self._across, self._upright) / SHARE).sum(axis=0)
        return samples


def _mixed(changes: Array, weights: Array) -> Array:
    """Weights of the modes after `changes` (modes, modes)."""
    return np.rint(np.tensordot(changes, weights, axes=1) / SHARE)


def _stepped(weights: Array, shares: Array, across: Array, upright: Array) -> Array:
    moved = np.zeros_like(weights)
    for step, (over, up) in enumerate(zip(across, upright, strict=True)):
        moved += shares[:, step] * np.rint((up.T @ np.rint(weights @ over / SHARE)) / SHARE)
    return moved


def habit_of(belief: Belief) -> Array:
    """(rows, columns) the session's habit as weights that make about `UNIT`."""
    return np.rint(belief.habit / belief.slots)


def scaled(seen: Array, lost: Array) -> tuple[Array, Array]:
    """Likelihoods with the same ratios, whole numbers up to `UNIT`, none below 1."""
    scale = UNIT / max(float(seen.max()), float(lost.max()))
    return np.maximum(np.rint(seen * scale), 1.0), np.maximum(np.rint(lost * scale), 1.0)
