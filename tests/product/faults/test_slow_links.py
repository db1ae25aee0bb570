"""Slow and blocked links, thirty times faster than life: tools/verification/slow_links.py in a process of its own."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.rigs.mosquitto import Mosquitto

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.alone
def test_slow_and_blocked_links_cost_the_oldest_chunks_and_nothing_stale_is_heard(mosquitto: Mosquitto) -> None:
    command = [sys.executable, "-m", "tools.verification.slow_links", "--seconds", "180", "--factor", "30"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=280)
    assert done.stdout, done.stderr
    figures = json.loads(done.stdout)
    assert set(figures["wrong"]) <= {"heard late", "nothing in a free time"}  # at this haste a busy machine is late
    assert figures["faults"] == 3
    assert figures["heard late"] <= 3 * figures["faults"], "a window that is filled blindly has fifteen"
    assert figures["heard"] >= figures["delivered"] > 30
    assert figures["slow application"][0] <= 16
    assert figures["slow application"][1] > 0, "of what is too much for it, the oldest goes"
