"""Statistics of a public corpus for the tile response.

Exponentials and sums here are those of the machine; what they come to is rounded to whole numbers and stored once, so
that everybody reads the same figures.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from eyestream.core.calibration import Calibration, Provenance, product
from eyestream.core.mechanisms.tile.tables import MOST_SAMPLES, NAME, TileTables
from eyestream.core.tiles.calibration import SHARE, UNIT, TileCalibration
from eyestream.core.tiles.field import Field, dwelt
from eyestream.errors import CalibrationError
from eyestream.streams import FrontEndMark

Array = NDArray[np.float64]
Counts = NDArray[np.int64]
Cells = NDArray[np.intp]

STEPS_DEG = (0.7, 1.8, 4.0, 9.0)
"""Standard deviations of the steps from slot to slot; how often each is made is learned."""

MODES = 3
"""Ways of moving, from still to restless; each is learned."""

_CHANGES = 0.005
"""How often a mode is drawn again. It is not learned: learned modes last for seconds, and tell little of a person."""

_STILL, _RESTLESS = (0.48, 0.3, 0.1, 0.07, 0.05), (0.02, 0.08, 0.2, 0.3, 0.4)
"""Shares that the first and the last mode begin with, jumps last."""

_SMOOTH = 1
"""Which step smooths the places of a corpus of few people."""

_EVERYWHERE = 0.02
"""Share of the prior that lies evenly on the field: other people look elsewhere."""

_ROUNDS = 80


def calibrate_tiles(
    people: Sequence[Counts], field: Field, slot_us: int, *, prior_slots: int, source: str
) -> TileCalibration:
    """Learn from (slots, cells + 1) occupancies of each person, slots one after the other.

    Shares are those of mixtures whose parts are known, and modes those of a hidden Markov model, by expectation and
    maximisation (Baum, Petrie, Soules, Weiss, 1970; Dempster, Laird, Rubin, JRSS B 39, 1977).

    Raises
    ------
    CalibrationError
        when nobody has two slots with gaze one after the other.
    """
    shape = (field.rows, field.columns)
    across, upright = (_steps(axis) for axis in (field.x_deg, field.y_deg))
    cells = [dwelt(occupancy, shape) for occupancy in people]
    seen = np.concatenate([own[own >= 0] for own in cells]) if cells else np.zeros(0, np.intp)
    pairs = np.concatenate([_pairs(own) for own in cells]) if cells else np.zeros((0, 2), np.intp)
    if not (pairs >= 0).all(axis=1).any():
        raise CalibrationError("calibration of tiles: nobody has two slots with gaze one after the other")
    places = np.bincount(seen, minlength=field.cells).reshape(shape) / len(seen)
    prior = (1 - _EVERYWHERE) * (upright[_SMOOTH].T @ places @ across[_SMOOTH]) + _EVERYWHERE / field.cells
    steps, seen_steps = np.ones((max(map(len, cells)) - 1, len(cells), len(STEPS_DEG) + 1)), []
    for person, own in enumerate(cells):
        between = _pairs(own)
        both = np.all(between >= 0, axis=1)
        known = between[both]
        chances = [*_chances(across, upright, known, field), prior.reshape(-1)[known[:, 1]]]
        steps[np.flatnonzero(both), person] = np.stack(chances, axis=1)
        seen_steps.append(np.pad(both, (0, len(steps) - len(both))))
    modes, shares = _modes(steps, np.stack(seen_steps, axis=1))
    lost = np.ones((2, 2))
    np.add.at(lost, (pairs[:, 0].clip(max=0) * -1, pairs[:, 1].clip(max=0) * -1), 1.0)
    return TileCalibration(
        field=field,
        slot_us=slot_us,
        prior=_whole(prior.reshape(1, -1), UNIT).reshape(shape),
        across=_whole(across, SHARE),
        upright=_whole(upright, SHARE),
        shares=_whole(shares, SHARE),
        scatter=_whole(_scatter(people, cells, modes, (across, upright), field), SHARE),
        changes=_whole(_changes(), SHARE),
        lost=_whole(lost / lost.sum(axis=1, keepdims=True), SHARE),
        prior_slots=prior_slots,
        source=source,
    )


def _steps(middles: Array) -> Array:
    """(J, m, m) Gaussian steps along one axis, held to the field."""
    apart = middles[:, None] - middles
    kernels = np.stack([np.exp(-(apart**2) / (2 * sd**2)) for sd in STEPS_DEG])
    steps: Array = kernels / kernels.sum(axis=2, keepdims=True)
    return steps


def _changes() -> Array:
    """(M, M) from each mode to each."""
    changes: Array = (1 - _CHANGES) * np.eye(MODES) + _CHANGES / MODES
    return changes


def _pairs(cells: Cells) -> Cells:
    return np.stack((cells[:-1], cells[1:]), axis=1)


def _chances(across: Array, upright: Array, pairs: Cells, field: Field) -> list[Array]:
    """Chances of the pairs of cells (p, 2) at each step."""
    (r0, c0), (r1, c1) = (np.divmod(pairs[:, i], field.columns) for i in (0, 1))
    return [up[r0, r1] * over[c0, c1] for over, up in zip(across, upright, strict=True)]


def _modes(steps: Array, seen: NDArray[np.bool_]) -> tuple[Array, Array]:
    """How likely each mode is at each step (T, people, M), 0 where none was seen, and the shares of each (M, J + 1).

    Parameters
    ----------
    steps, seen
        (T, people, J + 1) chances of each person's moves from slot to slot, and (T, people) whether both slots were
        tracked. T is the most that anybody has.
    """
    shares, changes = np.linspace(_STILL, _RESTLESS, MODES), _changes()
    modes = np.zeros((*seen.shape, MODES))
    for _ in range(_ROUNDS):
        likely = np.where(seen[:, :, None], steps @ shares.T, 1.0)
        before, after = np.full(likely.shape, 1 / MODES), np.ones(likely.shape)
        for slot in range(len(steps)):
            now = (before[slot - 1] @ changes if slot else before[0]) * likely[slot]
            before[slot] = now / now.sum(axis=1, keepdims=True)
        for slot in range(len(steps) - 1, 0, -1):
            now = (after[slot] * likely[slot]) @ changes.T
            after[slot - 1] = now / now.sum(axis=1, keepdims=True)
        modes = before * after
        modes *= seen[:, :, None] / modes.sum(axis=2, keepdims=True)
        made = np.stack([np.einsum("tp,tpj->j", modes[:, :, m], _parts(steps, shares[m])) for m in range(MODES)])
        shares = made / made.sum(axis=1, keepdims=True)
    return modes, shares


def _parts(chances: Array, shares: Array) -> Array:
    """(..., parts) how likely each part of a mixture made what it gives the `chances` (..., parts)."""
    parts = chances * shares
    told: Array = parts / np.maximum(parts.sum(axis=-1, keepdims=True), np.finfo(np.float64).tiny)
    return told


def _scatter(
    people: Sequence[Counts], cells: Sequence[Cells], modes: Array, steps: tuple[Array, Array], field: Field
) -> Array:
    """(M, J) how samples lie around the cell of their slot in each mode, as shares of the steps."""
    found, weights = [], []
    for person, (occupancy, own) in enumerate(zip(people, cells, strict=True)):
        kept = np.flatnonzero(own[1:] >= 0)  # the step to a slot says which mode it is of
        slot, cell = np.nonzero(occupancy[1:][kept, :-1])
        found.append(np.stack((own[1:][kept][slot], cell), axis=1))
        weights.append(modes[kept[slot], person] * occupancy[1:][kept[slot], cell][:, None])
    chances, counts = np.stack(_chances(*steps, np.concatenate(found), field), axis=1), np.concatenate(weights)
    scatter = np.full((MODES, len(STEPS_DEG)), 1 / len(STEPS_DEG))
    for _ in range(_ROUNDS):
        scatter = np.stack([own @ _parts(chances, one) for own, one in zip(counts.T, scatter, strict=True)])
        scatter /= np.maximum(scatter.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny)
    return scatter


def _whole(shares: Array, total: int) -> NDArray[np.int32]:
    """Shares that sum to 1 along the last axis as whole numbers that sum to `total`: the largest takes the rest."""
    whole = np.rint(shares * total).astype(np.int64)
    rest = total - whole.sum(axis=-1, keepdims=True)
    largest = whole.argmax(axis=-1, keepdims=True)
    np.put_along_axis(whole, largest, np.take_along_axis(whole, largest, axis=-1) + rest, axis=-1)
    return whole.astype(np.int32)


def tile_calibration(tiles: TileCalibration, people: int, front_end: FrontEndMark | None = None) -> Calibration:
    """A calibration of the mechanism from what was learned of so many people."""
    field = tiles.field
    names = (*(f"row {row} column {column}" for row in range(field.rows) for column in range(field.columns)), "lost")
    nothing = np.zeros(len(names))
    figures = np.array([field.cell_deg, tiles.slot_us, tiles.prior_slots], dtype=np.float64)
    return Calibration(
        mechanism=NAME,
        names=names,
        units=("1",) * len(names),
        rate_hz=1 / tiles.slot_s,
        n=1,
        k=None,
        declared=np.zeros(len(names), dtype=np.bool_),
        lo=nothing,
        hi=nothing + MOST_SAMPLES,
        fill=nothing,
        tables=TileTables(**dict(tiles.arrays()), figures=figures),
        provenance=Provenance(tiles.source, people, 0, None, (), product()),
        front_end=front_end,
    )
