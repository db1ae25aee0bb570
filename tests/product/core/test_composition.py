"""Composition at a delta: against sums over all outcomes, and on the page."""

import itertools
import math
import re
from pathlib import Path

import pytest

from eyestream.claims.composition import composed_epsilon
from eyestream.cli.main import main

PAGE = Path(__file__).parents[3] / "docs" / "concepts.md"


def delta_of(epsilon: float, count: int, total: float) -> float:
    """Probability by which `count` bits, each right with odds e^epsilon, pass `total`: over all 2^count outcomes."""
    right = 1 / (1 + math.exp(-epsilon))
    beyond = 0.0
    for bits in itertools.product((0, 1), repeat=count):
        here = math.prod(right if bit else 1 - right for bit in bits)
        other = math.prod(1 - right if bit else right for bit in bits)
        beyond += max(here - math.exp(total) * other, 0.0)
    return beyond


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("count", [1, 4, 9])
@pytest.mark.parametrize("delta", [1e-6, 0.01, 0.3])
def test_it_is_the_least_that_holds(epsilon: float, count: int, delta: float) -> None:
    found = composed_epsilon(epsilon, count, delta)
    assert 0.0 <= found <= count * epsilon
    assert delta_of(epsilon, count, found + 1e-9) <= delta * (1 + 1e-6)
    if found > 1e-3:
        assert delta_of(epsilon, count, 0.99 * found) > delta


def test_the_page_has_its_figures() -> None:
    rows = re.findall(r"(?m)^\| ([\d.]+) \| ([\d,]+) \| ([\d,]+) \|$", PAGE.read_text(encoding="utf-8"))
    assert len(rows) == 4
    for epsilon, total, least in rows:
        assert round(240 * float(epsilon)) == int(total.replace(",", ""))
        assert round(composed_epsilon(float(epsilon), 240, 1e-6)) == int(least.replace(",", ""))


def test_guarantee_prints_it_for_a_configuration(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["init", str(tmp_path / "s"), "--features", "rate_saccades"])
    config = str(tmp_path / "s" / "sidecar.toml")
    main(["guarantee", "--config", config, "--delta", "1e-6"])
    said = " ".join(capsys.readouterr().out.split())
    assert "240 chunks of a session: 1152 by basic composition, 1152 by the optimal one at delta 1e-06" in said
    with pytest.raises(SystemExit, match="2"):
        main(["guarantee", "--config", config, "--delta", "1"])
    assert "--delta: expected one between 0 and 1" in capsys.readouterr().err
