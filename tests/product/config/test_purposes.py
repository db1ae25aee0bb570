"""A purpose in the configuration: what it comes to, that nothing about it raises a price, and who is told."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eyestream.cli.main import main
from eyestream.core.purposes import PURPOSES, Wish, choose
from eyestream.errors import ConfigError
from eyestream.rim import config
from eyestream.rim.config import purposes
from eyestream.rim.config.purposes import load_table, resolve_purpose
from eyestream.rim.plan import resolved

EXAMPLE = (Path(__file__).parents[3] / "config" / "sidecar.toml").read_text()


def made(folder: Path, purpose: str, window_epsilon: float = 38.4) -> Path:
    """The example, with a purpose at 18 a minute in the place of its calibration and epsilon."""
    folder.mkdir()
    named = f'purpose = "{purpose}"\nepsilon_per_minute = 18\n'
    text, count = re.subn(r"(?m)^calibration = .*\n^epsilon = .*\n", named, EXAMPLE, count=1)
    assert count == 1
    path = folder / "sidecar.toml"
    path.write_text(text.replace("window_epsilon = 9.6", f"window_epsilon = {window_epsilon}"))
    return path


@pytest.mark.parametrize("minute", [9.0, 18.0])
@pytest.mark.parametrize("purpose", sorted(PURPOSES))
def test_it_comes_to_what_is_advised(tmp_path: Path, purpose: str, minute: float) -> None:
    path = made(tmp_path / "a", purpose)
    path.write_text(path.read_text().replace("epsilon_per_minute = 18", f"epsilon_per_minute = {minute}"))
    wish, privacy = PURPOSES[purpose], config.load(path).stream[0].privacy
    choice = choose(Wish(minute, wish.delay_s, wish.hide_identity), load_table()["rows"])
    assert (privacy.calibration, privacy.epsilon) == (choice.calibration, choice.epsilon)
    assert (privacy.purpose, privacy.epsilon_per_minute) == (purpose, minute)


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (
            'purpose = "trends"\nepsilon_per_minute = 18\ncalibration = "everyday-klt-64"',
            "take out calibration, or the",
        ),
        ('purpose = "trends"\nepsilon_per_minute = 18\nepsilon = 4.8', "take out epsilon, or the purpose"),
        ('purpose = "trends"', "epsilon_per_minute: missing beside purpose: what it may cost is for you to say"),
        ("epsilon_per_minute = 18", "purpose: missing beside epsilon_per_minute"),
        (
            'purpose = "trend"\nepsilon_per_minute = 18',
            "expected one of adapt, tasks, trends, unrecognised; did you mean trends?",
        ),
        ("purpose = 7\nepsilon_per_minute = 18", "expected one of adapt, tasks, trends, unrecognised"),
        ('purpose = "trends"\nepsilon_per_minute = true', "epsilon_per_minute: expected a number"),
        ('purpose = "trends"\nepsilon_per_minute = "18"', "epsilon_per_minute: expected a number"),
        (
            'purpose = "trends"\nepsilon_per_minute = 3',
            "epsilon_per_minute: expected 9 to 36, where figures were measured",
        ),
        ('purpose = "trends"\nepsilon_per_minute = -18', "epsilon_per_minute: expected 9 to 36"),
        ('purpose = "unrecognised"\nepsilon_per_minute = 36', "purpose: at 36 a minute people were found"),
    ],
)
def test_what_cannot_be_meant_is_one_line(tmp_path: Path, lines: str, said: str) -> None:
    path = made(tmp_path / "a", "trends")
    path.write_text(path.read_text().replace('purpose = "trends"\nepsilon_per_minute = 18', lines))
    worse = [row | {"area": 1.0 if row["minute"] == 36.0 else row["area"]} for row in load_table()["rows"]]
    with pytest.raises(ConfigError) as caught:
        resolve_purpose(
            privacy_of(path), "[stream.privacy] 'features'", lambda: worse
        ) if "people" in said else config.load(path)
    assert said in str(caught.value)
    assert "[stream.privacy] 'features' " in str(caught.value)
    assert "\n" not in str(caught.value)


def privacy_of(path: Path) -> dict[str, Any]:
    privacy: dict[str, Any] = tomllib.loads(path.read_text())["stream"][0]["privacy"]
    return privacy


def test_no_figures_of_a_newer_version_raise_the_price_of_a_minute(tmp_path: Path) -> None:
    """Whatever they say is best: calibrations change, and what a minute costs on average stays as it is written."""
    table, rng, seen = privacy_of(made(tmp_path / "a", "trends")), np.random.default_rng(5), set()
    rows = load_table()["rows"]
    for minute in (9.0, 18.0, 20.7, 36.0):
        table["epsilon_per_minute"] = minute
        for _ in range(10):
            newer = [row | {"distinct": float(rng.uniform())} for row in rows]
            privacy = resolve_purpose(table, "-", lambda newer=newer: newer)
            n = int(privacy["calibration"].rpartition("-")[2])
            assert privacy["epsilon"] * 2.0 * 60 / n <= minute * (1 + 1e-12)
            assert privacy["epsilon"] * 2.0 * 60 / n > minute * 0.999
            seen.add(privacy["calibration"])
    assert len(seen) > 2


def test_longer_chunks_do_not_raise_what_a_second_of_gaze_costs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """At 18 a minute a second costs 14.4 in chunks of 32 rows, and 19.2 in chunks of 64: more than was allowed."""
    path = made(tmp_path / "a", "adapt", 14.4)
    assert resolved(config.load(path)).mechanisms["features"].n == 32
    monkeypatch.setitem(PURPOSES, "adapt", Wish(18.0, 40.0))  # as if a newer version took longer chunks
    with pytest.raises(ConfigError, match=r"window_epsilon: expected at least 19\.2: purpose 'adapt' comes to"):
        resolved(config.load(path))
    capsys.readouterr()
    with pytest.raises(SystemExit):
        main(["guarantee", "--config", str(path)])
    assert capsys.readouterr().err.count("\n") == 1
    path.write_text(path.read_text().replace("window_epsilon = 14.4", "window_epsilon = 19.2"))
    assert resolved(config.load(path)).mechanisms["features"].n == 64


def test_everybody_is_told_what_it_came_to(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["init", str(tmp_path / "a"), "--purpose", "unrecognised"])
    path = tmp_path / "a" / "sidecar.toml"
    assert not re.search(r"(?m)^(calibration|epsilon) = ", path.read_text())
    assert re.search(
        r"(?m)^purpose +behaviour over minutes, of people whom .* recognise\n"
        r"baseline +the first 64 s of each session are withheld",
        capsys.readouterr().out,
    )
    main(["guarantee", "--config", str(path)])
    text = " ".join(capsys.readouterr().out.split())
    assert (
        "purpose unrecognised: behaviour over minutes, of people whom the application should hardly recognise" in text
    )
    assert (
        "at epsilon 9 a minute. By the figures that come with this version: everyday-klt-anchored-64, epsilon 4.8"
        in text
    )
    assert "may take another calibration, at no higher price for rows without a pause" in text
    main(["guarantee", "--config", str(path), "--json"])
    assert "everyday-klt-anchored-64" in json.loads(capsys.readouterr().out)["features"]["purpose"]
    settings = config.load(path)
    (meta,) = resolved(settings).metas.values()
    assert "\npurpose: unrecognised: " in meta.guarantee
    with pytest.raises(SystemExit):  # no broker is there
        main(["check", "--laptop", "--config", str(path)])
    assert "pass  the purpose of features comes to: unrecognised" in capsys.readouterr().out


def test_a_reload_keeps_it_and_takes_no_other(tmp_path: Path) -> None:
    path = made(tmp_path / "a", "trends")
    settings, text = config.load(path), path.read_text()
    plan = resolved(settings)
    path.write_text(re.sub("day_epsilon = [0-9.]+", "day_epsilon = 100", text))
    assert plan.lowered(config.load(path)).ceilings.day is not None
    path.write_text(text.replace("epsilon_per_minute = 18", "epsilon_per_minute = 9"))
    with pytest.raises(ConfigError, match=r"\[stream\] has changed"):
        plan.lowered(config.load(path))


def test_a_reload_after_an_upgrade_of_the_package_takes_the_figures_of_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = made(tmp_path / "a", "trends")
    settings, table = config.load(path), load_table()
    newer = [row | {"distinct": 1.0 if row["n"] == 32 else 0.0} for row in table["rows"]]
    other = resolve_purpose(privacy_of(path), "-", lambda: newer)
    assert other["calibration"] != settings.stream[0].privacy.calibration
    (tmp_path / "advice.json").write_text(json.dumps(table | {"rows": newer}))
    monkeypatch.setattr(purposes, "_ADVICE", tmp_path / "advice.json")
    assert config.load(path) == settings
    resolved(settings).lowered(config.load(path))


@pytest.mark.parametrize(("name", "withheld"), [("klt", True), ("cfpa", False)])
def test_where_none_is_named_none_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, withheld: bool
) -> None:
    main(["init", str(tmp_path / "a"), "--mechanism", name])
    out = capsys.readouterr().out
    assert "purpose" not in out
    assert ("baseline       the first 64 s of each session are withheld" in out) is withheld
