"""Histories by part and seed: played, and shortened."""

from collections.abc import Iterable
from typing import NamedTuple

from tests.rigs.simulated.fleet import Fleet
from tests.rigs.simulated.history import History
from tests.rigs.simulated.inside import Inside
from tests.rigs.simulated.moves import Moves
from tests.rigs.simulated.planted import PLANTED
from tests.rigs.simulated.whole import Whole
from tests.rigs.simulated.worn import Worn

__all__ = ["PARTS", "Played", "found_by", "play", "shortened"]

PARTS: dict[str, type[History]] = {"inside": Inside, "fleet": Fleet, "moves": Moves, "whole": Whole, "worn": Worn}


class Played(NamedTuple):
    """What became of one history."""

    part: str
    seed: int
    digest: str
    chunks: int
    faults: list[str]


def play(part: str, seed: int) -> Played:
    """One history."""
    history = PARTS[part](seed)
    faults = history.run()
    return Played(part, seed, history.judge.digest.hexdigest(), len(history.judge.chunks), faults)


def shortened(part: str, seed: int) -> History:
    """A history of this seed that fails, without the kinds of fault and the events that it can do without."""
    made = PARTS[part]

    def fails(events: Iterable[int], without: frozenset[str]) -> bool:
        return bool(made(seed, frozenset(events), without).run())

    whole = made(seed)
    whole.run()
    events, without = list(range(whole.count)), frozenset[str]()
    for kind in sorted(whole.on):
        if fails(events, without | {kind}):
            without |= {kind}
    size = len(events) // 2
    while size:
        start = 0
        while start < len(events):
            fewer = events[:start] + events[start + size :]
            if fails(fewer, without):
                events = fewer
            else:
                start += size
        size //= 2
    history = made(seed, frozenset(events), without)
    history.run()
    return history


def found_by(name: str, seeds: int, first: int = 0) -> int | None:
    """A seed that finds a planted fault: of so many from 0 on, tried from `first` on and then from the beginning."""
    part, plant = PLANTED[name]
    with plant():
        return next((seed for seed in (*range(first, seeds), *range(first)) if play(part, seed).faults), None)
