"""A recording as if live: numbers, gaps, sizes of messages, pace."""

import asyncio
import math

import numpy as np
import pytest

from eyestream.rim.files.recordings import Recording
from eyestream.sdk import replay as replaying
from eyestream.sdk.replay import replay, row_numbers


class Tracker:
    """Stands in for a publisher: remembers what it was given."""

    def __init__(self, rate: float) -> None:
        self.rate = rate
        self.sent: list[tuple[int, int, float]] = []
        self.ended = 0

    async def send(self, rows: np.ndarray, *, seq: int) -> bool:
        self.sent.append((seq, len(rows), asyncio.get_running_loop().time()))
        return True

    async def end_session(self) -> bool:
        self.ended += 1
        return True


def recording(t: np.ndarray) -> Recording:
    return Recording(t, np.zeros((len(t), 2)), ("a", "b"))


def test_missing_rows_stay_missing_and_jitter_does_not_move_numbers() -> None:
    t = np.array([30.0, 30.52, 30.98, 33.0, 33.5])
    assert row_numbers(t, 2.0).tolist() == [0, 1, 2, 6, 7]


async def test_at_full_speed_consecutive_rows_share_messages_and_gaps_split_them() -> None:
    t = np.concatenate([np.arange(100), 200 + np.arange(10)]) / 2.0
    tracker = Tracker(2.0)
    seen: list[int] = []
    assert await replay(tracker, recording(t), speed=math.inf, progress=seen.append) == 110
    assert [(seq, m) for seq, m, _ in tracker.sent] == [(0, 64), (64, 36), (200, 10)]
    assert seen == [64, 100, 110]
    assert tracker.ended == 1


async def test_two_rows_of_one_number_are_one() -> None:
    tracker = Tracker(2.0)
    assert await replay(tracker, recording(np.array([0.0, 0.5, 0.6, 1.0])), speed=math.inf) == 3
    assert [(seq, m) for seq, m, _ in tracker.sent] == [(0, 3)]


async def test_rows_come_at_their_times() -> None:
    """Never before its time; how long after it, the machine decides."""
    tracker = Tracker(2.0)
    began = asyncio.get_running_loop().time()
    await replay(tracker, recording(np.arange(5) / 2.0), speed=10.0)
    rows = [(seq + i, at) for seq, m, at in tracker.sent for i in range(m)]
    assert [seq for seq, _ in rows] == list(range(5))
    late = np.array([at - began for _, at in rows]) - np.arange(5) / 20
    assert np.all(late > -0.005)
    assert np.all(late < 5)


async def test_a_wide_row_still_fits_a_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replaying, "rows_per_message", lambda features: 7)
    tracker = Tracker(2.0)
    await replay(tracker, recording(np.arange(10) / 2.0), speed=math.inf)
    assert [m for _, m, _ in tracker.sent] == [7, 3]
