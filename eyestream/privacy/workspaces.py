"""Workspaces: the arrays that a release writes to, lent to one release at a time."""

from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

__all__ = ["Workspaces"]

Work = TypeVar("Work")


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
