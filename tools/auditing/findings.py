"""What a check says: whether it holds, and the figure that it rests on."""

from collections.abc import Callable
from typing import NamedTuple

__all__ = ["Check", "Finding", "first_failure"]


class Finding(NamedTuple):
    """`figure` is what was measured, in words."""

    holds: bool
    figure: str


Check = Callable[[], Finding]


def first_failure(*parts: tuple[bool, str]) -> Finding:
    """The first part that does not hold; when all do, their number."""
    for holds, figure in parts:
        if not holds:
            return Finding(False, figure)
    return Finding(True, f"{len(parts)} parts hold")
