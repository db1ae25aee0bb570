"""For how long a ceiling lasts, in hours, is what an account allows."""

from dataclasses import replace
from fractions import Fraction

import pytest

from eyestream.core.accountant import Account
from eyestream.core.charge import Ceilings, Charge, spendable
from eyestream.core.kinds import Loss
from eyestream.core.reservation import Request
from eyestream.core.scopes import Deployment, SiblingStream, duration, lasting_s
from eyestream.streams import StreamKey, StreamSpec

STREAM = StreamSpec("features", 1, ("a",), ("1",), 2.0, 30.0)
CHUNK_S = 32.0


def seconds_of_a_life(epsilon: float, window: int, window_epsilon: float, session_epsilon: float) -> float:
    """Until the last chunk that a session is granted, when rows come without a pause."""
    account, ceilings = Account(), Ceilings.of(window, window_epsilon, session_epsilon)
    last = slot = 0
    while slot < last + 3 * window:
        first = 64 * slot
        request = Request(StreamKey("d", "features"), 1, first, first + 63, 64, Charge.of(epsilon))
        granted = account.obstacle(request, ceilings, 1) is None
        announced = account.announcement(request, ceilings, Ceilings(), granted=granted)
        if announced is not None:
            account.announce("features", announced)
        account.take("features", 1, first + 63, day=1, epsilon=request.charge.epsilon if granted else 0)
        slot += 1
        last = slot if granted else last
    return last * CHUNK_S


@pytest.mark.parametrize(
    ("epsilon", "window", "window_epsilon", "session_epsilon"),
    [(4.8, 2, 9.6, 1152.0), (4.8, 2, 4.8, 48.0), (0.1, 3, 0.2, 1.0), (0.3, 1, 0.3, 0.9)],
)
def test_it_is_that_of_a_life(epsilon: float, window: int, window_epsilon: float, session_epsilon: float) -> None:
    loss = Loss("chunk", Fraction(spendable(epsilon)))
    deployment = Deployment(STREAM, Ceilings.of(window, window_epsilon, session_epsilon))
    seconds = lasting_s(deployment.ceilings.on("session"), loss, 64, deployment)
    lived = seconds_of_a_life(float(loss.epsilon), window, window_epsilon, session_epsilon)
    assert seconds is not None
    assert lived <= seconds < lived + window * CHUNK_S


def test_streams_share_it_and_a_ceiling_on_delta_may_end_it_sooner() -> None:
    loss = Loss("chunk", Fraction(2), Fraction(1, 1024))
    alone = Deployment(STREAM, Ceilings.of(1, 100.0, 20.0, 20.0, day_delta=4 / 1024))
    assert lasting_s(alone.ceilings.on("session"), loss, 64, alone) == 10 * CHUNK_S
    assert lasting_s(alone.ceilings.on("day"), loss, 64, alone) == 4 * CHUNK_S
    assert lasting_s((None, None), loss, 64, alone) is None
    both = replace(alone, beside=(SiblingStream(STREAM, 32, Loss("chunk", Fraction(1))),))
    assert lasting_s(both.ceilings.on("session"), loss, 64, both) == pytest.approx(20.0 / (2 / CHUNK_S + 1 / 16))


def test_words() -> None:
    told = [duration(seconds) for seconds in (45.0, 600.0, 7680.0, 7679.9999999, 86_400.0 * 3)]
    assert told == ["45 s", "10 min", "2 h 08 min", "2 h 08 min", "3 days"]
