"""Slots by the clock: how samples arrive does not matter, and bad times make no slot more."""

import numpy as np
import pytest

from eyestream.core.tiles import Field
from eyestream.gaze.samples import Samples
from eyestream.gaze.slots import Slots

FIELD = Field(columns=6, rows=4, cell_deg=10.0)
SLOT_US = 700_000


def gaze(n: int = 400, seed: int = 3) -> Samples:
    """At uneven times, partly lost, with a pause of some slots."""
    rng = np.random.default_rng(seed)
    t = 100.0 + np.cumsum(rng.uniform(0.005, 0.03, n)) + 3.0 * (np.arange(n) > n // 2)
    x, y = rng.normal(0, 15, (2, n))
    x[rng.random(n) < 0.1] = np.nan
    return Samples.of(t, x, y)


def whole() -> tuple[Samples, np.ndarray]:
    samples = gaze()
    return samples, Slots(FIELD, SLOT_US).advance(samples.t[-1] + 1.0, samples).values


def test_every_sample_is_counted_in_the_slot_of_its_own_time() -> None:
    samples, slots = whole()
    own = ((samples.t - samples.t[0]) / 0.7).astype(int)
    np.testing.assert_array_equal(slots.sum(axis=1), np.bincount(own, minlength=len(slots)))
    assert (slots.sum(axis=1) == 0).any()
    np.testing.assert_array_equal(slots[:, -1], np.bincount(own, ~samples.valid, minlength=len(slots)))


def test_bad_times_are_dropped_and_make_no_slot() -> None:
    samples, expected = whole()
    bad = Samples.of([np.nan, np.inf, 99.0, samples.t[9], 1e9], [1.0] * 5, [1.0] * 5)
    slots = Slots(FIELD, SLOT_US)
    parts = [slots.feed(part).values for part in (samples[:10], bad, samples[10:])]
    parts.append(slots.advance(samples.t[-1] + 1.0).values)
    np.testing.assert_array_equal(np.concatenate(parts), expected)
    counters = slots.counters
    assert (counters.no_time, counters.late, counters.jumped) == (2, 2, 1)


def test_a_sample_of_a_slot_that_is_over_is_dropped() -> None:
    slots = Slots(FIELD, SLOT_US, origin_s=0.0)
    assert slots.advance(0.7).values.sum() == 0
    assert len(slots.feed(Samples.of([0.6], [0.0], [0.0]))) == 0
    assert slots.advance(1.4).values[0].sum() == 0
    assert slots.counters.late == 1


def test_the_clock_makes_slots_without_samples_and_never_goes_back() -> None:
    slots = Slots(FIELD, SLOT_US, origin_s=0.0)
    assert slots.advance(7.0).t[9] == pytest.approx(7.0)
    assert slots.done == 10
    assert len(slots.advance(3.0)) == 0
    assert len(slots.advance(np.nan)) == 0
