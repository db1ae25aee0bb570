"""Faults: planted at the seams of the shipped code for a moment, never re-typed beside it."""

import contextlib
import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

from tests.rigs.seams import replaced

__all__ = ["FAULTS", "Fault", "Patch", "fault", "planted"]

Patch = tuple[str, Any]
"""The name of a seam, and what takes its place."""


@dataclasses.dataclass(frozen=True)
class Fault:
    """What is wrong, the patches that make it so, and the checks of which at least one must catch it."""

    name: str
    patches: Callable[[], list[Patch]]
    checks: tuple[str, ...]


FAULTS: list[Fault] = []
"""All that are known; the modules `faults_*` add to them."""


def fault(name: str, *checks: str) -> Callable[[Callable[[], list[Patch]]], Callable[[], list[Patch]]]:
    """Register a function that gives the patches of a fault."""

    def register(patches: Callable[[], list[Patch]]) -> Callable[[], list[Patch]]:
        FAULTS.append(Fault(name, patches, checks))
        return patches

    return register


@contextlib.contextmanager
def planted(fault: Fault) -> Iterator[None]:
    """The shipped code with the fault in it."""
    with contextlib.ExitStack() as stack:
        for seam, value in fault.patches():
            stack.enter_context(replaced(seam, value))
        yield
