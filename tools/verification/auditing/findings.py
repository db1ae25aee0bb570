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


def first_failure(*parts: Part) -> Finding:
    """The first part that does not hold; when all do, what the first one measured, and how many there are."""
    for holds, figure in parts:
        if not holds:
            return Finding(False, figure)
    return Finding(True, f"{parts[0][1]} ({len(parts)} figures)")
