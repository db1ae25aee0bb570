"""Advice: from saved figures, inside of what was measured, and what it says can be done."""

import json
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eyestream.cli.main import main
from eyestream.errors import ConfigError
from eyestream.gaze.features import NAMES as FEATURES_52
from eyestream.rim import config
from eyestream.rim.config.tables import PrivacySettings
from eyestream.rim.files import calibrations, recordings
from eyestream.rim.files.recordings import Recording
from eyestream.rim.plan import resolved
from eyestream_lab.simulation.people import load_statistics, simulate
from eyestream_lab.study.advice import IDENTITY, PURPOSES, Wish, advise, load_table, markdown

PAGE = Path(__file__).parents[3] / "docs" / "advice-figures.md"


@pytest.fixture(scope="module")
def table() -> dict[str, Any]:
    return load_table()


def test_the_page_has_the_table_that_the_command_prints(
    table: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    main(["advise", "--table"])
    printed = capsys.readouterr().out.strip()
    assert printed == markdown(table)
    assert printed in PAGE.read_text(encoding="utf-8")
    assert len(printed.splitlines()) == 2 + len(table["rows"])


@pytest.mark.parametrize(
    ("delay", "hide", "calibration", "chunk"),
    [
        (16.0, False, "everyday-klt-mapped-32", 32),
        (40.0, False, "everyday-klt-mapped-64", 64),
        (70.0, False, "everyday-klt-mapped-128", 128),
        (40.0, True, "everyday-klt-anchored-64", 64),
        (70.0, True, "everyday-klt-anchored-128", 128),
    ],
)
def test_longer_chunks_where_the_delay_allows_them(
    table: dict[str, Any], delay: float, hide: bool, calibration: str, chunk: int
) -> None:
    advice = advise(Wish(18.0, delay, hide), table)
    assert (advice.calibration, advice.chunk) == (calibration, chunk)
    assert advice.delay_s <= delay
    assert advice.epsilon == pytest.approx(18.0 * chunk / 120)
    assert advice.price["minute"] <= 18.0 * (1 + 1e-9)
    assert advice.price["worst_minute"] > advice.price["minute"]
    assert (calibrations.load(advice.calibration).anchor is not None) is hide
    (row,) = [r for r in table["rows"] if r["calibration"] == calibration and r["minute"] == 18.0]
    assert advice.expected["distinct_own"] == pytest.approx(row["distinct_own"])
    assert {key: advice.identity[key] for key in IDENTITY} == {key: row[key] for key in IDENTITY}


def test_between_measured_epsilons_utility_lies_between_and_identity_is_the_larger_ones(table: dict[str, Any]) -> None:
    low, middle, high = (advise(Wish(e, 40.0), table) for e in (18.0, 25.0, 36.0))
    assert low.expected["distinct"] < middle.expected["distinct"] < high.expected["distinct"]
    assert middle.identity == high.identity
    assert middle.identity["epsilon_per_minute"] == 36.0
    assert low.guess_factor < middle.guess_factor < high.guess_factor


@pytest.mark.parametrize(
    ("wish", "said"),
    [
        (Wish(1.0, 40.0), "--epsilon-per-minute: expected 9 to 36, where figures were measured, not 1"),
        (Wish(1e9, 40.0), "--epsilon-per-minute"),
        (Wish(18.0, 5.0), "--delay: expected 16 s or more"),
        (Wish(18.0, 40.0, hours_a_day=25.0), "--hours: expected more than 0 and at most 24, not 25"),
    ],
)
def test_nothing_is_said_outside_of_what_was_measured(table: dict[str, Any], wish: Wish, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        advise(wish, table)


def test_what_is_advised_can_be_written_into_a_configuration(table: dict[str, Any]) -> None:
    advice = advise(Wish(18.0, 40.0, hide_identity=True, hours_a_day=4.0), table)
    told = tomllib.loads(advice.tables.text())
    privacy = PrivacySettings(**told["stream"]["privacy"])
    assert (privacy.calibration, privacy.epsilon) == (advice.calibration, advice.epsilon)
    assert told["budget"]["day_epsilon"] == pytest.approx(18.0 * 60 * 4)
    assert told["budget"]["window_epsilon"] == pytest.approx(told["budget"]["window_chunks"] * advice.epsilon)


def test_scripts_get_one_line_and_privatize_does_what_it_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["advise", "--epsilon-per-minute", "18", "--delay", "40", "--hide-identity", "--json"])
    told = json.loads(capsys.readouterr().out)
    assert {"calibration", "epsilon", "chunk", "expected", "identity", "price", "guess_factor"} <= told.keys()
    (rows,) = simulate(load_statistics(), 1, 300.0, 3)
    path = tmp_path / "one.npz"
    recordings.save(Recording(np.arange(len(rows)) / 2.0, rows.astype(np.float64), FEATURES_52, "one"), path)
    out = tmp_path / "out"
    main(
        [
            "privatize",
            str(path),
            "--calibration",
            told["calibration"],
            "--epsilon",
            str(told["epsilon"]),
            "--out",
            str(out),
        ]
    )
    released = recordings.load(out / "one.npz").features
    assert np.isnan(released[: 2 * told["chunk"]]).all()
    assert np.isfinite(released[2 * told["chunk"] :]).all()


def test_people_are_told_what_was_measured_on_whom(capsys: pytest.CaptureFixture[str]) -> None:
    main(["advise", "--hide-identity"])
    text = capsys.readouterr().out
    for part in (
        "a minute on average",
        "baseline",
        "Measured, not proved",
        "30 people",
        "For another tracker no figure holds: measure with --recording",
        "[stream.privacy]",
        "blink_rate",
    ):
        assert part in text
    main(["advise"])
    assert "baseline  " not in capsys.readouterr().out


def test_recordings_of_ones_own_tracker_take_the_place_of_the_saved_figures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """People like the corpus explain about what is saved; in another unit they explain nothing."""
    people = [np.asarray(rows, np.float64) for rows in simulate(load_statistics(), 6, 600.0, 11)]

    def said(factor: float) -> dict[str, Any]:
        files = []
        for i, rows in enumerate(people):
            recording = Recording(np.arange(len(rows)) / 2.0, rows * factor, FEATURES_52)
            files.append(str(tmp_path / f"{i}.npz"))
            recordings.save(recording, tmp_path / f"{i}.npz")
        main(["advise", "--json", "--recording", *files])
        found: dict[str, Any] = json.loads(capsys.readouterr().out)
        main(["advise", "--recording", *files])
        assert "measured on the 6 recordings given. Who it is was not" in capsys.readouterr().out
        return found

    main(["advise", "--json"])
    saved = json.loads(capsys.readouterr().out)
    own, other = said(1.0), said(4.0)
    assert (saved["measured_on"], own["measured_on"]) == (0, 6)
    assert own["calibration"] == saved["calibration"]
    assert own["expected"].keys() >= {"distinct", "distinct_own", "distinct_offline", "distinct_own_offline"}
    assert own["expected"]["distinct"] == pytest.approx(saved["expected"]["distinct"], abs=0.12)
    assert other["expected"]["distinct"] < saved["expected"]["distinct"] - 0.5
    assert own["expected"]["features"]["rate_saccades"]["explained"] > 0.4


def test_what_cannot_be_measured_on_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (rows,) = simulate(load_statistics(), 1, 120.0, 3)
    path = str(tmp_path / "a.npz")
    recordings.save(Recording(np.arange(len(rows)) / 2.0, rows.astype(np.float64), FEATURES_52), path)
    for words, said in (
        (["--recording", path], "--recording: expected two people or more"),
        (["--recording", path, path], "a.npz: has 240 rows, expected 256 or more"),
        (["--profile", "degrees"], "--profile goes with --recording"),
    ):
        with pytest.raises(SystemExit):
            main(["advise", *words])
        assert said in capsys.readouterr().err


def test_where_identity_is_hidden_nothing_is_advised_in_which_people_were_found(table: dict[str, Any]) -> None:
    found = {(r["calibration"], r["minute"]) for r in table["rows"] if r["area"] >= r["least_area"]}
    assert ("everyday-klt-anchored-32", 36.0) in found
    for minute, delay in ((9.0, 16.0), (18.0, 16.0), (18.0, 40.0), (18.0, 70.0)):
        assert (advise(Wish(minute, delay, hide_identity=True), table).calibration, minute) not in found
    for delay in (16.0, 40.0, 70.0):
        with pytest.raises(ConfigError, match="--hide-identity: at 36 a minute people were found"):
            advise(Wish(36.0, delay, hide_identity=True), table)
    worse = {**table, "rows": [row | {"area": row["least_area"]} for row in table["rows"]]}
    with pytest.raises(ConfigError, match="--hide-identity: at 18 a minute people were found"):
        advise(Wish(18.0, 40.0, hide_identity=True), worse)
    assert advise(Wish(18.0, 40.0), worse).calibration == "everyday-klt-mapped-64"


@pytest.mark.parametrize("purpose", sorted(PURPOSES))
def test_a_purpose_becomes_a_configuration_that_is_what_was_advised(
    table: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str], purpose: str
) -> None:
    main(["init", str(tmp_path / "new"), "--purpose", purpose])
    assert "(new: nothing spent)" in capsys.readouterr().out
    advice, settings = advise(PURPOSES[purpose], table), config.load(tmp_path / "new" / "sidecar.toml")
    assert settings.stream[0].privacy.calibration == advice.calibration
    assert settings.stream[0].privacy.epsilon == advice.epsilon
    assert (settings.stream[0].privacy.correlation is None) is bool(advice.withheld_s)
    text = (tmp_path / "new" / "sidecar.toml").read_text()
    assert "many short sessions cost more: session_epsilon and day_epsilon bound that\n" in text
    assert "In the place of these two" not in text
    assert "A session's last chunk" not in text
    told = tomllib.loads(advice.tables.text())["budget"]
    budget = settings.budget
    assert {key: float(getattr(budget, key)) for key in told} == pytest.approx(told)
    with pytest.raises(SystemExit):
        main(["init", str(tmp_path / "new"), "--purpose", purpose])
    assert "neither is ever overwritten" in capsys.readouterr().err


def test_the_default_and_its_purpose_have_one_budget(tmp_path: Path) -> None:
    """Whoever names the purpose that the default is the answer to gets what the default gets."""
    for name, words in (("default", []), ("named", ["--purpose", "unrecognised"])):
        main(["init", str(tmp_path / name), *words])
    default, named = (config.load(tmp_path / name / "sidecar.toml") for name in ("default", "named"))
    assert named.budget == default.budget
    for key in ("calibration", "epsilon"):
        assert getattr(named.stream[0].privacy, key) == getattr(default.stream[0].privacy, key)


def test_advice_is_written_where_it_is_asked_for(
    table: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["advise", "--epsilon-per-minute", "9", "--delay", "20", "--out", str(tmp_path / "new")])
    assert "expected" in capsys.readouterr().out
    settings = config.load(tmp_path / "new" / "sidecar.toml")
    assert settings.stream[0].privacy.calibration == "everyday-klt-mapped-32"
    assert settings.stream[0].privacy.epsilon == pytest.approx(2.4)
    with pytest.raises(ConfigError, match="has no epsilon"):
        advise(Wish(18.0, 40.0), table).tables.into('calibration = "x"\n')


@pytest.mark.parametrize(
    ("asked", "anchored", "touched"),
    [
        ("init --mechanism klt", True, "2 chunks of 64 rows"),
        ("init --mechanism cfpa", False, "2 chunks of 64 rows"),
        ("init --mechanism dcfpa", False, "2 chunks of 64 rows"),
        ("init --purpose adapt", False, "3 chunks of 32 rows"),
        ("init --purpose trends", False, "2 chunks of 128 rows"),
        ("init --purpose unrecognised", True, "2 chunks of 64 rows"),
        ("advise --delay 16", False, "3 chunks of 32 rows"),
        ("advise --delay 16 --epsilon-per-minute 9 --hide-identity", True, "3 chunks of 32 rows"),
        ("advise --delay 70", False, "2 chunks of 128 rows"),
    ],
)
def test_comments_of_a_new_configuration_are_true_of_its_calibration(
    tmp_path: Path, asked: str, anchored: bool, touched: str
) -> None:
    command, *options = asked.split()
    place = [str(tmp_path)] if command == "init" else ["--out", str(tmp_path)]
    main([command, *place, *options])
    path = tmp_path / "sidecar.toml"
    settings, text = config.load(path), path.read_text()
    (stream,), (planned,) = settings.stream, resolved(settings).streams.values()
    mechanism = planned.mechanism
    assert touched == f"{planned.touched} chunks of {mechanism.n} rows"
    assert f"one blink touches up to {touched}\n" in text
    assert (mechanism.baseline_chunks > 0) is anchored
    for said in ("withholds", "takes its mean off the rest", "how far they move does not", "as this one"):
        assert (said in text) is anchored, said
    assert (stream.privacy.correlation is None) is anchored
    assert "\n# How its chunks are released." in text
    assert "takes a baseline off each session" in text


def test_a_calibration_of_ones_own_is_measured_on_people_who_are_not_in_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A range that everybody has at 50 times the price: more comes through than at the price."""
    files = []
    for place, rows in enumerate(simulate(load_statistics(), 3, 300.0, 3)):
        files.append(str(tmp_path / f"p{place}.npz"))
        recordings.save(Recording(np.arange(len(rows)) / 2.0, rows.astype(np.float64), FEATURES_52), files[-1])
    own = str(tmp_path / "own.npz")
    main(["calibrate", files[0], "--mechanism", "cfpa", "--chunk", "32", "--out", own])
    explained = []
    for minute in ("18", "900"):
        words = ["advise", "--calibration", own, "--recording", *files[1:], "--epsilon-per-minute", minute]
        capsys.readouterr()
        main([*words, "--json"])
        told = json.loads(capsys.readouterr().out)
        assert told["epsilon"] == pytest.approx(float(minute) * 16 / 60)
        explained.append(told["expected"]["distinct"])
    assert explained[0] < explained[1]
    main(words)
    said = capsys.readouterr().out
    assert "(cfpa): epsilon 240 a chunk of 32 rows, 900 a minute" in said
    assert "blink_rate" in said
    for more, wrong in ((["--recording", *files], "was made from this recording"), ([], "expected --recording FILES")):
        with pytest.raises(SystemExit):
            main(["advise", "--calibration", own, *more])
        assert wrong in capsys.readouterr().err
