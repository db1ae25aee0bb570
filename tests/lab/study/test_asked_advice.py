"""Advice on asked features: what to expect at a price, on recordings of one's own, and what cannot be asked for."""

import json
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eyestream.cli.main import main
from eyestream.core.mechanisms import build
from eyestream.gaze.features import NAMES
from eyestream.ops.asked_sets import ASKED_CALIBRATION, FEATURE_SETS
from eyestream.rim.files import calibrations, recordings
from eyestream.rim.files.recordings import Recording
from eyestream.rim.plan import load
from eyestream_lab.simulation.people import load_statistics, simulate
from eyestream_lab.study.asked import SETS
from eyestream_lab.study.asked_advice import followed, recognised
from eyestream_lab.testing.noise import SeededNoise

MEASURED = {
    ("rate_saccades",): (0.91,),
    ("blink_rate",): (0.88,),
    ("mean_fixation_duration",): (0.89,),
    ("mean_saccade_amplitude",): (0.88,),
    ("mean_mean_diameter",): (0.89,),
    FEATURE_SETS["fatigue"]: (0.80, 0.77),
    FEATURE_SETS["load"]: (0.80, 0.82),
    FEATURE_SETS["attention"]: (0.84, 0.80),
    FEATURE_SETS["comfort"]: (0.80, 0.78),
    FEATURE_SETS["reading"]: (0.70, 0.67, 0.69),
}
"""Correlations of people outside the calibration, as docs/figures.md has them."""


def said(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    main(["advise", "--json", "--features", *words])
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    return answer


def people(folder: Path, count: int, *, seconds: float = 600.0) -> list[str]:
    """Files of simulated people."""
    files = []
    for i, rows in enumerate(simulate(load_statistics(), count, seconds, 11)):
        files.append(str(folder / f"{i}.npz"))
        recordings.save(Recording(np.arange(len(rows)) / 2.0, rows.astype(np.float64), NAMES), folder / f"{i}.npz")
    return files


@pytest.mark.parametrize("features", MEASURED)
def test_what_is_expected_is_what_was_measured_on_strangers(features: tuple[str, ...]) -> None:
    mechanism = build(calibrations.load(ASKED_CALIBRATION), 4.8, features=features)
    assert mechanism.follows == pytest.approx(MEASURED[features], abs=0.13)


def test_more_epsilon_and_fewer_features_are_expected_to_say_more() -> None:
    def least(epsilon: float, *features: str) -> float:
        follows = build(calibrations.load(ASKED_CALIBRATION), epsilon, features=features).follows
        assert follows is not None
        return float(follows.min())

    one, two, three = (FEATURE_SETS["reading"][:count] for count in (1, 2, 3))
    assert least(4.8, *one) > least(4.8, *two) > least(4.8, *three) > 0.5
    assert least(9.6, *two) > least(4.8, *two) > least(2.4, *two) > least(1.2, *two)
    assert least(1.2, *two) < 0.5
    assert least(1.2, *three) < 0.4
    assert build(calibrations.load("everyday-klt-anchored-64"), 4.8).follows is None


def test_the_answer_has_price_error_and_trait(capsys: pytest.CaptureFixture[str]) -> None:
    answer = said(capsys, "load")
    assert [one["name"] for one in answer["expected"]] == list(FEATURE_SETS["load"])
    assert (answer["calibration"], answer["epsilon"], answer["chunk"]) == (ASKED_CALIBRATION, 4.8, 64)
    assert (answer["price"]["minute"], answer["withheld_s"], answer["measured_on"]) == (9.0, 64.0, 0)
    assert answer["trait"].startswith("pupils are a trait")
    mechanism = build(calibrations.load(ASKED_CALIBRATION), 4.8, features=FEATURE_SETS["load"])
    assert [one["error"] for one in answer["expected"]] == pytest.approx(mechanism.noise_sd.tolist())
    told = tomllib.loads(answer["configuration"])["stream"]["privacy"]
    assert told == {"calibration": ASKED_CALIBRATION, "features": list(FEATURE_SETS["load"]), "epsilon": 4.8}
    main(["advise", "--features", "load"])
    text = capsys.readouterr().out
    assert "9 a minute on average" in text
    assert "pupils are a trait: people may be recognised by how these change" in text
    assert "too little" not in text
    main(["advise", "--features", "load", "--epsilon-per-minute", "2.25"])
    assert "warning        epsilon 1.2 of a chunk is too little for what is asked for: mean_" in capsys.readouterr().out


def test_who_was_recognised_is_said_with_its_figures(capsys: pytest.CaptureFixture[str]) -> None:
    (found,) = said(capsys, "mean_blink_duration,blink_rate")["recognised"]
    assert (found["features"], found["minute"]) == (list(FEATURE_SETS["fatigue"]), 9.0)
    main(["advise", "--features", "fatigue"])
    within = f"{found['area']:.2f} [{found['area_low']:.2f}, {found['area_high']:.2f}]"
    assert (
        f"Measured: at 9 a minute the strongest of {found['attackers']} attackers, given two parts of each of "
        f"{found['people']} people's recordings, had an area under the ROC curve of {within}. With the people exchanged"
    ) in capsys.readouterr().out


@pytest.mark.parametrize(
    ("features", "minute", "words"),
    [
        ("blink_rate", "10", "Measured: at 18 a minute the strongest"),  # not the smaller one's, which flatters
        ("blink_rate,rate_fixations", "9", "Not measured of these features. Of 10 others, at 9 a minute the strongest"),
        ("blink_rate", "36", "Measured: at 36 a minute the strongest"),
        ("blink_rate", "40", "No attack was measured at 40 a minute or more"),
    ],
)
def test_what_was_not_attacked_is_not_said_to_be(
    features: str, minute: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["advise", "--features", features, "--epsilon-per-minute", minute])
    assert words in capsys.readouterr().out


def test_the_page_and_the_advice_have_the_same_attacks() -> None:
    page = (Path(__file__).parents[3] / "docs" / "figures.md").read_text(encoding="utf-8")
    names = {features: name for name, features in SETS.items()}
    for minute in (9.0, 18.0, 36.0):
        found = [recognised(features, minute) for features in names]
        assert [len(each) for each in found] == [1] * len(names)
        for (one,) in found:
            within = f"{one.area:.2f} [{one.area_low:.2f}, {one.area_high:.2f}]".replace("0.", ".")
            name = one.features[0] if len(one.features) == 1 else names[one.features]
            lines = [line.replace("**", "") for line in page.splitlines() if line.startswith(f"| `{name}` | ")]
            assert any(f" {within} |" in line for line in lines), (name, minute, within)


def test_recordings_of_ones_own_are_measured_beside_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = people(tmp_path, 6)
    answer = said(capsys, "rate_saccades", "--recording", *files)
    (own,), (expected,) = answer["measured"], answer["expected"]
    assert answer["measured_on"] == 6
    assert own["correlation"] > 0.6
    assert 0.4 < own["error"] / expected["error"] < 2
    main(["advise", "--features", "rate_saccades", "--recording", *files])
    assert "the 6 recordings given, live" in capsys.readouterr().out


def test_what_follows_is_measured_right() -> None:
    """By hand: correlation of chunk means, each recording's own mean off both; error as it is."""
    calibration, name = calibrations.load(ASKED_CALIBRATION), "rate_saccades"
    mechanism = build(calibration, 4.8, noise=SeededNoise(2), features=[name])
    again = build(calibration, 4.8, noise=SeededNoise(2), features=[name])
    (rows,) = simulate(load_statistics(), 1, 640.0, 3)
    recording = Recording(np.arange(len(rows)) / 2.0, rows.astype(np.float64), NAMES, "one")
    (found,) = followed(mechanism, [recording])
    chunks = recording.features[: len(rows) // 64 * 64].reshape(-1, 64, 52).transpose(0, 2, 1)
    session, released = again.session(), []
    for chunk in chunks:
        if session.awaits_baseline:
            session.anchor(chunk)
        else:
            released.append(session.release(chunk)[0, 0])
    means = chunks[:, NAMES.index(name)].mean(axis=1)
    truth = means[2:] - means[:2].mean()
    assert found.correlation == pytest.approx(np.corrcoef(truth, released)[0, 1])
    assert found.error == pytest.approx(np.sqrt(((truth - released) ** 2).mean()))


def test_what_is_advised_becomes_a_configuration(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["advise", "--features", "blink_rate", "--epsilon-per-minute", "18", "--out", str(tmp_path / "a")])
    assert "blink habits are a trait" in capsys.readouterr().out
    plan = load(tmp_path / "a" / "sidecar.toml")
    mechanism = plan.mechanisms["features"]
    assert (mechanism.name, mechanism.schema.names, mechanism.epsilon) == ("asked", ("blink_rate",), 9.6)
    assert plan.streams["features"].warnings == ()


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["fatige"], "not 'fatige'; did you mean fatigue?"),
        (["blink_rat"], "not 'blink_rat'; did you mean blink_rate?"),
        ([","], "expected one to 3 names of features, as in features = "),
        ([",".join(NAMES)], "not 52: epsilon would be too thin. For more take a calibration of all features"),
        (["wb1_min"], "wb1_min does not vary"),
        (["load", "--hide-identity"], "--hide-identity: chooses a calibration of all features"),
        (["load", "--delay", "20"], "--delay: expected 32 s or more"),
        (["load", "--hours", "25"], "--hours: expected more than 0 and at most 24"),
        (["load", "--calibration", "everyday-klt-64"], "klt has no option features"),
        (["load", "--profile", "degrees"], "--profile goes with --recording"),
    ],
)
def test_what_cannot_be_asked_for_is_one_line(
    words: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["advise", "--features", *words])
    (line,) = capsys.readouterr().err.splitlines()
    assert complaint in line


def test_what_the_tracker_does_not_measure_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (file,) = people(tmp_path, 1)
    short = tmp_path / "short"
    short.mkdir()
    blind = recordings.load(file)
    blind.features[:, NAMES.index("mean_mean_diameter")] = np.nan
    recordings.save(blind, tmp_path / "0.npz")
    for words, complaint in (
        (
            ["--features", "load", "--recording", file],
            "0.npz: has no value of mean_mean_diameter: its tracker does not",
        ),
        (["--features", "rate_saccades", "--recording", *people(short, 1, seconds=120.0)], "expected 320 or more"),
        (["--calibration", ASKED_CALIBRATION, "--recording", file], "releases what is asked for: expected --features"),
    ):
        with pytest.raises(SystemExit, match="2"):
            main(["advise", *words])
        (line,) = capsys.readouterr().err.splitlines()
        assert complaint in line


def test_one_stream_for_two_applications_is_worth_more_than_two_at_half_the_price() -> None:
    """As docs/figures.md says it."""
    asked = calibrations.load(ASKED_CALIBRATION)
    pair = ("blink_rate", "rate_saccades")
    together = build(asked, 4.8, features=pair).follows
    apart = [build(asked, 2.4, features=[name]).follows for name in pair]
    assert together == pytest.approx([0.81, 0.88], abs=0.005)
    assert np.ravel(apart) == pytest.approx([0.61, 0.66], abs=0.006)  # type: ignore[arg-type]
