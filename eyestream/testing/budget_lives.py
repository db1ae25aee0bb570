"""Random lives of a device against a naive book that keeps every slot: no ceiling is ever passed.

A life has sessions, withheld and released chunks, restarts that lose the slots that were not durable, days that jump
both ways, and changes of chunk length, window and epsilon.
"""

import bisect
import dataclasses
import itertools
import random
from collections import defaultdict
from collections.abc import Sequence

from eyestream.privacy.accountant import Account, Request
from eyestream.privacy.charge import Ceilings, Charge

__all__ = ["Slot", "count", "live", "passed"]


@dataclasses.dataclass(frozen=True)
class Slot:
    """One true slot: what ruled, the day it was booked on, and what was spent."""

    rule: int
    chunk: int
    ceilings: Ceilings
    session: int
    day: int
    cost: int


def live(random_: random.Random, kind: type[Account], length: int = 40) -> list[Slot]:
    """The true slots of one random life, of which `kind` decides."""
    chunk, ceilings = _rule(random_)
    taken: list[dict[str, int]] = []
    durable = 0
    account = kind(chunk, ceilings.window_chunks)
    header = (chunk, ceilings.window_chunks)
    slots: list[Slot] = []
    rule, session, day, row = 0, 1, 100, 0
    for _ in range(length):
        event = random_.random()
        if event < 0.08:
            session, row = session + random_.randint(1, 3), 0
            if random_.random() < 0.5:
                rule, (chunk, ceilings) = rule + 1, _rule(random_)
        elif event < 0.16:  # a restart: of what was not durable anything may be lost
            taken = taken[:durable] + [slot for slot in taken[durable:] if random_.random() < 0.5]
            account = kind(*header)
            for slot in taken:
                account.take(**slot)
        elif event < 0.22:
            day += random_.choice((-3, -1, 1, 2))
        cost = random_.randint(1, 4)
        request = Request("d", "s", session, row, row + chunk - 1, Charge(cost))
        obstacle = account.obstacle(request, chunk, ceilings, day)
        assert obstacle not in {"rows", "change"}
        spent = 0 if obstacle else cost
        slot = {"session": session, "last_row": row + chunk - 1, "chunk": chunk, "window": ceilings.window_chunks}
        slot |= {"day": account.day_of(day), "epsilon": spent}
        account.take(**slot)
        taken.append(slot)
        durable = len(taken) if spent else durable
        slots.append(Slot(rule, chunk, ceilings, session, slot["day"], spent))
        row += chunk
    return slots


def _rule(random_: random.Random) -> tuple[int, Ceilings]:
    """Chunk length and ceilings; the same length and window have the same epsilon, as a new epsilon rules at once."""
    chunk, window = random_.choice((8, 32, 64)), random_.choice((1, 2, 3, 5, 8))
    epsilon = 2 + (3 * chunk // 8 + 5 * window) % 7
    return chunk, Ceilings(window, epsilon, session=24, day=36)


def passed(slots: Sequence[Slot]) -> set[str]:
    """Names of the ceilings that the life has passed, by adding up everything."""
    found = set()
    starts = list(itertools.accumulate((slot.chunk for slot in slots), initial=0))
    for i, slot in enumerate(slots):
        if not slot.cost:
            continue
        w, ceiling = slot.ceilings.window_chunks, slot.ceilings.window
        assert ceiling is not None, "every life has windows"
        for first in range(max(0, i - w + 1), i + 1):
            if sum(other.cost for other in slots[first : first + w]) > ceiling:
                found.add("window")
            behind = bisect.bisect_left(starts, starts[first] + w * slot.chunk, hi=len(slots))
            if slots[first].rule == slot.rule and sum(other.cost for other in slots[first:behind]) > ceiling:
                found.add("window of rows")
    for name in ("session", "day"):
        sums: defaultdict[int, int] = defaultdict(int)
        for slot in slots:
            sums[getattr(slot, name)] += slot.cost
            if slot.cost and sums[getattr(slot, name)] > getattr(slot.ceilings, name):
                found.add(name)
    return found


def count(streams: int, seed: int, kind: type[Account] = Account) -> int:
    """Lives, of `streams`, that passed a ceiling."""
    random_ = random.Random(seed)
    return sum(bool(passed(live(random_, kind))) for _ in range(streams))
