"""Maps of features before they are coded, half as they are, half rank-normal; and piecewise linear functions.

Many features are skewed, and a quantiser for the normal law spends its points where their values are not. A rank-normal
map alone makes every feature normal, but lets its rare large values weigh as little as their ranks; half of each keeps
both. So a feature x of the corpus, clamped to [lo, hi], becomes

    y(x) = (x - mean) / (2 sd) + q(F(x)) / 2,

F the corpus' distribution function in the middle of its ties, q the quantile function of the standard normal law. y is
held at knots and is linear between them; it rises strictly, so that it can be undone.

Nothing of it bears on privacy: what the randomised response protects is the code word, whatever function made it.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from eyestream.core.frame import aligned_empty, repeat_column
from eyestream.core.portable import total

Array = NDArray[np.float64]

_ABOVE = (
    0.077506467903, 0.155464251752, 0.234343359372, 0.314653237430, 0.396968071162, 0.481960180872, 0.570447122673,
    0.663462106052, 0.762365392085, 0.869031546346, 0.986187397881, 1.118079117510, 1.271957511515, 1.462020460450,
    1.723415937893, 2.208124417543,
)  # fmt: skip
_NORMAL = np.array([*(-node for node in reversed(_ABOVE)), 0.0, *_ABOVE])
"""Quantiles of the standard normal law in the middle of 33 equal shares, of variance 1; as they are written here, for
each machine would round them in its own way."""


class RankMap:
    """The maps of A features there and back.

    Parameters
    ----------
    knots, levels
        (A, Q), each row rising strictly.
    """

    def __init__(self, knots: Array, levels: Array) -> None:
        self._there = _Lines(knots, levels)
        self._back = _Lines(levels, knots)

    def there(self, values: Array) -> Array:
        """Levels (A, n) of values (A, n)."""
        return self._there(values)

    def back(self, levels: Array) -> Array:
        """Values (A, n) of levels (A, n), inside the knots."""
        return self._back(levels)

    def error_back(self, mean: Array, spread: Array, error: Array) -> Array:
        """(A,) error of values, root mean square, for an error (A,) of their levels.

        Levels are taken for normal of `mean` and `spread` (A,), of which the estimate explains all but the error. The
        same bits on every processor.
        """
        known = np.sqrt(np.maximum(spread * spread - error * error, 0.0))
        estimate = mean[:, None] + known[:, None] * _NORMAL
        truth = estimate[:, :, None] + (error[:, None] * _NORMAL)[:, None, :]
        off = self.back(truth.reshape(len(mean), -1)).reshape(truth.shape) - self.back(estimate)[:, :, None]
        squared = (off * off).reshape(len(mean), -1)
        return np.asarray(np.sqrt(total(squared.T) / squared.shape[1]), np.float64)


class _Lines:
    """Piecewise linear functions of all features at once: feature i on [2 i, 2 i + 1] of one axis.

    In place of `np.interp`, of whose product and sum some compilers make one operation.
    """

    def __init__(self, at: Array, to: Array) -> None:
        shift = 2.0 * np.arange(len(at))[:, None]
        self._low, self._width = at[:, :1], at[:, -1:] - at[:, :1]
        self._shift = shift
        self._at = ((at - self._low) / self._width + shift).reshape(-1)
        self._to = to.reshape(-1)
        width, self._slope = np.diff(self._at), np.zeros(self._at.shape)
        np.divide(np.diff(self._to), width, out=self._slope[:-1], where=width > 0)

    def __call__(self, values: Array) -> Array:
        inside = np.clip((values - self._low) / self._width, 0.0, 1.0)
        place = inside + self._shift
        line = np.searchsorted(self._at, place, "right") - 1
        found: Array = self._slope[line] * (place - self._at[line]) + self._to[line]
        return found


_CELLS = (512, 256, 128, 64)
"""Cells of a feature: the fewest that keep its bends apart as well as the most do."""

_NARROW = 2.0**-40
"""A range of less than this, times its distance from 0, has one cell: in more of them places would not be exact."""

_ROUNDING = 2.0**-10
"""Share of a cell: a bend this near to a border counts on both sides, as its place is rounded."""

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

    They are exact and quick, with the same work whatever the values are. What has to be found for a value is its line:
    how many *bends*, knots inside the range, are not above it. Evenly spaced *cells* know that but for the bends inside
    them. Where no cell of a feature has more than one bend, one comparison does the rest. Of the other features, the
    lines in a cell are told apart by halving steps before that, and a step of s looks only at features with at least s
    bends in some cell. It finds the line that a search through all knots finds: the place of a value among the cells
    never falls when the value rises, so that values and bends are ordered as their places are.

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
        """A function that writes values of (A, n) in the range to another (A, n), in `order`, and works in `own`."""
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

    That is enough where knots lie spread. Where no slope is above s, a value is off by less than s times the distance
    of two nodes, and mostly by far less.

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
        """A function that writes the values of finite (A, n) to another (A, n), perhaps the same; works in `own`."""
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
