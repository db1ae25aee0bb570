"""Alarms against asking everybody: nobody is looked at too late, and no more often than alarms were set."""

import math
import random

import pytest

from eyestream.service.alarms import Alarms


@pytest.mark.parametrize("seed", range(5))
def test_nobody_is_looked_at_too_late(seed: int) -> None:
    chance = random.Random(seed)
    alarms: Alarms[str] = Alarms()
    wanted: dict[str, float] = {}
    looked = 0
    for now in range(400):
        for _ in range(chance.randrange(4)):
            item, at = f"device {chance.randrange(20)}", now + chance.expovariate(0.1)
            wanted[item] = at
            alarms.set(item, at)
        earliest = min(wanted.values(), default=math.inf)
        assert (alarms.next() or math.inf) <= earliest
        for item in alarms.due(now):
            looked += 1
            if wanted[item] <= now:
                del wanted[item]
            else:
                alarms.set(item, wanted[item])
        assert all(at > now for at in wanted.values())
    assert looked > 50


def test_a_deadline_that_is_put_off_leaves_nothing_behind() -> None:
    alarms: Alarms[int] = Alarms()
    for i in range(10_000):
        alarms.set(0, 100.0 + i)
    assert len(alarms._heap) == 1
    assert alarms.next() == 100.0
    assert alarms.due(99.0) == []
    assert alarms.due(100.0) == [0]
    assert alarms.next() is None


def test_an_earlier_alarm_replaces_a_later_one() -> None:
    alarms: Alarms[str] = Alarms()
    alarms.set("a", 5.0)
    alarms.set("a", 3.0)
    alarms.set("b", 4.0)
    alarms.set("c", None)
    assert alarms.due(10.0) == ["a", "b"]
    assert alarms.due(10.0) == []
