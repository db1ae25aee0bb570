"""Two streams of one device, interleaved in many ways: the ceilings of the device hold at every prefix.

The lives are short and many; `tests.rigs.budget_lives` has long ones with restarts and changes.
"""

import random
from collections import defaultdict

import pytest

from eyestream.core.accountant import Account
from eyestream.core.charge import Ceilings, Charge
from eyestream.core.meter import Meter
from eyestream.core.reservation import Request
from eyestream.streams import StreamKey
from tests.rigs.memory_ledger import decide

KEYS = (StreamKey("d", "features"), StreamKey("d", "gaze"))
CHUNKS = (32, 8)
SLOTS = 8


class Sums:
    """One amount of one sequence of slots, added up again at every slot."""

    def __init__(self) -> None:
        self.costs: list[int] = []
        self.days: defaultdict[int, int] = defaultdict(int)
        self.sessions: dict[int, tuple[int, int]] = {}

    def add(self, stream: int, session: int, day: int, cost: int) -> None:
        self.costs.append(cost)
        self.days[day] += cost
        current, before = self.sessions.get(stream, (session, 0))
        self.sessions[stream] = (session, cost + (before if current == session else 0))

    def passed(self, window: int, most: tuple[int | None, ...], day: int) -> bool:
        spent = (
            sum(self.costs[-window:]) if window else 0,
            sum(cost for _, cost in self.sessions.values()),
            self.days[day],
            sum(self.costs),
        )
        return any(ceiling is not None and now > ceiling for now, ceiling in zip(spent, most, strict=True))


def ceilings_of(random_: random.Random, least: int) -> Ceilings:
    """Each ceiling may be missing; tight ones are frequent."""
    window = random_.randint(0, 4)
    most = [None if random_.random() < 0.4 else random_.randint(least, least * high) for high in (2, 4, 4, 6) * 2]
    if not window:
        most[0] = most[4] = None
    return Ceilings(window, *most[:4], *most[4:])


def live(random_: random.Random) -> int:
    """One random interleaving; how many prefixes have a sum above its ceiling."""
    account, device = Account(), ceilings_of(random_, 4)
    own = [ceilings_of(random_, 3) if random_.random() < 0.5 else Ceilings() for _ in KEYS]
    books = [(device, Sums(), Sums()), *((ceilings, Sums(), Sums()) for ceilings in own)]
    at, day, wrong = [[1, 0], [1, 0]], 3, 0
    for _ in range(SLOTS):
        stream = random_.randrange(2)
        event = random_.random()
        if event < 0.1:
            at[stream] = [at[stream][0] + 1, 0]
        elif event < 0.2:
            day += random_.choice((-1, 1))
        (session, row), n = at[stream], CHUNKS[stream]
        charge = Charge(random_.randint(1, 4), random_.randint(0, 3))
        booked = account.day_of(day)
        released = not decide(
            account, Request(KEYS[stream], session, row, row + n - 1, n, charge), device, day, own[stream]
        )
        at[stream][1] += n
        for ceilings, epsilon, delta in (books[0], books[1 + stream]):
            c = ceilings
            epsilon.add(stream, session, booked, charge.epsilon * released)
            delta.add(stream, session, booked, charge.delta * released)
            if released:
                wrong += epsilon.passed(c.window_chunks, (c.window, c.session, c.day, c.lifetime), booked)
                deltas = (c.window_delta, c.session_delta, c.day_delta, c.lifetime_delta)
                wrong += delta.passed(c.window_chunks, deltas, booked)
    return wrong


@pytest.mark.long
def test_no_prefix_passes_a_ceiling():
    random_ = random.Random(25)
    assert sum(live(random_) for _ in range(20_000)) == 0


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_no_prefix_of_a_million_lives_passes_a_ceiling():
    random_ = random.Random(26)
    assert sum(live(random_) for _ in range(1_000_000)) == 0


def test_a_stream_that_spends_beside_the_device_would_be_seen(monkeypatch):
    """Budgets of (device, stream), as they were: the second stream doubles a person's loss unseen."""
    take = Meter.take
    monkeypatch.setattr(
        Meter, "take", lambda self, day, e, d, last: take(self, day, e if self.released % 2 else 0, d, last)
    )
    random_ = random.Random(25)
    assert sum(live(random_) for _ in range(300)) > 0


def test_epsilon_alone_is_not_enough(monkeypatch):
    obstacle = Meter.obstacle
    monkeypatch.setattr(
        Meter,
        "obstacle",
        lambda self, ceilings, charge, session, day: obstacle(self, ceilings, Charge(charge.epsilon), session, day),
    )
    random_ = random.Random(25)
    assert sum(live(random_) for _ in range(300)) > 0


def test_the_lives_release_and_withhold():
    """Neither everything nor nothing: else the ceilings would not be tried."""
    counts = [0, 0]
    random_ = random.Random(25)
    for _ in range(200):
        account, ceilings = Account(), ceilings_of(random_, 4)
        for index in range(SLOTS):
            request = Request(KEYS[index % 2], 1, index, index, 1, Charge(random_.randint(1, 4), 1))
            counts[decide(account, request, ceilings, 0) is None] += 1
    assert min(counts) > 200
