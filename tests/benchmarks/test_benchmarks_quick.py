"""Every benchmark still runs and says what it must; how fast anything is, no test asserts."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
MUST = {"benchmark", "mechanism", "n", "F", "median_us", "p99_us"}

BROKER = pytest.mark.needs("mosquitto")


@pytest.mark.long
@pytest.mark.parametrize(
    "name",
    [
        "kernel",
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("offline", "ledger")),
        *(pytest.param(name, marks=BROKER) for name in ("hop", "idle")),
        *(
            pytest.param(name, marks=[BROKER, pytest.mark.slow])
            for name in ("clients", "ingest", "fleet", "footprint", "gaze")
        ),
        pytest.param("openxr", marks=pytest.mark.needs("cc", "make")),
    ],
)
def test_the_quick_form_runs_and_gives_its_records(name: str, tmp_path: Path) -> None:
    records = tmp_path / "records.json"
    command = [sys.executable, "-m", "benchmarks", name, "--quick", "--json", str(records)]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=250, check=False)
    assert done.returncode == 0, done.stderr
    assert f"== {name} " in done.stdout
    every = json.loads(records.read_text())
    assert every
    for record in every:
        assert record.keys() >= MUST
        assert 0 < record["median_us"] <= record["p99_us"]
    if name == "ledger":
        assert every[0]["open_s"] > 0
        assert (every[0]["devices"], every[0]["days"]) == (10_000, 30)
    if name == "kernel":
        main = [r for r in every if (r["mechanism"], r["n"], r["F"], r.get("state")) == ("cfpa", 64, 52, "warm")]
        assert main[0]["ratio_to_floor"] > 1  # nothing is faster than what it consists of
        assert {r["mechanism"] for r in every} == {"cfpa", "klt"}
