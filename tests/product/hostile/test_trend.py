"""The judge of slow growth: it finds a small leak in an hour, and knows when it has seen too little."""

import gc
import random

import pytest

from tests.rigs.footprint import heap_bytes, rss_bytes
from tests.rigs.trend import trend

MB = 1e6


def hour(leak: float, *, seconds: float = 3600, seed: int = 1) -> list[tuple[float, float]]:
    """A heap: it settles in two minutes, is noisy, was once read wrong and once stepped up by 200 kB."""
    draw = random.Random(seed)

    def at(t: float) -> float:
        settled = 3 * MB * min(t / 120, 1)
        stray = 40 * MB if 2500 < t < 2515 else 0.0
        return 60 * MB + settled + leak * t / 3600 + draw.gauss(0, 0.05 * MB) + stray + 0.2 * MB * (t > 3100)

    return [(t, at(t)) for t in range(0, int(seconds), 10)]


@pytest.mark.parametrize("seed", range(5))
def test_an_hour_tells_a_leak_of_one_megabyte_from_none(seed: int) -> None:
    assert trend(hour(0.0, seed=seed), 0.1 * MB).verdict(1 * MB) == "below"
    assert trend(hour(2.0 * MB, seed=seed), 0.1 * MB).verdict(1 * MB) == "above"
    assert trend(hour(1.0 * MB, seed=seed), 0.1 * MB).verdict(1 * MB) != "below"


@pytest.mark.parametrize("leak", [0.0, 2 * MB])
def test_a_minute_or_nothing_is_too_short(leak: float) -> None:
    for seconds in (0, 60, 240):
        seen = trend(hour(leak, seconds=seconds), 0.1 * MB)
        assert seen.verdict(1 * MB) == "undecided"
        assert seen.low < leak < seen.high


def test_four_minutes_are_long_enough_for_a_large_leak() -> None:
    samples = [(t, 60 * MB + t * MB + random.Random(t).gauss(0, 0.05 * MB)) for t in range(240)]
    seen = trend(samples, 0.1 * MB)
    assert seen.verdict(60 * MB) == "above"
    assert seen.middle == pytest.approx(3600 * MB, rel=0.05)


def test_what_is_held_is_measured_to_the_byte_where_pages_hide_it() -> None:
    kept = [bytes(200 + i % 7) for i in range(20_000)]  # make room in the heap, then free it
    del kept
    gc.collect()
    heap, rss = heap_bytes(), rss_bytes()
    kept = [bytes(300) for _ in range(2_000)]
    large = bytearray(3_000_000)
    grown = heap_bytes() - heap
    assert 3_000_000 + 2_000 * 300 < grown < 3_000_000 + 2_000 * 400
    assert rss_bytes() - rss < 4 * MB
    del kept, large
    assert abs(heap_bytes() - heap) < 100_000
