"""What one release of a real mechanism tells of public chunks: any k, any number of features, any number of bits.

LPA, CFPA, DCFPA. A chunk becomes integers, by the same projection, coordinates and snap that the mechanism uses, and
the noise on integer i of block b has the rate alpha_b: the log-ratio of two chunks is sum alpha_b |a_bi - a'_bi|, and
nothing is estimated. (The sampler's deviation, below 10^-6 a chunk, is left out.) Shrinking, smoothing and clipping
are functions of what was released.

`klt`. A chunk has a code word: the quantiser's cells of its scores along public directions, moved by what the released
past predicts. Whatever the past, and however fine the quantiser, the chunks that share a word are all that lie in some
box along the step's directions. So the sets of public chunks that a box can cut out are all the cells there can be, and
often more than there are: what is computed with them is an upper bound. Cells of a book are no boxes: with books every
set of public chunks counts as one that a word may cut out. (In as many dimensions as there are chunks less one that is
hardly more than the convex sets, which cells are.)
"""

from itertools import product
from types import FunctionType

import numpy as np
from numpy.typing import NDArray

from eyestream.core.mechanism import Mechanism
from eyestream.errors import ConfigError
from eyestream_lab.correlation.emissions import Emission
from eyestream_lab.parts import part_of

__all__ = ["any_cells", "box_cells", "emission_of"]

Array = NDArray[np.float64]

_MOST_STATES = 9


def emission_of(mechanism: Mechanism, chunks: Array) -> Emission:
    """One release of a chunk that is one of S public ones.

    Parameters
    ----------
    mechanism
        One whose entry refers to its law.
    chunks
        (S, F, n) the public chunks, finite; S is at most 9 for `klt`.

    Raises
    ------
    ConfigError
        for another mechanism or shape.
    """
    if chunks.ndim != 3 or chunks.shape[1:] != (mechanism.features, mechanism.n):
        raise ConfigError(f"chunks: (S, {mechanism.features}, {mechanism.n}) are needed, not {chunks.shape}")
    law = part_of(mechanism.name).get("law", FunctionType)
    if law is None:
        raise ConfigError(f"no output law is known of {mechanism.name} for public chunks")
    frame = mechanism.frame
    found: Emission = law(mechanism, [np.clip(chunk[frame.active], *frame.range) for chunk in chunks])
    return found


def box_cells(points: Array) -> NDArray[np.bool_]:
    """(C, S) the sets of points (S, m) that a box along the axes can hold without the others; not empty, not all."""
    cells = []
    for cell in any_cells(len(points)):
        low, high = points[cell].min(axis=0), points[cell].max(axis=0)
        inside = ((points >= low) & (points <= high)).all(axis=1)
        if not (inside & ~cell).any():
            cells.append(cell)
    return np.array(cells)


def any_cells(states: int) -> NDArray[np.bool_]:
    """(C, S) all sets of some of so many points; not empty, not all."""
    if not 2 <= states <= _MOST_STATES:
        raise ConfigError(f"points: from 2 to {_MOST_STATES} can be told apart by words, not {states}")
    return np.array(list(product((False, True), repeat=states)))[1:-1]
