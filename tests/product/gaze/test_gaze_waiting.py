"""Samples that wait: in order, bounded, and judged by those of nearly their own time alone."""

import numpy as np
import pytest
from numpy.typing import NDArray

from eyestream.gaze.features import STEP_S
from eyestream.gaze.live import Waiting
from eyestream.gaze.profile import TICKS_PER_S
from eyestream.gaze.samples import Samples
from tests.rigs.gaze_people import profile

Array = NDArray[np.float64]


def samples(t: Array) -> Samples:
    """Each known by its y."""
    return Samples.of(t, np.zeros(len(t)), np.arange(float(len(t))))


def messy(rng: np.random.Generator, rate_hz: float, seconds: float) -> Array:
    """Times in the order of arrival: regular ones with jitter, some late, some twice, a burst, a step back."""
    t = np.sort(np.arange(seconds * rate_hz) + rng.normal(0.0, 0.2, int(seconds * rate_hz))) / rate_hz
    t = np.where(t > 0.6 * seconds, t - rng.choice([0.0, 0.05, 0.4]), t)
    t = np.concatenate((t, rng.choice(t, len(t) // 20), rng.uniform(1.0, 1.3, rng.choice([0, 500]))))
    sent = t + rng.exponential(rng.choice([1e-4, 0.02]), len(t)) * (rng.random(len(t)) < 0.1)
    return t[np.argsort(sent, kind="stable")]


def kept(t: Array, rate_hz: float) -> list[int]:
    """By the definition, one by one: the first in its place, and none of a place soon after it came before."""
    made = profile(rate_hz)
    places = int(np.ceil(4 * rate_hz))
    tick = np.rint(t * TICKS_PER_S).astype(np.int64).tolist()
    first: dict[int, int] = {}
    for index, one in enumerate(tick):
        first.setdefault(-(-one * places // 500_000), index)
    firsts = sorted(first.values(), key=lambda index: tick[index])
    return [
        index
        for index in firsts
        if not any(0 < tick[other] - tick[index] <= made.overtaken_ticks and other < index for other in firsts)
    ]


@pytest.mark.parametrize("rate_hz", [30.0, 60.0, 250.0])
def test_what_is_kept_is_what_the_definition_says_however_it_is_handed_over(rate_hz: float) -> None:
    rng = np.random.default_rng(1)
    for _ in range(6):
        t = messy(rng, rate_hz, 3.0)
        wanted = kept(t, rate_hz)
        assert len(wanted) < len(t)
        for _ in range(3):
            waiting, found, begin = Waiting(profile(rate_hz), STEP_S), [], 0
            while begin < len(t):
                end = begin + int(rng.choice([1, 1, 7, 60]))
                waiting.put(samples(t)[begin:end])
                begin = end
                complete = float(t[begin:].min()) if begin < len(t) else 5.0  # nothing that comes later is earlier
                found += waiting.until(complete - rng.choice([1e-6, rng.uniform(0.0, 0.1)])).y.tolist()
            found += waiting.until(5.0).y.tolist()
            assert found == wanted
            assert waiting.crowded + waiting.overtaken == len(t) - len(wanted)


def test_regular_samples_are_all_kept_and_in_time() -> None:
    waiting = Waiting(profile(200.0), STEP_S)
    t = np.arange(400) / 200.0
    waiting.put(samples(t))
    assert waiting.until(0.5).t.tolist() == t[:101].tolist()  # that of the very end too
    assert waiting.until(1.0).t.tolist() == t[101:201].tolist()
    assert waiting.until(-3.0).t.tolist() == []
    assert len(waiting) == 199


def test_a_step_back_shows_nothing_a_second_time() -> None:
    """As the front end of a recording, which drops times that go backward."""
    t = np.concatenate((np.arange(300) / 200.0, 1.0 + np.arange(300) / 200.0 + 0.0019))
    waiting = Waiting(profile(200.0), STEP_S)
    waiting.put(samples(t))
    taken = waiting.until(9.0)
    assert taken.y.tolist() == [*range(300), *(i for i in range(300, 600) if t[i] > t[299])]
    assert waiting.overtaken == 99


def test_a_flood_drops_its_own_samples_and_is_bounded() -> None:
    rate_hz = 200.0
    t = np.arange(600) / rate_hz
    flood = np.linspace(1.0, 1.1, 100_000)
    order = np.argsort(np.concatenate((t, flood)), kind="stable")
    waiting = Waiting(profile(rate_hz), STEP_S)
    waiting.put(samples(np.concatenate((t, flood))[order]))
    assert len(waiting) <= len(t) + 8 * rate_hz * 0.1 + 2
    taken = waiting.until(9.0)
    outside = (t < 1.0 - 1 / (8 * rate_hz)) | (t > 1.1 + 1 / (8 * rate_hz))
    assert np.isin(t[outside], taken.t).all()
