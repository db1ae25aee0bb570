"""Two checkouts by turns: the interval holds the median as often as it says, and each turn measures both."""

import random
import statistics
import subprocess
import sys
from pathlib import Path

from benchmarks.against import by_turns, interval

ROOT = Path(__file__).parents[2]


def test_the_interval_holds_the_true_median_as_often_as_it_says() -> None:
    """And one that is a value narrower on either side does not."""
    rng = random.Random(1)
    held = narrower = 0
    for _ in range(4000):
        ratios = [rng.gauss(1.0, 0.1) for _ in range(20)]
        median, low, high = interval(ratios)
        assert median == statistics.median(ratios)
        held += low <= 1.0 <= high
        inside = sorted(r for r in ratios if low < r < high)
        narrower += inside[0] <= 1.0 <= inside[-1]
    assert held >= 0.95 * 4000
    assert narrower < 0.95 * 4000


def test_each_turn_measures_both_in_an_order_that_changes() -> None:
    asked: list[int] = []

    def measure(which: int) -> float:
        asked.append(which)
        return 2.0 if which else 4.0

    assert by_turns(3, measure) == [0.5, 0.5, 0.5]
    assert asked == [0, 1, 1, 0, 0, 1]


def test_it_says_what_it_needs() -> None:
    command = [sys.executable, "-m", "benchmarks.against"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, timeout=60)
    assert done.returncode == 2
    assert "CHECKOUT" in done.stderr
