"""Calibration of a tile response: statistics of a public corpus as whole numbers."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eyestream.core.tiles.field import Field
from eyestream.errors import CalibrationError

Whole = NDArray[np.int32]

UNIT = 2**24
"""The weights of a whole field."""

SHARE = 2**14
"""The sum of a row of a kernel, and of shares."""

_SHORTEST_US, _LONGEST_US = 100_000, 60_000_000
_MOST_CELLS, _MOST_MODES = 4096, 16


@dataclass(frozen=True, slots=True, eq=False)
class TileCalibration:
    """Public figures; never changed.

    Attributes
    ----------
    field
        The grid of cells.
    slot_us
        Length of a slot in microseconds.
    prior
        (rows, columns) weights of the places, sum `UNIT`.
    across, upright
        (J, columns, columns) and (J, rows, rows): J steps from slot to slot, each row sums to `SHARE`.
    shares
        (M, J + 1) of each of M modes: how often each step is made, and how often a jump to the habit; rows sum to
        `SHARE`.
    scatter
        (M, J) of each mode: how single samples lie around the cell of their slot, as shares of the steps; rows sum to
        `SHARE`.
    changes
        (M, M) from each mode to each, from slot to slot; rows sum to `SHARE`.
    lost
        (2, 2) from a slot with gaze, and from a lost one, to either; each row sums to `SHARE`.
    prior_slots
        The prior weighs as much as this many slots of a session.
    source
        What it was made from, for people.

    Raises
    ------
    CalibrationError
        when an array has another shape, type or sum, or a figure is out of its range.
    """

    field: Field
    slot_us: int
    prior: Whole
    across: Whole
    upright: Whole
    shares: Whole
    scatter: Whole
    changes: Whole
    lost: Whole
    prior_slots: int
    source: str

    def __post_init__(self) -> None:
        field, steps, modes = self.field, len(self.across), len(self.shares)
        sums = [(self.across, SHARE), (self.upright, SHARE), (self.lost, SHARE)]
        sums += [(self.shares, SHARE), (self.scatter, SHARE), (self.changes, SHARE), (self.prior.reshape(-1), UNIT)]
        # What must hold, by its words in the error. All are looked at, so that one error names all that is wrong.
        holds = {
            "a field of at most 4096 cells": min(field.rows, field.columns) >= 2 and field.cells <= _MOST_CELLS,
            "cells of 0.1 to 30 degrees": 0.1 <= field.cell_deg <= 30.0,
            "a slot of 0.1 to 60 s": _SHORTEST_US <= self.slot_us <= _LONGEST_US,
            "1 to 10^6 slots of the prior": 1 <= self.prior_slots <= 1_000_000,
            "weights of each cell": self.prior.shape == (field.rows, field.columns),
            "steps across": self.across.shape == (steps, field.columns, field.columns) and steps > 0,
            "steps upright": self.upright.shape == (steps, field.rows, field.rows),
            "1 to 16 modes": 1 <= modes <= _MOST_MODES,
            "shares": self.shares.shape == (modes, steps + 1)
            and self.scatter.shape == (modes, steps)
            and self.changes.shape == (modes, modes)
            and self.lost.shape == (2, 2),
            "whole numbers from 0": all(array.dtype == np.int32 and (array >= 0).all() for _, array in self.arrays()),
            "sums": all((array.sum(axis=-1, dtype=np.int64) == total).all() for array, total in sums),
        }
        if not all(holds.values()):
            expected = "; ".join(words for words, is_so in holds.items() if not is_so)
            raise CalibrationError(f"calibration of tiles: expected {expected}")

    @property
    def slot_s(self) -> float:
        """Length of a slot in seconds."""
        return self.slot_us / 1_000_000

    def arrays(self) -> Iterator[tuple[str, Whole]]:
        """Arrays by name."""
        for name in ("prior", "across", "upright", "shares", "scatter", "changes", "lost"):
            yield name, getattr(self, name)
