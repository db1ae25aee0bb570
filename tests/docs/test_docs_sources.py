"""The page about sources of gaze: its figures are those of the front end."""

import re
from pathlib import Path

import pytest

from eyestream.gaze.clock_map import LEAST, PERIOD_S
from eyestream.gaze.live import DELAY_S, SILENCE_S

ROOT = Path(__file__).resolve().parents[2]
PAGE = " ".join((ROOT / "docs" / "clocks.md").read_text(encoding="utf-8").split())
SECURITY = " ".join((ROOT / "SECURITY.md").read_text(encoding="utf-8").split())
_PER_S = {"hours": 3600.0, "minutes": 60.0}


def test_moments_and_limits_are_those_of_the_front_end() -> None:
    assert f"is made {DELAY_S:g} s after its end" in PAGE
    assert f"It ends after {SILENCE_S:g} s without an answer" in PAGE
    assert DELAY_S == 1.0  # the page says "a second"


def test_the_votes_on_a_sessions_borders_are_those_of_the_map() -> None:
    assert f"Every {PERIOD_S:g} s of the sidecar's clock" in PAGE
    assert f"when at least {LEAST} seconds have samples in time. It ends when fewer than {LEAST} have" in PAGE
    assert f"lost, within {2 * PERIOD_S:g} s the session ends" in PAGE
    assert "The samples of five seconds decide whether it begins" in SECURITY


def test_a_session_lasts_as_long_as_the_drift_leaves_room() -> None:
    (spare,) = re.findall(r"with ([\d.]+) s for the way", PAGE)
    rows = re.findall(r"\| (\d+) ppm[^|]* \| (\d+) (hours|minutes) \|", PAGE)
    assert [ppm for ppm, _, _ in rows] == ["20", "100", "278"]
    for ppm, length, unit in rows:
        assert float(length) * _PER_S[unit] == pytest.approx((DELAY_S - float(spare)) / (1e-6 * float(ppm)), rel=0.02)
