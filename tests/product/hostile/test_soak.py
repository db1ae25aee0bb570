"""The long run, shortly: tools/verification/soak.py in a process of its own, measured from its start."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.long
def test_a_short_soak(tmp_path: Path) -> None:
    words = ["--seconds", "3", "--round", "4", "--folder", str(tmp_path)]
    command = [sys.executable, "-m", "tools.verification.soak", *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=280)
    assert done.stdout, done.stderr
    assert done.returncode == 2, "a few seconds tell nothing about a slope"
    figures = json.loads(done.stdout.splitlines()[-1])
    assert set(figures["slope"].values()) == {"too short"}
    assert figures["faults"] == []
    assert figures["rss_peak_mb"] < 150
    assert figures["looks"] > 20
    for count in ("rejected", "inbox_dropped", "overflow", "expired", "delivered"):
        assert figures[count] > 0, count
    assert figures["open_files"][0] == figures["open_files"][1]
