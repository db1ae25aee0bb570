"""Tiles of nearly equal weight: rectangles of cells, cut where the weights that the past leads to expect.

The weights are whole numbers, and what decides is compared as whole numbers or after the same few operations on every
machine, so that a released past has one tiling everywhere. Tilings decide how useful a word is; privacy does not rest
on them.
"""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Rectangle = tuple[int, int, int, int]  # rows from, to; columns from, to


def tiling(weights: Array, tiles: int) -> NDArray[np.intp]:
    """(rows, columns) the number of each cell's tile, 0 to `tiles` - 1.

    A rectangle with more than one tile to give is cut in two along the axis on which its weight is spread wider, at the
    line of cells that is nearest to the share of weight that the halves should have. One that is too small to be cut so
    gives its cells away in the order in which one reads.

    Parameters
    ----------
    weights
        (rows, columns) whole numbers above 0 whose sum is below 2^31.
    tiles
        At most as many as there are cells.
    """
    labels = np.zeros(weights.shape, dtype=np.intp)
    rows, columns = weights.shape
    open_: list[tuple[Rectangle, int, int]] = [((0, rows, 0, columns), 0, tiles)]
    while open_:
        (top, bottom, left, right), first, count = open_.pop()
        part, own = weights[top:bottom, left:right], labels[top:bottom, left:right]
        if count == 1:
            own[:] = first
            continue
        fewer = count // 2
        line, upright = _halved(part, fewer, count - fewer)
        if line == 0:
            own[:] = first + (np.arange(part.size) * count // part.size).reshape(part.shape)
            continue
        if upright:
            halves = (top, top + line, left, right), (top + line, bottom, left, right)
        else:
            halves = (top, bottom, left, left + line), (top, bottom, left + line, right)
        open_ += [(halves[0], first, fewer), (halves[1], first + fewer, count - fewer)]
    return labels


def _halved(part: Array, fewer: int, more: int) -> tuple[int, bool]:
    """After how many lines to cut, and whether lines are rows; 0 lines where neither axis has room for the tiles."""
    height, width = part.shape
    sides = [(part.sum(axis=1), width, True), (part.sum(axis=0), height, False)]
    if not _spread(sides[0][0]) > _spread(sides[1][0]):
        sides.reverse()
    for profile, across, upright in sides:
        lowest, highest = -(-fewer // across), len(profile) - -(-more // across)
        if lowest <= highest:
            before = np.cumsum(profile)
            apart = np.abs(before[lowest - 1 : highest] * (fewer + more) - before[-1] * fewer)
            return lowest + int(apart.argmin()), upright
    return 0, False


def _spread(profile: Array) -> float:
    """Variance of a place with these weights, in cells squared."""
    places = np.arange(len(profile), dtype=np.float64)
    total = float(profile.sum())
    mean = float((profile * places).sum()) / total  # whole numbers below 2^53: the sums are exact
    return float((profile * places * places).sum()) / total - mean * mean
