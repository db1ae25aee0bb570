"""Piecewise linear functions of many features at once, quickly, and with the same work whatever the values are.

`Lines` are exact. What has to be found for a value is its segment: the last knot that is not above it. Evenly spaced
*cells* know that but for the knots inside them; the few that are left are told apart by halving steps, and a step of s
looks only at features with at least s knots in some cell. It finds the segment that a search through all knots finds:
the place of a value among the cells never falls when the value rises, so that values and knots are ordered as their
places are.

`Nodes` know the functions at evenly spaced nodes alone, which is enough where knots lie spread.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

__all__ = ["Lines", "Nodes", "Room"]

Array = NDArray[np.float64]

_CELLS = 256
_NODES = 257


class Room:
    """The arrays that functions of (A, n) values work in, of one release at a time."""

    def __init__(self, features: int, n: int) -> None:
        self.place, self.looked = np.empty((2, features, n))
        self.cell, self.segment = np.empty((2, features, n), dtype=np.intp)
        self.above = np.empty((features, n), dtype=np.bool_)


class Lines:
    """Functions of A features, each linear between its knots and constant outside of them. Public figures alone.

    Parameters
    ----------
    at, to
        (A, Q) knots, each row rising strictly, and what they map to.

    Attributes
    ----------
    order : (A,) the features in the order in which their values come out.
    """

    def __init__(self, at: Array, to: Array) -> None:
        features, knots = at.shape
        scale = _CELLS / (at[:, -1:] - at[:, :1])
        cell = np.clip((at - at[:, :1]) * scale, 0.0, _CELLS).astype(np.intp)
        self.order = np.argsort([-np.bincount(row).max() for row in cell], kind="stable")
        at, to = at[self.order], to[self.order]
        # A place counts cells, those of one feature behind those of the feature before.
        self._first = (np.arange(features) * (_CELLS + 1.0))[:, None]
        self._scale = scale[self.order]
        self._shift = self._first - at[:, :1] * self._scale
        place = np.clip(at * self._scale + self._shift, self._first, self._first + _CELLS)
        within = place.astype(np.intp) - self._first.astype(np.intp)
        most = np.array([np.bincount(row).max() for row in within])
        halves = [2**i for i in reversed(range(int(most.max()).bit_length()))]
        self._steps = [(half, int(np.flatnonzero(most >= half)[-1]) + 1) for half in halves]
        slope = np.zeros_like(to)
        width = np.diff(place)
        np.divide(np.diff(to), width, out=slope[:, :-1], where=width > 0)  # knots with one place: nothing is between
        # One feature behind the other, with room behind each for what the largest step may look at.
        row = knots + 2 * halves[0]
        rows = np.full((3, features, row), np.inf)
        rows[:, :, :knots] = place, slope, to - slope * place
        self._knots, self._slope, self._value = rows.reshape(3, -1)
        below = [np.searchsorted(own, np.arange(_CELLS + 1)) - 1 for own in within]
        self._start = (np.maximum(np.array(below), 0) + np.arange(features)[:, None] * row).reshape(-1)

    def worker(self, room: Room) -> Callable[[Array, Array], None]:
        """What writes the values of finite (A, n) to another (A, n), in `order`, and works in `room`."""
        place, looked, cell, segment, above = room.place, room.looked, room.cell, room.segment, room.above
        first = np.repeat(self._first, place.shape[1], axis=1)  # beside a column, extremes take several times as long
        last = first + _CELLS
        steps = [
            (half, self._knots[half:], place[:rows], looked[:rows], segment[:rows], above[:rows])
            for half, rows in self._steps
        ]

        def work(values: Array, out: Array) -> None:
            values.take(self.order, axis=0, out=place, mode="clip")
            np.multiply(place, self._scale, out=place)
            np.add(place, self._shift, out=place)
            np.maximum(place, first, out=place)
            np.minimum(place, last, out=place)
            np.copyto(cell, place, casting="unsafe")
            self._start.take(cell, out=segment, mode="clip")
            for half, further, here, found, own, passed in steps:
                further.take(own, out=found, mode="clip")
                np.less_equal(found, here, out=passed)
                np.add(own, half, out=own, where=passed)
            self._slope.take(segment, out=looked, mode="clip")
            np.multiply(place, looked, out=place)
            self._value.take(segment, out=looked, mode="clip")
            np.add(place, looked, out=out)

        return work


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

    def worker(self, room: Room) -> Callable[[Array, Array], None]:
        """As `Lines.worker`; `out` may be the values themselves."""
        place, looked, cell = room.place, room.looked, room.cell

        def work(values: Array, out: Array) -> None:
            np.multiply(values, self._scale, out=place)
            np.add(place, self._shift, out=place)
            np.maximum(place, 0.0, out=place)
            np.minimum(place, _NODES - 1.0, out=place)
            np.copyto(cell, place, casting="unsafe")
            np.add(cell, self._base, out=cell)
            self._slope.take(cell, out=looked, mode="clip")
            np.multiply(place, looked, out=place)
            self._value.take(cell, out=looked, mode="clip")
            np.add(place, looked, out=out)

        return work
