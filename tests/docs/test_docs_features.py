"""The page about the features has those of the code and of the configuration, and formulas that agree on an example."""

import re
from collections import Counter
from pathlib import Path

import numpy as np

import eyestream
from eyestream.gaze.features import FEATURES
from eyestream.gaze.features import NAMES as FEATURES_52
from eyestream.rim.config import load

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "features.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| (\d+) \| `(\w+)` \| (\S+) \| (.+) \|$", PAGE, re.M)


def test_names_in_their_order() -> None:
    assert [int(row[0]) for row in ROWS] == list(range(52))
    names = tuple(row[1] for row in ROWS)
    assert names == FEATURES_52
    (stream,) = load(ROOT / "config" / "sidecar.toml").stream
    assert names == stream.names
    assert (stream.window_s, stream.rate_hz) == (30.0, 2.0)
    assert "**W = 30 s**" in PAGE
    assert "2 rows a second" in PAGE


def test_units_are_powers_of_what_is_measured() -> None:
    units = {name: unit for _, name, unit, _ in ROWS}
    assert tuple(units.items()) == tuple((feature.name, feature.unit) for feature in FEATURES)
    assert set(units.values()) == {"1", "1/s", "s", "s^2", "deg", "deg^2", "deg^4", "mm", "mm^2", "mm^4"}
    for name, unit in units.items():
        if name.startswith("var_var"):
            assert unit.endswith("^4"), name
        elif name.startswith(("var_", "mean_var")):
            assert unit.endswith("^2"), name
        elif "rate" in name:
            assert unit == "1/s", name
        elif name.startswith(("wb", "ratio")):
            assert unit == "1", name


def test_declared_constants_are_those_of_the_calibrations() -> None:
    constant = re.search(r"^((?:`wb\d_min`[, and]*)+) are \*\*declared constants\*\*", PAGE, re.M)
    assert constant is not None
    said = re.findall(r"`(\w+)`", constant[1])
    for name in ("everyday-klt-one-64", "everyday-cfpa-32"):
        calibration = eyestream.load_calibration(name)
        assert said == [n for n, c in zip(calibration.names, calibration.constant, strict=True) if c]


def test_formulas_of_the_wordbooks() -> None:
    letters = [0, 3, 3, 8, 0, 3, 3, 23, 5]
    value = {name: text for _, name, _, text in ROWS}
    for n in (1, 2, 3, 4):
        words = Counter(tuple(letters[i : i + n]) for i in range(len(letters) - n + 1))
        counts = np.zeros(24**n)
        counts[: len(words)] = list(words.values())
        names = {"s": len(letters), "c": max(len(letters) - (n - 1), 0), f"wb{n}_mean": counts.mean()}
        mean = value[f"wb{n}_mean"].split(",")[0]
        assert np.isclose(eval(mean.replace("^", "**"), {}, names), counts.mean())
        variance = value[f"wb{n}_var"].replace("sum of the squared counts", "q").replace("^", "**")
        assert np.isclose(eval(variance, {}, names | {"q": (counts**2).sum()}), counts.var())
        if n > 1:
            assert f"c = max(s - {n - 1}, 0)" in value[f"wb{n}_mean"]
