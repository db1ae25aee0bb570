"""Statistics of a public corpus for the tile response.

Exponentials and sums here are those of the machine; what they come to is rounded to whole numbers and stored once, so
that everybody reads the same figures.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from eyestream.core.tiles.calibration import SHARE, UNIT, TileCalibration
from eyestream.core.tiles.field import Field
from eyestream.core.tiles.response import LEAST_SEEN
from eyestream.errors import CalibrationError

__all__ = ["STEPS_DEG", "calibrate_tiles"]

Array = NDArray[np.float64]
Counts = NDArray[np.int64]

STEPS_DEG = (1.5, 4.0, 9.0)
"""Standard deviations of the steps from slot to slot; how often each is made is learned."""

_SMOOTH = 1
"""Which step smooths the places of a corpus of few people."""

_EVERYWHERE = 0.02
"""Of the prior lies evenly on the field: other people look elsewhere."""

_ROUNDS = 60


def calibrate_tiles(
    people: Sequence[Counts], field: Field, slot_us: int, *, prior_slots: int, source: str
) -> TileCalibration:
    """What can be learned from (slots, cells + 1) occupancies of each person, slots one after the other.

    Shares are those of mixtures whose parts are known, by expectation and maximisation (Dempster, Laird, Rubin, JRSS B
    39, 1977).

    Raises
    ------
    CalibrationError
        when nobody has two slots with gaze one after the other.
    """
    across, upright = (_steps(field, axis) for axis in (field.x_deg, field.y_deg))
    dwelt = [_dwelt(occupancy, field) for occupancy in people]
    seen = np.concatenate([cells[cells >= 0] for cells in dwelt]) if dwelt else np.zeros(0, np.intp)
    pairs = np.concatenate([_pairs(cells) for cells in dwelt]) if dwelt else np.zeros((0, 2), np.intp)
    both = pairs[(pairs >= 0).all(axis=1)]
    if len(both) == 0:
        raise CalibrationError("calibration of tiles: nobody has two slots with gaze one after the other")
    shape = (field.rows, field.columns)
    places = np.bincount(seen, minlength=field.cells).reshape(shape) / len(seen)
    smooth = upright[_SMOOTH].T @ places @ across[_SMOOTH]
    prior = (1 - _EVERYWHERE) * smooth + _EVERYWHERE / field.cells
    parts = [*_chances(across, upright, both, field), prior.reshape(-1)[both[:, 1]]]
    lost = np.ones((2, 2))
    np.add.at(lost, (pairs[:, 0].clip(max=0) * -1, pairs[:, 1].clip(max=0) * -1), 1.0)
    return TileCalibration(
        field=field,
        slot_us=slot_us,
        prior=_whole(prior.reshape(1, -1), UNIT).reshape(shape),
        across=_whole(across, SHARE),
        upright=_whole(upright, SHARE),
        shares=_whole(_mixture(np.stack(parts), np.ones(len(both)))[None], SHARE)[0],
        scatter=_whole(_scatter(people, dwelt, across, upright, field)[None], SHARE)[0],
        lost=_whole(lost / lost.sum(axis=1, keepdims=True), SHARE),
        prior_slots=prior_slots,
        source=source,
    )


def _steps(field: Field, middles: Array) -> Array:
    """(J, m, m) Gaussian steps along one axis, held to the field."""
    apart = middles[:, None] - middles
    kernels = np.stack([np.exp(-(apart**2) / (2 * sd**2)) for sd in STEPS_DEG])
    steps: Array = kernels / kernels.sum(axis=2, keepdims=True)
    return steps


def _dwelt(occupancy: Counts, field: Field) -> NDArray[np.intp]:
    """(slots,) the cell with the medians of a slot's samples, or -1 where it was lost."""
    seen, lost = occupancy[:, :-1], occupancy[:, -1]
    grid = seen.reshape(-1, field.rows, field.columns)
    half = seen.sum(axis=1, keepdims=True) / 2
    row = (grid.sum(axis=2).cumsum(axis=1) >= half).argmax(axis=1)
    column = (grid.sum(axis=1).cumsum(axis=1) >= half).argmax(axis=1)
    tracked = half[:, 0] * 2 > LEAST_SEEN * lost / (1 - LEAST_SEEN)
    return np.where(tracked, row * field.columns + column, -1)


def _pairs(cells: NDArray[np.intp]) -> NDArray[np.intp]:
    return np.stack((cells[:-1], cells[1:]), axis=1)


def _chances(across: Array, upright: Array, pairs: NDArray[np.intp], field: Field) -> list[Array]:
    """Of each step, the chances of the pairs of cells (p, 2)."""
    (r0, c0), (r1, c1) = (np.divmod(pairs[:, i], field.columns) for i in (0, 1))
    return [up[r0, r1] * over[c0, c1] for over, up in zip(across, upright, strict=True)]


def _mixture(chances: Array, counts: Array) -> Array:
    """(parts,) shares of a mixture from the chances (parts, m) that each part gives to what was seen `counts` times."""
    shares = np.full(len(chances), 1 / len(chances))
    for _ in range(_ROUNDS):
        told = shares[:, None] * chances
        told = told / np.maximum(told.sum(axis=0), np.finfo(np.float64).tiny)
        shares = (told * counts).sum(axis=1) / counts.sum()
    return shares


def _scatter(
    people: Sequence[Counts], dwelt: Sequence[NDArray[np.intp]], across: Array, upright: Array, field: Field
) -> Array:
    """How samples lie around the cell of their slot, as shares of the steps."""
    found, counts = [], []
    for occupancy, cells in zip(people, dwelt, strict=True):
        kept = cells >= 0
        slot, cell = np.nonzero(occupancy[kept, :-1])
        found.append(np.stack((cells[kept][slot], cell), axis=1))
        counts.append(occupancy[kept, :-1][slot, cell])
    chances = _chances(across, upright, np.concatenate(found), field)
    return _mixture(np.stack(chances), np.concatenate(counts).astype(np.float64))


def _whole(shares: Array, total: int) -> NDArray[np.int32]:
    """Shares that sum to 1 along the last axis as whole numbers that sum to `total`: the largest takes the rest."""
    whole = np.rint(shares * total).astype(np.int64)
    rest = total - whole.sum(axis=-1, keepdims=True)
    largest = whole.argmax(axis=-1, keepdims=True)
    np.put_along_axis(whole, largest, np.take_along_axis(whole, largest, axis=-1) + rest, axis=-1)
    return whole.astype(np.int32)
