"""No configuration is a pass-through: it is refused in a line that says where, or it is one of our mechanisms."""

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from eyestream.core.mechanisms import build
from eyestream.errors import ConfigError
from eyestream.rim.files import calibrations
from eyestream.rim.ledger.reading import create_ledger
from tests.product.guarantee.configurations import EXAMPLE, configurations, judge

QUICK = settings(max_examples=300, suppress_health_check=list(HealthCheck))
LONG = settings(QUICK, max_examples=10_000)


def outcomes(folder: Path, how: settings) -> Counter[str]:
    count: Counter[str] = Counter()

    @how
    @given(text=configurations())
    def one(text: str) -> None:
        count[judge(text, folder)] += 1

    one()
    return count


def test_some_hundred_configurations(tmp_path: Path) -> None:
    count = outcomes(tmp_path, QUICK)
    assert count["refused when read"] > 50
    assert count["assembled"] > 20


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_ten_thousand_configurations(tmp_path: Path) -> None:
    count = outcomes(tmp_path, LONG)
    print(dict(count))
    assert count.total() >= 10_000


@pytest.mark.parametrize("calibration", ["everyday-lpa-32", "everyday-cfpa-32", "everyday-dcfpa-32", "everyday-klt-32"])
@pytest.mark.parametrize("epsilon", [5e-324, 1e-308, 9.9e-13, 1e300, float("nan"), float("inf"), -1.0, 0.0])
def test_an_epsilon_without_a_use_is_refused_in_one_line(calibration: str, epsilon: float) -> None:
    with pytest.raises(ConfigError, match=r"^epsilon [^\n]*$"):
        build(calibrations.load(calibration), epsilon)


def test_what_cannot_be_assembled_is_one_line_that_names_file_table_and_key(tmp_path: Path) -> None:
    path = tmp_path / "sidecar.toml"
    path.write_text(EXAMPLE.replace("session_epsilon = 1152.0", "session_epsilon = 4.7"))
    create_ledger(tmp_path / "ledger", created=0)
    command = [sys.executable, "-c", "from eyestream.cli.main import main; main()", "run", "--config", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"eyestream run: {path}: [budget] session_epsilon: expected at least")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(("window", "fits"), [("4.8", True), ("4.8000000000001", True), ("4.7999999999999", False)])
def test_a_ceiling_of_one_chunk_lets_it_through_or_is_refused(tmp_path: Path, window: str, fits: bool) -> None:
    text = EXAMPLE.replace("window_epsilon = 9.6", f"window_epsilon = {window}")
    assert judge(text, tmp_path) == ("assembled" if fits else "refused when assembled: ConfigError")
    odd = (
        "31.622776601683793"  # its float lies above it: a chunk spends the float below, which the ceiling has room for
    )
    text = EXAMPLE.replace("window_epsilon = 9.6", f"window_epsilon = {odd}").replace(
        "epsilon = 4.8 ", f"epsilon = {odd} "
    )
    assert judge(text, tmp_path) == "assembled"
