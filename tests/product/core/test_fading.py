"""A lifetime that fades: no sum passes the ceiling, whoever asks when, and levels are what they are said to be."""

import random
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import cache

import pytest

from eyestream.core.accountant import Account
from eyestream.core.charge import LEVELS, Ceilings, Charge, bounds, charges_of, faded, level_of, spendable
from eyestream.core.kinds import Loss
from eyestream.core.reservation import Granted, Request
from eyestream.core.scopes import Deployment, level_seconds, scopes_of
from eyestream.streams import StreamKey, StreamSpec
from tests.rigs.memory_ledger import MemoryLedger

L = 10**14  # epsilon 100


@cache
def prices(epsilon: float, levels: int) -> tuple[Charge, ...]:
    return charges_of(Loss("chunk", Fraction(epsilon)), levels)


def ask(index: int, epsilon: float = 4.8, stream: str = "s", session: int = 1, levels: int = LEVELS) -> Request:
    charge, *later = prices(epsilon, levels)
    return Request(StreamKey("d", stream), session, index, index, 1, charge, later=tuple(later))


def levels_of_a_life(ledger: MemoryLedger, epsilon: float) -> list[int]:
    """The level of each chunk of one stream, until nothing is released any more."""
    found: list[int] = []
    while True:
        [answer] = ledger.reserve([ask(len(found), epsilon)], 1)
        if not isinstance(answer, Granted):
            return found
        found.append(answer.level)


def test_bounds_halve_what_is_left_and_end_at_the_ceiling() -> None:
    assert bounds(1000, 4) == (500, 750, 875, 1000)
    assert bounds(1001, 3) == (501, 751, 1001)
    assert bounds(7, 1) == (7,)
    assert [faded(0.3, level) for level in range(3)] == [spendable(0.3), spendable(0.15), spendable(0.075)]
    charges = prices(4.8, 3)
    assert [level_of(spent, charges, bounds(10**13, 3)) for spent in (0, 10**11, 3 * 10**12, 9 * 10**12)] == [
        0,
        0,
        1,
        2,
    ]


def test_every_epsilon_is_charged_what_its_releases_cost() -> None:
    """On each level, to the unit: of 0.1, and of half of all epsilons, the spendable float is spendable no more."""
    drawn = random.Random(3)
    for asked in (0.1, *(drawn.uniform(0.01, 50.0) for _ in range(300))):
        epsilon = spendable(asked)
        for level, charge in enumerate(prices(epsilon, 3)):
            cost = epsilon if level == 0 else spendable(faded(epsilon, level))  # as a mechanism is made with it
            assert Charge.of(cost).epsilon <= charge.epsilon
            assert charge.epsilon <= Charge.of(epsilon / 2**level).epsilon


@pytest.mark.parametrize("epsilon", [1.25, 5.0])
def test_every_level_lasts_as_long_and_tells_half_as_much(epsilon: float) -> None:
    lived = levels_of_a_life(MemoryLedger(Ceilings.of(lifetime=320.0, levels=LEVELS)), epsilon)
    chunks = int(320.0 / (2 * epsilon))
    assert lived == sorted(lived)
    assert [lived.count(level) for level in range(LEVELS)] == [chunks] * (LEVELS - 1) + [2 * chunks]
    assert sum(Fraction(faded(epsilon, level)) for level in lived) == 320


def test_without_fading_it_stops_as_before() -> None:
    assert levels_of_a_life(MemoryLedger(Ceilings.of(lifetime=100.0)), 4.8) == [0] * 20


def random_life(seed: int, decide: Callable[[MemoryLedger, Request], object]) -> tuple[int, int]:
    """What two streams are charged in all, asking in a random order, and the most that anything allowed."""
    luck = random.Random(seed)
    epsilons = {name: luck.choice((0.1, 0.7, 4.8, 11.0)) for name in "ab"}
    lifetime = luck.uniform(22.0, 90.0)
    ceilings = Ceilings.of(
        luck.randint(1, 4), luck.choice((12.0, 30.0)), luck.uniform(12.0, 60.0), lifetime=lifetime, levels=LEVELS
    )
    ledger, total, session = MemoryLedger(ceilings), 0, {"a": 1, "b": 1}
    seen = {"a": 0, "b": 0}
    for turn in range(luck.randint(50, 400)):
        stream = luck.choice("ab")
        session[stream] += luck.random() < 0.1
        request = ask(turn, epsilons[stream], stream, session[stream])
        answer = decide(ledger, request)
        if isinstance(answer, Granted):
            assert answer.spent == prices(epsilons[stream], LEVELS)[answer.level]
            assert answer.level >= seen[stream]
            seen[stream] = answer.level
            total += answer.spent.epsilon
    assert ceilings.lifetime is not None
    odometer = ledger.odometer("d")
    assert odometer is not None
    assert odometer.epsilon == total
    return total, ceilings.lifetime


def test_no_order_of_requests_passes_the_ceiling() -> None:
    near = 0
    for seed in range(60):
        total, lifetime = random_life(seed, lambda ledger, request: ledger.reserve([request], 1)[0])
        assert total <= lifetime
        near += total > 0.99 * lifetime
    assert near > 3


def test_a_level_by_what_the_stream_alone_has_spent_would_pass_the_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: two streams that each fade by their own sum tell more on a level than it has room for."""

    def highest(ledger: MemoryLedger) -> int:
        total, reached = 0, 0
        for turn in range(20):
            for stream in "ab":
                [answer] = ledger.reserve([ask(turn, 5.0, stream)], 1)
                if isinstance(answer, Granted) and answer.spent is not None:
                    total += answer.spent.epsilon
                    reached = max(reached, total if answer.level == 0 else 0)
        return reached

    ceilings = Ceilings.of(lifetime=100.0, levels=LEVELS)
    assert highest(MemoryLedger(ceilings)) == L // 2

    def own(self: Account, request: Request, ceilings: Ceilings) -> int:
        known = self._streams.get(request.key.stream)
        assert ceilings.lifetime is not None
        limits = bounds(ceilings.lifetime, ceilings.levels)
        return level_of(0 if known is None else known.meter.epsilon, request.charges, limits)

    monkeypatch.setattr(Account, "level", own)
    assert highest(MemoryLedger(ceilings)) > L // 2


def test_windows_and_sessions_withhold_and_do_not_fade() -> None:
    """A chunk that a window has no room for is withheld at the charge of its level; it is not charged less instead."""
    ledger = MemoryLedger(Ceilings.of(2, 5.0, 20.0, lifetime=40.0, levels=3))
    answers = [ledger.reserve([ask(i, 5.0)], 1)[0] for i in range(12)]
    levels = [answer.level if isinstance(answer, Granted) else answer.obstacle for answer in answers]
    assert levels == [*[0, "window"] * 4, *["session"] * 4]
    answers = [ledger.reserve([ask(i, 5.0, session=2)], 1)[0] for i in range(6)]
    assert [answer.level for answer in answers if isinstance(answer, Granted)] == [1, 1, 1, 1, 2, 2]


def test_levels_are_refused_without_a_lifetime() -> None:
    for wrong in (Ceilings.of, lambda **levels: Ceilings.of(lifetime=1.0, **levels)):
        with pytest.raises(ValueError, match="levels"):
            wrong(levels=0)
    with pytest.raises(ValueError, match="a ceiling of the lifetime"):
        Ceilings.of(levels=2)
    low, high = Ceilings.of(lifetime=1.0, levels=2), Ceilings.of(lifetime=2.0, levels=2)
    assert not low.raised_over(high)
    assert high.raised_over(low)
    assert Ceilings.of(lifetime=1.0).raised_over(high)


def most_of(chunks: int, deployment: Deployment, epsilon: float) -> Fraction:
    """The largest sum of so many consecutive slots in a life."""
    ledger = MemoryLedger(deployment.ceilings)
    spent = []
    for index in range(400):
        [answer] = ledger.reserve([ask(index, epsilon)], 1)
        spent.append(faded(epsilon, answer.level) if isinstance(answer, Granted) else 0.0)
    return max(sum((Fraction(e) for e in spent[i : i + chunks]), Fraction(0)) for i in range(len(spent)))


@pytest.mark.parametrize("epsilon", [4.8, 3.0])
def test_what_an_event_is_said_to_cost_holds_on_every_level(epsilon: float) -> None:
    """A window that lets one chunk through lets two or three of a later level: together more than the one."""
    stream = StreamSpec("features", 1, ("a",), ("1",), 2.0, 30.0)
    still = Deployment(stream, Ceilings.of(3, 9.4, lifetime=200.0))
    fading = replace(still, ceilings=replace(still.ceilings, levels=LEVELS))
    loss = Loss("chunk", Fraction(spendable(epsilon)))
    said, wrong = ({scope.unit: scope for scope in scopes_of(loss, 32, one)} for one in (fading, still))
    event, less = said["gaze event"], wrong["gaze event"]
    assert event.chunks is not None
    assert event.loss is not None
    assert less.loss is not None
    most = most_of(event.chunks, fading, epsilon)
    assert most <= event.loss.epsilon
    assert (most > less.loss.epsilon) == (epsilon == 4.8), "the control: without levels the claim is lower"
    assert (said["window"].loss, said["window"].ceiling) == (None, 9.4)


@pytest.mark.parametrize("window", [9.6, 5.0])
def test_hours_of_levels_are_those_of_a_life(window: float) -> None:
    stream = StreamSpec("features", 1, ("a",), ("1",), 2.0, 30.0)
    deployment = Deployment(stream, Ceilings.of(2, window, lifetime=200.0, levels=3))
    told = level_seconds(Loss("chunk", Fraction(5)), 64, deployment)
    ledger, slots = MemoryLedger(deployment.ceilings), [0] * 3
    for index in range(400):
        [answer] = ledger.reserve([ask(index, 5.0, levels=3)], 1)
        if isinstance(answer, Granted):
            slots[answer.level] = index
    lived = [32.0 * (b - a) for a, b in zip([-1, *slots], slots, strict=False)]
    assert told == pytest.approx(lived, abs=64.0)
