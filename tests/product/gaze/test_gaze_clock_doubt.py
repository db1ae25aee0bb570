"""A clock that cannot be one tracker's in seconds is named within ten seconds, and usual clocks are not."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from eyestream.gaze.clock_doubt import CLOCK_DOUBTS, LOOK_S, ClockDoubts
from eyestream.gaze.doubt import GAZE_DOUBTS, GazeDoubts
from eyestream.gaze.intake import take_in
from eyestream.rim.files.gaze_columns import GazeColumns
from eyestream.rim.files.profiles import load_profile
from eyestream.rim.sources.gaze import GazeFeeder

RATE_HZ = 90.0
Times = NDArray[np.float64]


def came(seconds: float = LOOK_S) -> Times:
    return np.arange(0.0, seconds, 1.0 / RATE_HZ)


def judged(t: Times, arrived: Times, pieces: int) -> str | None:
    doubts = ClockDoubts(RATE_HZ)
    for part in np.array_split(np.arange(len(t)), pieces):
        doubts.take(t[part], arrived[part])
    return doubts.judge(LOOK_S)


WRONG: list[tuple[str, Callable[[Times], Times], str]] = [
    ("milliseconds", lambda t: 1e6 + 1e3 * t, "clock_ms"),
    ("whole milliseconds", lambda t: np.round(1e3 * t), "clock_ms"),
    ("microseconds", lambda t: 1e6 * t, "clock_us"),
    ("nanoseconds", lambda t: 1e9 * t, "clock_ns"),
    ("stands still", np.zeros_like, "clock_still"),
    ("not numbers", lambda t: np.full_like(t, np.nan), "clock_nan"),
    ("doubled", lambda t: 2.0 * t, "clock_pace"),
    ("frames", lambda t: t * RATE_HZ, "clock_pace"),
    ("set ahead", lambda t: t + 100.0 * (t > 4.0), "clock_jumps"),
    ("set back", lambda t: t - 100.0 * (t > 4.0), "clock_jumps"),
]


@pytest.mark.parametrize(("clock", "word"), [case[1:] for case in WRONG], ids=[case[0] for case in WRONG])
@pytest.mark.parametrize("pieces", [1, 300])
def test_a_wrong_clock_is_named(clock: Callable[[Times], Times], word: str, pieces: int) -> None:
    assert judged(clock(came()), came(), pieces) == word
    assert word in CLOCK_DOUBTS


@pytest.mark.parametrize("offset_s", [0.0, 5000.0], ids=["one clock", "two clocks"])
@pytest.mark.parametrize("message", [1, 9])
def test_two_senders_are_named(offset_s: float, message: int) -> None:
    one, arrived = came(), []
    t = []
    for a in range(0, len(one) - message, message):
        part = one[a : a + message]
        t += [part, part + 0.003 + offset_s]
        arrived += [np.full(message, part[-1]), np.full(message, part[-1] + 0.003)]
    assert judged(np.concatenate(t), np.concatenate(arrived), 40) == "two"


def jittered(t: Times) -> Times:
    return t + np.random.default_rng(1).normal(0.0, 0.002, len(t))


@pytest.mark.parametrize(
    ("t", "arrived"),
    [
        (came(), came()),
        (1.7e9 + came(), came()),
        (jittered(came()), came()),
        (came(), np.floor(came() * 20.0) / 20.0),
        (came(), np.where((came() > 1.0) & (came() < 5.0), 5.0, came())),
        (came()[(came() < 2.0) | (came() > 5.0)], came()[(came() < 2.0) | (came() > 5.0)]),
        (1.0001 * came(), came()),
        (came(0.1), came(0.1)),
    ],
    ids=["plain", "since 1970", "jitter", "portions", "held back", "a gap", "drift", "few"],
)
@pytest.mark.parametrize("pieces", [1, 300])
def test_a_usual_clock_is_not_named(t: Times, arrived: Times, pieces: int) -> None:
    assert judged(t, arrived, pieces) is None


@pytest.mark.parametrize(("factor", "word"), [(1e-3, "pupil_m"), (20.0, "pupil"), (1.0, None)])
def test_pupils_in_another_unit_are_named(factor: float, word: str | None) -> None:
    profile, rng = load_profile("mqtt").at_rate(RATE_HZ), np.random.default_rng(2)
    t, doubts = came(), GazeDoubts(profile)
    points = np.cumsum(rng.normal(0.0, 0.3, (len(t), 2)), axis=0)
    pupil = factor * (3.5 + 0.1 * rng.normal(size=len(t)))
    pupil[::50] = 0.0
    doubts.take(points, None, take_in(profile, t, points, pupil=pupil), pupil)
    assert doubts.judge(LOOK_S) == word
    assert word is None or word in GAZE_DOUBTS


@pytest.mark.parametrize(("factor", "word"), [(1e3, "clock_ms"), (1.0, None)])
def test_a_source_names_its_clock_within_ten_seconds(
    factor: float, word: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    feeder, now = GazeFeeder(None, load_profile("mqtt").at_rate(RATE_HZ)), [0.0]  # type: ignore[arg-type]
    monkeypatch.setattr(GazeFeeder, "_now", lambda self: now[0])
    points = np.cumsum(np.random.default_rng(3).normal(0.0, 0.3, (1100, 2)), axis=0)
    for step in range(10 * 11):
        now[0] = step / 10.0
        t = now[0] + np.arange(9) / RATE_HZ
        feeder.take(GazeColumns(factor * t, points[9 * step : 9 * step + 9]))
        feeder._work()
        assert feeder.doubt == (word if now[0] >= LOOK_S else None)
    assert (feeder.untimed > 0.9 * feeder.heard) == (word is not None)
