"""Tiles of nearly equal weight: rectangles of cells, cut where the weights that the past leads to expect.

The weights are whole numbers, and what decides is compared as whole numbers or after the same few operations on every
machine, so that a released past has one tiling everywhere. Tilings decide how useful a word is; privacy does not rest
on them.
"""

import numpy as np
from numpy.typing import NDArray

__all__ = ["tiling"]

Array = NDArray[np.float64]
Rectangle = tuple[int, int, int, int]  # rows from, to; columns from, to


def tiling(weights: Array, tiles: int) -> NDArray[np.intp]:
    """(rows, columns) the number of each cell's tile, 0 to `tiles` - 1.

    A rectangle with more than one tile to give is cut in two along the axis on which its weight is spread wider, at the
    line of cells that is nearest to the share of weight that the halves should have.

    Parameters
    ----------
    weights
        (rows, columns) whole numbers above 0 whose sum is below 2^31.
    tiles
        At most as many as there are cells.
    """
    rows, columns = weights.shape
    labels = np.zeros(weights.shape, dtype=np.intp)
    open_: list[tuple[Rectangle, int, int]] = [((0, rows, 0, columns), 0, tiles)]
    while open_:
        (top, bottom, left, right), first, count = open_.pop()
        part = weights[top:bottom, left:right]
        if count == 1:
            labels[top:bottom, left:right] = first
            continue
        upward, across = part.sum(axis=1), part.sum(axis=0)
        along_rows = _spread(upward) > _spread(across)
        fewer = count // 2
        profile, other = (upward, right - left) if along_rows else (across, bottom - top)
        if not _fits(len(profile), other, fewer, count - fewer):  # too narrow for its tiles: the other way
            along_rows = not along_rows
            profile, other = (upward, right - left) if along_rows else (across, bottom - top)
        line = _cut(profile, other, fewer, count - fewer)
        if along_rows:
            halves = (top, top + line, left, right), (top + line, bottom, left, right)
        else:
            halves = (top, bottom, left, left + line), (top, bottom, left + line, right)
        open_ += [(halves[0], first, fewer), (halves[1], first + fewer, count - fewer)]
    return labels


def _spread(profile: Array) -> float:
    """Variance of a place with these weights, in cells squared."""
    places = np.arange(len(profile), dtype=np.float64)
    total = float(profile.sum())
    mean = float((profile * places).sum()) / total  # whole numbers below 2^53: the sums are exact
    return float((profile * places * places).sum()) / total - mean * mean


def _room(width: int, tiles: int) -> int:
    """Fewest lines of `width` cells that have room for so many tiles."""
    return -(-tiles // width)


def _fits(lines: int, width: int, fewer: int, more: int) -> bool:
    return _room(width, fewer) + _room(width, more) <= lines


def _cut(profile: Array, width: int, fewer: int, more: int) -> int:
    """After how many lines to cut, so that the first part has nearest to its share, and both have room."""
    before = np.cumsum(profile)
    lowest, highest = _room(width, fewer), len(profile) - _room(width, more)
    apart = np.abs(before[lowest - 1 : highest] * (fewer + more) - before[-1] * fewer)
    return lowest + int(apart.argmin())
