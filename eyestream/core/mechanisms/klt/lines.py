"""Piecewise linear functions of many features at once, quickly, and with the same work whatever the values are.

`Lines` are exact. What has to be found for a value is its line: how many *bends*, knots inside the range, are not
above it. Evenly spaced *cells* know that but for the bends inside them. Where no cell of a feature has more than one
bend, one comparison does the rest. Of the other features, the lines in a cell are told apart by halving steps before
that, and a step of s looks only at features with at least s bends in some cell. It finds the line that a search through
all knots finds: the place of a value among the cells never falls when the value rises, so that values and bends are
ordered as their places are.

`Nodes` know the functions at evenly spaced nodes alone, which is enough where knots lie spread.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from eyestream.core.frame import aligned_empty, repeat_column

__all__ = ["Lines", "Nodes", "Room"]

Array = NDArray[np.float64]

_CELLS = (512, 256, 128, 64)
"""Of a feature: the fewest that keep its bends apart as well as the most do."""

_NARROW = 2.0**-40
"""A range of less than this, times its distance from 0, has one cell: in more of them places would not be exact."""

_ROUNDING = 2.0**-10
"""Of a cell: a bend this near to a border counts on both sides, as its place is rounded."""

_GUARD = 3
"""Cells on both sides of the range, where the place of a value of one cell may end."""

_NODES = 257


class Room:
    """The arrays that functions of (A, n) values work in, of one release at a time."""

    def __init__(self, features: int, n: int) -> None:
        self.place, self.looked = aligned_empty((features, n)), aligned_empty((features, n))
        self.cell, self.jump = aligned_empty((features, n), np.intp), aligned_empty((features, n), np.intp)
        self.above = aligned_empty((features, n), np.bool_)


class Lines:
    """Functions of A features, each linear between its knots and constant outside of them. Public figures alone.

    Parameters
    ----------
    at, to
        (A, Q) knots, each row rising strictly, and what they map to.
    low, high
        (A,) the range of the values, low < high.

    Attributes
    ----------
    order : (A,) the features in the order in which their values come out.
    """

    def __init__(self, at: Array, to: Array, low: Array, high: Array) -> None:
        cells = [_cells(*one) for one in zip(at, low, high, strict=True)]
        self.order = np.argsort([-crowd for crowd, _ in cells], kind="stable")
        crowds = np.array([crowd for crowd, _ in cells])[self.order]
        halves = [2**i for i in reversed(range(1, int(crowds.max()).bit_length()))]
        self._steps = [(half, int((crowds >= half).sum())) for half in halves]
        self._crowded = int((crowds > 1).sum())
        self._scale, self._shift = np.empty((2, len(at), 1))
        ahead = np.full(1 + 2 * max(halves, default=0), np.inf)  # what steps may look at behind the last bend
        starts, bends, lines = [np.empty(0, np.intp)], [np.empty(0)], [np.empty((2, 0))]
        for row, feature in enumerate(self.order):
            crowd, count = cells[feature]
            size = sum(map(len, bends))
            first = _GUARD + (sum(map(len, starts)) if crowd > 1 else size)
            scale = count / (high[feature] - low[feature])
            self._scale[row], self._shift[row] = scale, first - low[feature] * scale
            place = at[feature] * scale + self._shift[row]
            inner = slice(*np.searchsorted(at[feature], [np.nextafter(low[feature], np.inf), high[feature]]))
            bend, line = place[inner], _lines(place, to[feature])[:, inner.start : inner.stop + 1]
            inside = bend.astype(np.intp)
            before = np.searchsorted(inside, np.arange(first - _GUARD, first + count + _GUARD + 1))
            if crowd > 1:
                starts.append(size + before)
                bends.append(np.append(bend, ahead))
                lines.append(np.append(line, np.zeros((2, len(ahead) - 1)), axis=1))
            else:
                alone = np.full(len(before), np.inf)
                alone[inside - (first - _GUARD)] = bend
                bends.append(alone)
                lines.append(line[:, before])
        self._starts, self._bends = np.concatenate(starts), np.concatenate(bends)
        self._slope, self._value = np.concatenate(lines, axis=1)

    def worker(self, own: Room) -> Callable[[Array, Array], None]:
        """What writes the values of (A, n) in the range to another (A, n), in `order`, and works in `own`."""
        place, looked, cell, above = own.place, own.looked, own.cell, own.above
        scale, shift = (repeat_column(column, place.shape[1]) for column in (self._scale, self._shift))
        rough, simple = own.jump[: self._crowded], slice(self._crowded, None)
        steps = [
            (half, self._bends[half - 1 :], place[:rows], looked[:rows], cell[:rows], above[:rows], rough[:rows])
            for half, rows in self._steps
        ]

        def work(values: Array, out: Array) -> None:
            values.take(self.order, axis=0, out=place, mode="clip")
            np.multiply(place, scale, out=place)
            np.add(place, shift, out=place)
            np.copyto(rough, place[: self._crowded], casting="unsafe")
            np.copyto(cell[simple], place[simple], casting="unsafe")
            self._starts.take(rough, out=cell[: self._crowded], mode="clip")
            for half, further, here, found, line, passed, jump in steps:
                further.take(line, out=found, mode="clip")
                np.less_equal(found, here, out=passed)
                np.multiply(passed, half, out=jump)  # `where=` would take longer where some pass and some do not
                np.add(line, jump, out=line)
            self._bends.take(cell, out=looked, mode="clip")
            np.less_equal(looked, place, out=above)
            np.add(cell, above, out=cell)
            self._slope.take(cell, out=looked, mode="clip")
            np.multiply(place, looked, out=place)
            self._value.take(cell, out=looked, mode="clip")
            np.add(place, looked, out=out)

        return work


def _cells(at: Array, low: float, high: float) -> tuple[int, int]:
    """The largest number of bends in a cell, and the number of cells."""
    bends = at[(at > low) & (at < high)]
    if high - low < _NARROW * max(abs(low), abs(high)):
        return len(bends), 1
    chosen = (len(at) + 1, 1)
    for count in _CELLS:
        place = (bends - low) * (count / (high - low)) + 1.0
        left, right = (place - _ROUNDING).astype(np.intp), (place + _ROUNDING).astype(np.intp)
        inside = np.bincount(np.append(left, right[right != left]))
        chosen = min(chosen, (int(inside.max(initial=0)), count))
    return chosen


def _lines(place: Array, to: Array) -> Array:
    """(2, Q + 1) slopes, and values at place 0, of the lines before, between and behind knots at (Q,) places."""
    slope, width = np.zeros(len(place) + 1), np.diff(place)
    np.divide(np.diff(to), width, out=slope[1:-1], where=width > 0)  # knots with one place: nothing is between
    through = np.maximum(np.arange(len(slope)) - 1, 0)
    return np.array([slope, to[through] - slope * place[through]])


class Nodes:
    """The same functions, as far as `_NODES` evenly spaced nodes tell of them.

    Where no slope is above s, a value is off by less than s times the distance of two nodes, and mostly by far less.

    Parameters
    ----------
    at, to
        (A, Q) knots, each row rising strictly, and what they map to.
    """

    def __init__(self, at: Array, to: Array) -> None:
        nodes = at[:, :1] + (at[:, -1:] - at[:, :1]) * np.linspace(0.0, 1.0, _NODES)
        values = np.array([np.interp(*one) for one in zip(nodes, at, to, strict=True)])
        slope = np.append(np.diff(values), np.zeros((len(at), 1)), axis=1)
        self._scale = (_NODES - 1) / (at[:, -1:] - at[:, :1])
        self._shift = -at[:, :1] * self._scale
        self._slope, self._value = slope.reshape(-1), (values - slope * np.arange(_NODES)).reshape(-1)
        self._base = np.arange(len(at))[:, None] * _NODES

    def worker(self, own: Room) -> Callable[[Array, Array], None]:
        """What writes the values of finite (A, n) to another (A, n), which may be the same; works in `own`."""
        place, looked, cell = own.place, own.looked, own.cell
        scale, shift, base = (
            repeat_column(column, place.shape[1]) for column in (self._scale, self._shift, self._base)
        )

        def work(values: Array, out: Array) -> None:
            np.multiply(values, scale, out=place)
            np.add(place, shift, out=place)
            np.maximum(place, 0.0, out=place)
            np.minimum(place, _NODES - 1.0, out=place)
            np.copyto(cell, place, casting="unsafe")
            np.add(cell, base, out=cell)
            self._slope.take(cell, out=looked, mode="clip")
            np.multiply(place, looked, out=place)
            self._value.take(cell, out=looked, mode="clip")
            np.add(place, looked, out=out)

        return work
