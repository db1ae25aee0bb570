"""What a check says: whether it holds, and the figure that it rests on."""

from collections.abc import Callable
from typing import NamedTuple

__all__ = ["Check", "Finding", "Part", "first_failure"]


class Finding(NamedTuple):
    """`figure` is what was measured, in words."""

    holds: bool
    figure: str


Check = Callable[[], Finding]
Part = tuple[bool, str]


def first_failure(*parts: Part | Callable[[], Part]) -> Finding:
    """The first part that does not hold; when all do, what the first one measured, and how many there are.

    A part that takes long to measure is given as a function, which is called when those before it hold.
    """
    figures = []
    for part in parts:
        holds, figure = part() if callable(part) else part
        if not holds:
            return Finding(False, figure)
        figures.append(figure)
    return Finding(True, f"{figures[0]} ({len(figures)} figures)")
