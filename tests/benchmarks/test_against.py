"""Two checkouts by turns: the interval holds the median as often as it says, and a checkout is as fast as itself."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

COVERAGE = """
import random
from benchmarks.against import by_turns, interval
rng = random.Random(1)
held = narrower = 0
for _ in range(4000):
    ratios = [rng.gauss(1.0, 0.1) for _ in range(20)]
    _, low, high = interval(ratios)
    inside = sorted(r for r in ratios if low < r < high)
    held += low <= 1.0 <= high
    narrower += inside[0] <= 1.0 <= inside[-1]
asked = []
ratios = by_turns(3, lambda which: asked.append(which) or (2.0 if which else 4.0))
print(held / 4000, narrower / 4000, ratios == [0.5] * 3, asked == [0, 1, 1, 0, 0, 1])
"""


def run(*words: str, timeout: float = 60) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, timeout=timeout)


def test_the_interval_holds_the_true_median_as_often_as_it_says_and_a_narrower_one_does_not() -> None:
    held, narrower, ratios, order = run("-c", COVERAGE).stdout.split()
    assert float(held) >= 0.95 > float(narrower)
    assert (ratios, order) == ("True", "True")


@pytest.mark.slow
@pytest.mark.needs("mosquitto")
def test_a_checkout_against_itself() -> None:
    done = run("-m", "benchmarks.against", str(ROOT), "--turns", "2", "--json", timeout=200)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert len(found) == 25
    assert all(figure["low"] <= figure["median"] <= figure["high"] for figure in found.values())


def test_it_says_what_it_needs() -> None:
    done = run("-m", "benchmarks.against")
    assert done.returncode == 2
    assert "CHECKOUT" in done.stderr
