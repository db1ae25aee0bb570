"""Whether worlds are told apart by times: planted differences are found, and where there are none, none."""

import numpy as np
import pytest

from tests.rigs.two_worlds import FALSE_ALARM, compare, interval_of_share, median_difference

COMPARISONS = 30


def world(rng: np.random.Generator, count: int, later_us: float = 0.0, wider: float = 1.0) -> list[dict[str, float]]:
    """Times as a loopback gives them: some tens of microseconds around a median, and now and then a pause."""
    grid = 150.0 + wider * rng.gamma(4.0, 15.0, count) + (rng.random(count) < 0.02) * rng.exponential(3000.0, count)
    beside = 80.0 + rng.gamma(4.0, 8.0, count)
    return [{"moment": a + later_us, "budget": b} for a, b in zip(grid, beside, strict=True)]


@pytest.mark.parametrize("later_us", [50.0, 100.0, -500.0])
def test_a_planted_difference_is_found(later_us: float) -> None:
    rng = np.random.default_rng(1)
    found = compare(world(rng, 200), world(rng, 200, later_us), rng, COMPARISONS)
    assert found.apart
    assert found.difference["moment"].low < later_us < found.difference["moment"].high
    assert found.told.low > 0.6
    assert found.votes is not None
    assert found.votes.estimate > found.told.estimate
    assert found.smallest["moment"] < 50.0


def test_a_difference_of_the_spread_alone_is_found() -> None:
    rng = np.random.default_rng(2)
    still = [one | {"moment": 300.0 + (one["moment"] - 210.0) * 4.0} for one in world(rng, 400)]
    usual = [one | {"moment": 300.0 + (one["moment"] - 210.0)} for one in world(rng, 400)]
    found = compare(usual, still, rng, COMPARISONS)
    assert found.apart
    assert found.told.low > 0.55


def test_where_there_is_no_difference_an_alarm_is_as_rare_as_stated() -> None:
    """300 comparisons, as ten runs of 30: one alarm in a run of a hundred is allowed."""
    rng = np.random.default_rng(3)
    found = [compare(world(rng, 120), world(rng, 120), rng, COMPARISONS) for _ in range(300)]
    assert sum(one.apart for one in found) == 0
    assert np.mean([one.chance < 0.05 for one in found]) < 0.09
    assert np.mean([one.told.low <= 0.5 <= one.told.high for one in found]) > 0.9
    assert np.mean([one.difference["moment"].low <= 0.0 <= one.difference["moment"].high for one in found]) > 0.9
    alone = [compare(world(rng, 60), world(rng, 60), rng) for _ in range(300)]
    assert np.mean([one.apart for one in alone]) < 0.03, f"expected about {FALSE_ALARM}"


def test_the_smallest_difference_that_would_be_seen_is_seen() -> None:
    rng = np.random.default_rng(4)
    smallest = compare(world(rng, 300), world(rng, 300), rng, COMPARISONS).smallest["moment"]
    seen = [compare(world(rng, 300), world(rng, 300, smallest), rng, COMPARISONS).apart for _ in range(40)]
    assert np.mean(seen) > 0.8


def test_times_that_are_all_equal_tell_nothing_and_few_are_refused() -> None:
    rng = np.random.default_rng(5)
    same = [{"size": 700.0}] * 40
    found = compare(same, same, rng)
    assert not found.apart
    assert found.chance == 1.0
    assert found.difference["size"].estimate == 0.0
    other = compare(same, [{"size": 701.0}] * 40, rng)
    assert other.apart
    assert other.told.estimate == 1.0
    with pytest.raises(ValueError, match="20 observations of each world"):
        compare(same[:19], same, rng)


def test_intervals() -> None:
    share = interval_of_share(5, 10)
    assert (round(share.low, 6), round(share.high, 6)) == (0.187086, 0.812914)
    rng = np.random.default_rng(6)
    difference = median_difference(rng.normal(0.0, 1.0, 400), rng.normal(1.0, 1.0, 400), rng)
    assert difference.low < 1.0 < difference.high
    assert difference.high - difference.low < 0.5
