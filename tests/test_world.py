"""The world on one seed: histories are right, a seed is replayed anywhere, and planted faults are found."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.rigs.simulated.planted import PLANTED
from tests.rigs.simulated.playing import PARTS, found_by, play, shortened

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("part", PARTS)
def test_some_histories_are_right(part: str) -> None:
    assert [one for seed in range(25) if (one := play(part, seed)).faults] == []


@pytest.mark.long
@pytest.mark.parametrize(("part", "seeds"), [("inside", 1000), ("fleet", 600), ("whole", 400)])
def test_many_histories_are_right(part: str, seeds: int) -> None:
    assert [one for seed in range(25, seeds) if (one := play(part, seed)).faults] == []


@pytest.mark.parametrize("part", PARTS)
def test_a_seed_gives_the_same_history_in_another_process(part: str) -> None:
    """Neither the order of a set, nor an address, nor the time is in it."""
    code = f"from tests.rigs.simulated.playing import play; print([play({part!r}, s).digest for s in range(6)])"
    environment = {**os.environ, "PYTHONHASHSEED": "11"}
    other = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert other.stdout.strip() == str([play(part, seed).digest for seed in range(6)]), other.stderr


@pytest.mark.long
@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_fault_is_found(name: str) -> None:
    assert found_by(name, 2000) is not None


def test_a_failure_is_short() -> None:
    """Events and kinds of fault that it can do without are left out, and the rest is what it was."""
    part, plant = PLANTED["granted_before_the_disk"]
    with plant():
        seed = next(seed for seed in range(100) if play(part, seed).faults)
        history = shortened(part, seed)
    assert history.judge.faults
    assert len(history.story) < 6 < history.count
    assert len(history.on) < 2


def test_the_command_says_how_to_see_a_failure_again() -> None:
    command = [sys.executable, "-m", "tools.verification.world", "--only", "1", "--planted", "granted_before_the_disk"]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert said.returncode == 1
    assert "inside 1: " in said.stdout
    assert "python -m tools.verification.world --part inside --only 1 --planted granted" in said.stdout
    wrong = subprocess.run([*command[:4], "seven"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (wrong.returncode, "invalid int value: 'seven'" in wrong.stderr) == (2, True)
