"""Timers against asking everybody: nobody is looked at too late, and no more often than timers were set."""

import math
import random

import pytest

from eyestream.rim.sidecar.moments import Timers


@pytest.mark.parametrize("seed", range(5))
def test_nobody_is_looked_at_too_late(seed: int) -> None:
    chance = random.Random(seed)
    timers: Timers[str] = Timers()
    wanted: dict[str, float] = {}
    looked = 0
    for now in range(400):
        for _ in range(chance.randrange(4)):
            item, at = f"device {chance.randrange(20)}", now + chance.expovariate(0.1)
            wanted[item] = at
            timers.set(item, at)
        earliest = min(wanted.values(), default=math.inf)
        assert (timers.next() or math.inf) <= earliest
        for item in timers.due(now):
            looked += 1
            if wanted[item] <= now:
                del wanted[item]
            else:
                timers.set(item, wanted[item])
        assert all(at > now for at in wanted.values())
    assert looked > 50


def test_a_deadline_that_is_put_off_leaves_nothing_behind() -> None:
    timers: Timers[int] = Timers()
    for i in range(10_000):
        timers.set(0, 100.0 + i)
    assert len(timers._heap) == 1
    assert timers.next() == 100.0
    assert timers.due(99.0) == []
    assert timers.due(100.0) == [0]
    assert timers.next() is None


def test_an_earlier_alarm_replaces_a_later_one() -> None:
    timers: Timers[str] = Timers()
    timers.set("a", 5.0)
    timers.set("a", 3.0)
    timers.set("b", 4.0)
    timers.set("c", None)
    assert timers.due(10.0) == ["a", "b"]
    assert timers.due(10.0) == []
