"""Random lives of a device with one or two streams against a naive book that keeps every slot: no ceiling is passed.

A life has sessions, each of which names a wearer or nobody, withheld and released chunks, restarts that lose the slots
that were not durable, days that jump both ways, and changes of chunk length, window and epsilon.
"""

import bisect
import dataclasses
import itertools
import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from eyestream.core.accountant import Account
from eyestream.core.charge import Ceilings, Charge
from eyestream.core.days import Days
from eyestream.core.reservation import Request
from eyestream.streams import StreamKey

__all__ = ["Life", "Rule", "Slot", "count", "passed", "violations"]

STREAMS = ("features", "gaze")


@dataclasses.dataclass(frozen=True)
class Rule:
    """What a configuration says: n of each stream, ceilings of the device and of each stream."""

    number: int
    chunks: dict[str, int]
    ceilings: Ceilings
    own: dict[str, Ceilings]


@dataclasses.dataclass(frozen=True)
class Slot:
    """One true slot: what ruled, where and when it was booked, and what was spent."""

    rule: Rule
    stream: str
    session: int
    day: int
    epsilon: int
    delta: int
    wearer: int


class Life:
    """The true slots of one random life, of which accounts of `kind` decide."""

    def __init__(self, random_: random.Random, kind: type[Account], streams: Sequence[str]) -> None:
        self._random, self._kind, self._streams = random_, kind, streams
        self._written: list[tuple[str, dict[str, Any]]] = []
        self._durable = 0
        self._account, self._days = kind(), Days()
        self._rule = _rule(random_, 0, streams)
        self._at = dict.fromkeys(streams, (1, 0))
        self._wearers = dict.fromkeys(streams, 0)
        self._day = 100
        self.slots: list[Slot] = []

    def run(self, length: int) -> list[Slot]:
        """So many chunks fall due."""
        for _ in range(length):
            stream, event = self._random.choice(self._streams), self._random.random()
            if event < 0.08:
                self._at[stream] = (self._at[stream][0] + self._random.randint(1, 3), 0)
                self._wearers[stream] = self._random.randint(0, 2)
            elif event < 0.13:
                self._restart()
            elif event < 0.18:
                self._restart()
                self._rule = _rule(self._random, self._rule.number + 1, self._streams)
            elif event < 0.24:
                self._day += self._random.choice((-40, -3, -1, 1, 2, 40))
            self._fall_due(stream)
        return self.slots

    def _restart(self) -> None:
        """Of what was not durable anything may be lost."""
        lost = self._written[self._durable :]
        self._written = self._written[: self._durable] + [
            (what, given) for what, given in lost if what == "announce" or self._random.random() < 0.5
        ]
        self._durable = len(self._written)
        self._account, self._days = self._kind(), Days()
        for what, given in self._written:
            self._apply(what, **given)

    def _fall_due(self, stream: str) -> None:
        rule, account, (session, row) = self._rule, self._account, self._at[stream]
        n, own = rule.chunks[stream], rule.own[stream]
        charge = Charge(self._random.randint(1, 4), self._random.randint(0, 3))
        wearer = self._wearers[stream]
        request = Request(StreamKey("d", stream), session, row, row + n - 1, n, charge, wearer)
        day = self._days.of(self._day)
        self._days.open(day)
        obstacle = account.obstacle(request, rule.ceilings, day, own)
        if obstacle == "change":
            self._at[stream] = (session + 1, 0)
            return
        assert obstacle != "rows"
        announced = account.announcement(request, rule.ceilings, own, granted=obstacle is None)
        if announced is not None:
            self._write("announce", stream=stream, announced=announced, wearer=wearer)
            self._durable = len(self._written)
        epsilon, delta = (0, 0) if obstacle else (charge.epsilon, charge.delta)
        last_row = row + n - 1
        spent = {"day": day, "epsilon": epsilon, "delta": delta, "wearer": wearer}
        self._write("take", stream=stream, session=session, last_row=last_row, **spent)
        self._durable = len(self._written) if epsilon else self._durable
        self.slots.append(Slot(rule, stream, session, **spent))
        self._at[stream] = (session, row + n)

    def _write(self, what: str, **given: Any) -> None:
        self._apply(what, **given)
        self._written.append((what, given))

    def _apply(self, what: str, **given: Any) -> None:
        """As a ledger does: a slot opens its day first."""
        if what == "take":
            self._days.open(given["day"])
            given["last_day"] = self._days.last
        getattr(self._account, what)(**given)


def _rule(random_: random.Random, number: int, streams: Sequence[str]) -> Rule:
    """Chunk lengths and ceilings; the same window has the same ceilings, as new ones rule at once."""
    window = random_.choice((1, 2, 3, 5, 8))
    wearer = Ceilings(day=9, lifetime=20, day_delta=7, lifetime_delta=15)
    ceilings = Ceilings(
        window,
        2 + 5 * window % 7,
        24,
        36,
        60,
        3 + window % 4,
        session_delta=20,
        day_delta=28,
        lifetime_delta=44,
        wearer=wearer,
    )
    own = {}
    for stream in streams:
        w = random_.choice((0, 0, 2, 4))
        own[stream] = Ceilings(w, 3 + w if w else None, 14, 22, 40, 4 + w if w else None, lifetime_delta=30)
    return Rule(number, {stream: random_.choice((8, 32, 64)) for stream in streams}, ceilings, own)


def passed(slots: Sequence[Slot]) -> set[str]:
    """Names of the ceilings that the life has passed, by adding up everything."""
    found = _of_sequence(slots, lambda slot: slot.rule.ceilings, "")
    streams = {slot.stream for slot in slots}
    for stream in streams:
        own = [slot for slot in slots if slot.stream == stream]
        found |= _of_sequence(own, _own, "own ")
        found |= _of_rows(own, _own)
    for wearer in {slot.wearer for slot in slots} - {0}:
        named = [slot for slot in slots if slot.wearer == wearer]
        found |= _of_sequence(named, lambda slot: slot.rule.ceilings.wearer or Ceilings(), "wearer's ")
    if len(streams) == 1:
        found |= _of_rows(slots, lambda slot: slot.rule.ceilings)
    return found


def _own(slot: Slot) -> Ceilings:
    return slot.rule.own[slot.stream]


def _of_sequence(slots: Sequence[Slot], rule: Callable[[Slot], Ceilings], name: str) -> set[str]:
    """Window, session, day and lifetime of one sequence of slots, of epsilon and of delta."""
    found = set()
    for amount, suffix in (("epsilon", ""), ("delta", "_delta")):
        costs = [getattr(slot, amount) for slot in slots]
        sums: dict[str, defaultdict[Any, int]] = {scope: defaultdict(int) for scope in ("day", "lifetime")}
        current: dict[str, tuple[int, int]] = {}
        for i, slot in enumerate(slots):
            ceilings = rule(slot)
            before = current.get(slot.stream, (-1, 0))
            current[slot.stream] = (slot.session, costs[i] + (before[1] if before[0] == slot.session else 0))
            sums["day"][slot.day] += costs[i]
            sums["lifetime"][0] += costs[i]
            if not slot.epsilon:
                continue
            spent = {
                "session": sum(cost for _, cost in current.values()),
                "day": sums["day"][slot.day],
                "lifetime": sums["lifetime"][0],
            }
            for scope, so_far in spent.items():
                ceiling = getattr(ceilings, scope + suffix)
                if ceiling is not None and so_far > ceiling:
                    found.add(name + scope + suffix)
            w, ceiling = ceilings.window_chunks, getattr(ceilings, "window" + suffix)
            for first in range(max(0, i - w + 1), i + 1) if ceiling is not None else ():
                if sum(costs[first : first + w]) > ceiling:
                    found.add(name + "window" + suffix)
    return found


def _of_rows(slots: Sequence[Slot], rule: Callable[[Slot], Ceilings]) -> set[str]:
    """The window of one stream read as a span of rows, from any slot that the same configuration ruled."""
    starts = list(itertools.accumulate((slot.rule.chunks[slot.stream] for slot in slots), initial=0))
    for i, slot in enumerate(slots):
        w, ceiling = rule(slot).window_chunks, rule(slot).window
        for first in range(max(0, i - w + 1), i + 1) if slot.epsilon and ceiling is not None else ():
            span = w * slot.rule.chunks[slot.stream]
            behind = bisect.bisect_left(starts, starts[first] + span, hi=len(slots))
            spent = sum(other.epsilon for other in slots[first:behind])
            if slots[first].rule is slot.rule and ceiling is not None and spent > ceiling:
                return {"window of rows"}
    return set()


def violations(streams: int, seed: int, kind: type[Account] = Account) -> Iterator[set[str]]:
    """What was passed, of each life of `streams` that passed a ceiling; every third device has one stream."""
    random_ = random.Random(seed)
    for i in range(streams):
        if found := passed(Life(random_, kind, STREAMS[: 1 + (i % 3 > 0)]).run(40)):
            yield found


def count(streams: int, seed: int, kind: type[Account] = Account) -> int:
    """Lives, of `streams`, that passed a ceiling."""
    return sum(1 for _ in violations(streams, seed, kind))
