"""Trackers whose clocks step, drift, double, halve or stop: rows stay true or are lost, and nothing comes twice."""

import dataclasses
import itertools

import numpy as np
import pytest
from numpy.typing import NDArray

from eyestream.core.chunking.chunks import DueChunk
from eyestream.core.chunking.device import Device
from eyestream.core.chunking.settings import DeviceSettings
from eyestream.gaze.clock_map import PERIOD_S
from eyestream.gaze.features import NAMES
from eyestream.gaze.front_end import FrontEnd
from eyestream.gaze.live import DELAY_S, LiveFrontEnd, LiveRows
from eyestream.gaze.samples import Samples
from eyestream.wire.raw import RawRows
from tests.rigs.gaze_people import gaze, profile

RATE_HZ = 60.0
Array = NDArray[np.float64]


@dataclasses.dataclass
class Life:
    """What came of gaze: (moment, rows), what of it was believed by the session's map, and each session's first one."""

    made: list[tuple[float, LiveRows]]
    believed: list[NDArray[np.bool_]]
    first: list[int]

    def sessions(self) -> list[tuple[list[float], list[LiveRows]]]:
        """Moments and rows of each, without its end."""
        own = [[(now, r) for now, r in self.made if r.session == s and not r.end] for s in range(len(self.first))]
        return [([now for now, _ in rows], [row for _, row in rows]) for rows in own]


def live_of(samples: Samples, arrived: Array, rate_hz: float = RATE_HZ, pulse_s: float = 0.25) -> Life:
    """Lived in portions, as a sidecar does."""
    live, life, begin, now = LiveFrontEnd(profile(rate_hz)), Life([], [], []), 0, 0.0
    while now < arrived[-1] + 2.0:
        now = round(now + pulse_s, 6)
        end = int(np.searchsorted(arrived, now, side="right"))
        live.take(samples[begin:end], arrived[begin:end])
        life.made += [(now, rows) for rows in live.due(now)]
        if life.made and life.made[-1][1].session == len(life.first):
            (first,) = np.flatnonzero((samples.t == live._origin) & (arrived == live._began)).tolist()[:1]
            life.first.append(first)
            with np.errstate(invalid="ignore"):
                late = arrived - samples.t - (arrived[first] - samples.t[first])
            life.believed.append(np.abs(late) < DELAY_S - 2e-6)
        begin = max(begin, end)
    return life


def recorded(samples: Samples, life: Life, session: int, until: float) -> dict[float, Array]:
    """The rows, by their time, of a session's believed samples as a recording, which drops times that go backward."""
    last = life.first[session + 1] if session + 1 < len(life.first) else len(samples)
    which = np.arange(life.first[session], last)
    front = FrontEnd(profile(RATE_HZ))
    made, last_s = (
        [front.feed(samples.picked(which[life.believed[session][which]]))],
        float(samples.t[life.first[session]]),
    )
    while last_s < until:
        last_s += 20.0
        made.append(front.advance(last_s))
    return {float(t): values for rows in made for t, values in zip(rows.t, rows.values, strict=True)}


def check(samples: Samples, life: Life) -> None:
    """Each row has its number, its moment, and the values of the recording."""
    for session, (moments, rows) in enumerate(life.sessions()):
        assert [row.number for row in rows] == list(range(len(rows)))
        np.testing.assert_allclose(np.diff(moments), 0.5, atol=0.2501)
        wanted = recorded(samples, life, session, float(rows[-1].t[0]))
        for row in rows:
            np.testing.assert_array_equal(row.values[0], wanted[float(row.t[0])])


def lost(rows: list[LiveRows]) -> NDArray[np.bool_]:
    return np.array([np.isnan(row.values).all() for row in rows])


def person(seconds: float, rate_hz: float = RATE_HZ) -> tuple[Samples, Array]:
    samples, _ = gaze(rate_hz, seconds, 3, start_s=5.0)
    rng = np.random.default_rng(3)
    return samples, np.maximum.accumulate(samples.t + 0.004 + rng.exponential(0.003, len(samples)))


@pytest.mark.parametrize("step_s", [-0.7, -0.2, -0.004, 0.004, 0.2, 0.7])
def test_a_small_step_gives_the_rows_of_the_recording(step_s: float) -> None:
    samples, arrived = person(110.0)
    samples = dataclasses.replace(samples, t=np.where(samples.t > 60.0, samples.t + step_s, samples.t))
    life = live_of(samples, arrived)
    check(samples, life)
    ((_, rows),) = life.sessions()
    assert len(rows) > 140
    assert not lost(rows).any()


@pytest.mark.parametrize("ahead_s", [0.0, 0.9])
@pytest.mark.parametrize("step_s", [-7200.0, -30.0, 2.0, 7200.0])
def test_a_step_ends_the_session_and_none_of_its_rows_has_both_clocks(step_s: float, ahead_s: float) -> None:
    samples, arrived = person(130.0)
    t = np.where(samples.t > 60.0, samples.t + step_s, samples.t + ahead_s * (samples.t > 40.0))
    samples = dataclasses.replace(samples, t=t)
    life = live_of(samples, arrived)
    check(samples, life)
    seldom = live_of(samples, arrived, pulse_s=3.0).made[: len(life.made)]  # asked seldom: the same rows
    for (_, row), (_, other) in zip(seldom, life.made, strict=True):
        assert (row.session, row.number, row.end) == (other.session, other.number, other.end)
        np.testing.assert_array_equal(row.values, other.values)
    (_, before), (_, after) = life.sessions()
    assert [rows.end for _, rows in life.made].count(True) == 1
    assert not lost(after).any()
    assert before[-1].t[0] < 60.0 + 2 * PERIOD_S
    assert not lost(before)[[row.t[0] < 60.0 for row in before]].any()
    assert 60.0 + step_s < after[0].t[0] - 30.0 < 60.1 + step_s + 2 * PERIOD_S
    assert len(after) > 50


@pytest.mark.parametrize("pace", [2.0, 0.5, 0.0, -1.0])
def test_a_clock_that_runs_unevenly_for_a_while(pace: float) -> None:
    samples, arrived = person(150.0)
    strange = np.clip(samples.t - 50.0, 0.0, 25.0)
    samples = dataclasses.replace(samples, t=samples.t + (pace - 1.0) * strange)
    life = live_of(samples, arrived)
    check(samples, life)
    (moments, before), (_, after) = life.sessions()
    assert not lost(before)[np.array(moments) < 50.0].any()
    assert lost(before)[np.array(moments) > 70.0].all()
    assert len(after) > 60
    assert not lost(after).any()


def test_two_samples_of_each_time_are_one() -> None:
    samples, arrived = person(60.0)
    twice = samples.picked(np.repeat(np.arange(len(samples)), 2))
    twice = dataclasses.replace(twice, x=twice.x + np.arange(len(twice)) % 2)
    one, two = live_of(samples, arrived), live_of(twice, arrived.repeat(2))
    assert len(one.made) == len(two.made) > 40
    for (now, row), (later, other) in zip(one.made, two.made, strict=True):
        assert now == later
        np.testing.assert_array_equal(row.values, other.values)


def test_times_that_are_none_are_as_if_they_had_not_come() -> None:
    samples, arrived = person(60.0)
    rng = np.random.default_rng(5)
    kept = rng.random(len(samples)) > 0.1
    none = dataclasses.replace(samples, t=np.where(kept, samples.t, rng.choice([np.nan, np.inf, 0.0], len(samples))))
    one, two = live_of(samples.picked(kept), arrived[kept]), live_of(none, arrived)
    assert len(one.made) == len(two.made) > 40
    for (_, row), (_, other) in zip(one.made, two.made, strict=True):
        np.testing.assert_array_equal(row.values, other.values)


@pytest.mark.long
@pytest.mark.parametrize("ppm", [pytest.param(-100.0, marks=pytest.mark.slow), 100.0])
def test_two_hours_of_a_clock_that_is_100_ppm_off_are_one_session_without_a_loss(ppm: float) -> None:
    samples, arrived = person(2.1 * 3600.0)
    samples = dataclasses.replace(samples, t=samples.t * (1.0 + 1e-6 * ppm))
    life = live_of(samples, arrived, pulse_s=0.5)
    ((_, rows),) = life.sessions()
    assert len(rows) > 2 * 7400
    assert not lost(rows).any()
    check(samples, life)


@pytest.mark.long
@pytest.mark.parametrize("way", [-1.0, pytest.param(1.0, marks=pytest.mark.slow)])
def test_a_latency_that_drifts_by_a_second_an_hour_is_followed_by_another_session(way: float) -> None:
    samples, arrived = person(1.3 * 3600.0)
    rng = np.random.default_rng(6)
    arrived = samples.t + 1.5 + way * samples.t / 3600.0 + rng.exponential(0.005, len(samples))
    life = live_of(samples, np.maximum.accumulate(arrived), pulse_s=0.5)
    check(samples, life)
    (_, before), (_, after) = life.sessions()
    assert 3400 < before[-1].t[0] - 30.0 < 3800
    assert lost(before).sum() < 120  # jitter keeps some samples in time for half a minute more
    assert not lost(after).any()
    assert len(before) + len(after) > 2 * (1.3 * 3600 - 100)


@pytest.mark.parametrize("kind", ["step", "double", "stop", "back and forth", "silent"])
def test_nothing_is_released_twice(kind: str) -> None:
    """Rows as the sidecar numbers them, through chunks: each row in at most one, in order."""
    samples, arrived = person(300.0)
    t, kept = samples.t.copy(), np.ones(len(samples), dtype=bool)
    for begin in (50.0, 120.0, 190.0):
        later, while_ = samples.t > begin, np.clip(samples.t - begin, 0.0, 20.0)
        t += {"step": -300.0 * later, "double": while_, "stop": -while_}.get(kind, 0.0)
        if kind == "back and forth":
            t += np.where(later & (samples.t < begin + 30.0), -100.0, 0.0)
        kept &= ~(later & (samples.t < begin + 66.0)) if kind == "silent" and begin < 150.0 else True
    life = live_of(dataclasses.replace(samples, t=t).picked(kept), arrived[kept])
    device = Device(DeviceSettings("d", "s", 1, NAMES, 2.0, 16, 1.0, 60.0, 16))
    due: list[DueChunk] = []
    for now, rows in life.made:
        due += device.feed(RawRows(1 + rows.session, rows.number, rows.values, rows.end, rows.t), now)
    due += device.close(320.0)
    spans = [(chunk.span.session, chunk.span.first_row, chunk.span.last_row) for chunk in due]
    assert len(spans) > 12
    assert all(a[0] < b[0] or (a[0] == b[0] and a[2] < b[1]) for a, b in itertools.pairwise(spans))
    assert device.counters.accepted == sum(not rows.end for _, rows in life.made)
    assert len(life.first) > 1
