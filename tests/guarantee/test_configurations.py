"""No configuration is a pass-through: it is refused in a line that says where, or it is one of our mechanisms."""

from collections import Counter
from pathlib import Path

import pytest
from configurations import configurations, judge
from hypothesis import HealthCheck, given, settings

from eyestream.errors import ConfigError
from eyestream.files import calibrations
from eyestream.privacy.mechanisms import build

QUICK = settings(
    max_examples=300, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True, database=None
)
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
