"""Workspaces: the arrays that a release writes to, lent to one release at a time."""

from collections import deque
from collections.abc import Callable
from math import prod
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = ["Workspaces", "room", "wide"]

Work = TypeVar("Work")


_LINE = 64
"""Bytes of a cache line."""


def room(shape: tuple[int, ...], kind: type[np.generic] = np.float64) -> NDArray[Any]:
    """An array of whatever was there, at the beginning of a cache line.

    An ordinary array begins 16 bytes behind one. Many of ours are whole pages long, so that two of them lie 16 bytes
    apart but for whole pages. A processor that reads one and writes the other takes each number for one that it has
    just written, and waits: such a pass takes up to 1.7 times as long.
    """
    size = prod(shape) * np.dtype(kind).itemsize
    block = np.empty(size + _LINE, dtype=np.uint8)
    first = -block.__array_interface__["data"][0] % _LINE
    return block[first : first + size].view(kind).reshape(shape)


def wide(column: NDArray[Any], n: int) -> NDArray[Any]:
    """A column (A, 1) as often as a chunk has rows, (A, n): beside a column, numpy takes at least twice as long."""
    whole = room((len(column), n), column.dtype.type)
    whole[:] = column
    return whole


class Workspaces(Generic[Work]):
    """Lends what `make` makes, so that nobody has what somebody else has; made anew when all are lent.

    There is no lock: `deque.pop` and `deque.append` are atomic in CPython. So threads do not wait for one another, and
    a copy of the process that was made in the middle of a release - a native fork - cannot wait for a thread that it
    does not have. One is made at once: a release allocates none in the steady state.
    """

    def __init__(self, make: Callable[[], Work]) -> None:
        self._make = make
        self._free = deque([make()])

    def take(self) -> Work:
        """One that nobody has; to be given back."""
        try:
            return self._free.pop()
        except IndexError:
            return self._make()

    def give(self, work: Work) -> None:
        """Back, in whatever state."""
        self._free.append(work)
