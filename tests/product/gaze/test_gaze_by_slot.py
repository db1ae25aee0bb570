"""Front ends that make one row of each slot: what holds of all of them, shipped or not."""

import math

import numpy as np
import pytest
from thirds import THIRDS

from eyestream.gaze.entry import FrontEndEntry
from eyestream.gaze.live import LiveFrontEnd, LiveRows
from eyestream.gaze.samples import Samples
from eyestream.gaze.slots import slot_rows
from eyestream.rim.files import calibrations
from eyestream.rim.files.profiles import load_profile
from eyestream.streams import StreamSpec
from eyestream_lab.kaleido_live.places import place_rows

RATE_HZ = 100.0
PROFILE = load_profile("degrees").at_rate(RATE_HZ)
SHIPPED = {
    "slots": slot_rows(calibrations.load("everyday-tile")),
    "places": place_rows(calibrations.load("kaleido-r2")),
}
ENTRIES = {**SHIPPED, "thirds": THIRDS}


@pytest.fixture(params=ENTRIES)
def entry(request: pytest.FixtureRequest) -> FrontEndEntry:
    return ENTRIES[request.param]


def gaze_at(t: np.ndarray) -> Samples:
    """Three seconds left, three right, three lost, and again."""
    x = np.choose(np.floor(t / 3.0).astype(int) % 3, [-20.0, 20.0, math.nan])
    return Samples.of(t, x, x / 4)


def uneven() -> Samples:
    """Partly lost, with a pause of some slots."""
    rng = np.random.default_rng(3)
    t = 100.0 + np.cumsum(rng.uniform(0.005, 0.03, 400)) + 3.0 * (np.arange(400) > 200)
    x, y = rng.normal(0.0, 12.0, (2, 400))
    x[rng.random(400) < 0.1] = np.nan
    return Samples.of(t, x, y)


@pytest.mark.parametrize("size", [1, 7, 50, 1000])
def test_how_samples_arrive_does_not_matter_and_a_slot_has_its_own_alone(entry: FrontEndEntry, size: int) -> None:
    def rows(of: Samples, by: int) -> np.ndarray:
        maker = entry.make(PROFILE, 60.0, 100.0)
        parts = [maker.feed(of[at : at + by]) for begin in range(0, len(of), by) for at in (begin, len(of))]
        parts.append(maker.advance(samples.t[-1] + 1.0))
        ends = np.concatenate([part.t for part in parts])
        np.testing.assert_array_equal(ends, 100.0 + entry.step_s * np.arange(1, len(ends) + 1))
        return np.concatenate([part.values for part in parts])

    samples = uneven()
    whole = rows(samples, len(samples))
    np.testing.assert_array_equal(rows(samples, size), whole)
    inside = (samples.t >= 101.0) & (samples.t < 101.0 + entry.step_s)
    number = round(1.0 / entry.step_s)
    other = rows(samples.picked(~inside), size)
    np.testing.assert_array_equal(np.delete(other, number, axis=0), np.delete(whole, number, axis=0))
    nothing = rows(samples[:0], 1)
    np.testing.assert_array_equal(other[number], nothing[number])
    assert not np.array_equal(whole[number], nothing[number], equal_nan=True)


def lived(entry: FrontEndEntry, samples: Samples) -> list[LiveRows]:
    live, rows = LiveFrontEnd(PROFILE, entry=entry), []
    for begin in range(0, len(samples), 10):
        part = samples[begin : begin + 10]
        live.take(part, np.full(len(part), float(part.t[-1])))
        rows += live.due(float(part.t[-1]))
    return [*rows, *live.finish(float(samples.t[-1]))]


def test_live_rows_are_those_of_the_recording_at_moments_that_the_eye_does_not_decide(entry: FrontEndEntry) -> None:
    samples = gaze_at(np.arange(3_001) / RATE_HZ)
    rows = lived(entry, samples)
    t, values = (np.concatenate([getattr(part, name) for part in rows]) for name in ("t", "values"))
    whole = entry.make(PROFILE, 60.0, None).feed(samples[round((float(t[0]) - entry.step_s) * RATE_HZ) :])
    np.testing.assert_array_equal(t, whole.t[: len(t)])
    np.testing.assert_array_equal(values, whole.values[: len(t)])
    other = Samples.of(samples.t, np.zeros(len(samples)), np.zeros(len(samples)))
    assert [part.t.tolist() for part in lived(entry, other)] == [part.t.tolist() for part in rows]


@pytest.mark.parametrize("seconds", [0.05, 0.95, 1.0, 2.0])
def test_seconds_of_gaze_enter_no_more_rows_than_the_guarantee_says(entry: FrontEndEntry, seconds: float) -> None:
    """Values, lost samples and their absence, anywhere; what most samples say, a part of a slot may not change."""
    least = math.ceil if entry.name in SHIPPED else math.floor
    rng, t = np.random.default_rng(11), np.arange(1_801) / RATE_HZ
    spec = StreamSpec("gaze", 1, entry.names, entry.units, entry.rate_hz, entry.window_s, entry.memory_s(PROFILE))
    base, reached = gaze_at(t), 0
    rows = np.concatenate([part.values for part in lived(entry, base)])
    for begin in rng.uniform(6.0, 15.0, 12):
        inside = (t >= begin) & (t < begin + seconds)
        turned = Samples.of(t, np.where(inside, -base.x, base.x), base.y)
        kept = base.picked(~inside) if rng.random() < 0.5 else turned
        found = np.concatenate([part.values for part in lived(entry, kept)])
        assert len(found) == len(rows)
        same = (found == rows) | (np.isnan(found) & np.isnan(rows))
        reached = max(reached, int((~same).any(axis=1).sum()))
    assert least(seconds / entry.step_s) <= reached <= spec.chunks_touched(1, seconds)
