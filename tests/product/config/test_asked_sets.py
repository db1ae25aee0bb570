"""`init --features`: from what an application names to chunks that have it alone; what cannot be asked for."""

from pathlib import Path

import numpy as np
import pytest

from eyestream.cli.main import main
from eyestream.core.mechanisms import build
from eyestream.errors import ConfigError
from eyestream.gaze.features import NAMES
from eyestream.ops.asked_sets import FEATURE_SETS, asked_features, recognised_by
from eyestream.rim.files import calibrations
from eyestream.rim.plan import load
from eyestream.sdk.chunk import Chunk
from eyestream.sdk.publisher import Publisher
from eyestream.sdk.subscriber import subscribe
from eyestream_lab.testing.clocks import until
from tests.rigs.mosquitto import Mosquitto
from tests.rigs.pages import ROOT
from tests.rigs.sidecar import at_work, opened

CALIBRATION = "everyday-asked-64"
FATIGUE = ("blink_rate", "mean_blink_duration")


async def test_from_init_to_the_first_chunk(mosquitto: Mosquitto, tmp_path: Path) -> None:
    main(["init", str(tmp_path / "a"), "--features", "fatigue", "--broker", mosquitto.url])
    plan = load(tmp_path / "a" / "sidecar.toml")
    settings, device = plan.settings, plan.settings.device[0].id
    rows = np.random.default_rng(3).normal(1.0, 0.1, (3 * 64, len(NAMES)))
    with opened(settings, mechanism=plan.mechanisms["features"]) as sidecar:
        async with (
            at_work(sidecar),
            subscribe(mosquitto.url, device) as chunks,
            Publisher(mosquitto.url, device, NAMES, 2.0) as tracker,
        ):
            await until(lambda: sidecar.raw_stands and sidecar.private_stands)
            assert await tracker.send(rows)
            chunk = await anext(chunks)
    assert (chunk.names, chunk.values.shape, chunk.index) == (FATIGUE, (2, 1), 2)
    assert (chunk.epsilon, chunk.mechanism) == (4.8, "asked")
    assert "blink_rate, mean_blink_duration: the whole epsilon of a chunk is spent on them" in chunk.guarantee
    assert chunk.guarantee.splitlines()[1].startswith("in short: changes, no levels. Correlation with the truth")
    np.testing.assert_array_equal(chunk.feature("mean_blink_duration"), chunk.values[1])
    with pytest.raises(
        ConfigError, match=r"no blink_rates; it has blink_rate, mean_blink_duration; did you mean blink_rate\?"
    ):
        chunk.feature("blink_rates")


def test_it_is_the_default_but_for_what_is_released(tmp_path: Path) -> None:
    main(["init", str(tmp_path / "a")])
    main(["init", str(tmp_path / "b"), "--features", "load"])
    usual, asked = (load(tmp_path / name / "sidecar.toml").settings for name in "ab")
    assert asked.budget == usual.budget
    privacy, before = asked.stream[0].privacy, usual.stream[0].privacy
    assert (privacy.calibration, privacy.features) == (CALIBRATION, list(FEATURE_SETS["load"]))
    assert privacy.epsilon == before.epsilon == 4.8
    assert asked.stream[0].names == usual.stream[0].names == NAMES


@pytest.mark.parametrize("name", FEATURE_SETS)
def test_every_set_can_be_released_and_is_on_the_page(name: str) -> None:
    features = asked_features(name, NAMES)
    mechanism = build(calibrations.load(CALIBRATION), 4.8, features=features)
    assert mechanism.schema.names == FEATURE_SETS[name]
    listed = ", ".join(f"`{feature}`" for feature in features)
    trait, found, _ = recognised_by(features).partition(" are a trait: ")
    trait = f"{trait} " if found else ""
    assert f"| `{name}` | {listed} | {trait}| " in (ROOT / "docs" / "mechanisms.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("features", "said"),
    [
        ("fatigue", "blink habits are a trait: people may be recognised by how these change"),
        ("load", "pupils are a trait: people"),
        ("blink_rate,mean_mean_diameter", "blink habits and pupils are a trait: people"),
        ("reading", "without blinks and pupils, which are a trait; people may still be recognised"),
    ],
)
def test_init_says_what_a_choice_tells_of_a_person(
    features: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["init", str(tmp_path / "a"), "--features", features])
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("features ")]
    names = asked_features(features, NAMES)
    assert line == f"features       {', '.join(names)}, and no other; {recognised_by(names)}"
    assert said in line


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["blink_rat"], "expected features of the calibration, or a set (fatigue, load, reading, attention, comfort), "
         "not 'blink_rat'; did you mean blink_rate?"),
        (["fatige"], "not 'fatige'; did you mean fatigue?"),
        (["fatigue,fatige"], "not 'fatige'; did you mean fatigue?"),
        ([""], "expected one to 3 names of features"),
        ([" , "], "none is given"),
        ([], "argument --features: expected one argument"),
        ([",".join(NAMES)], "not 52: epsilon would be too thin. For more take a calibration of all features"),
        (["fatigue,load"], "expected one to 3 names of features, not 4"),
        (["wb1_min"], "wb1_min does not vary"),
        (["load", "--purpose", "trends"], "argument --purpose: not allowed with argument --features"),
        (["load", "--mechanism", "klt"], "argument --mechanism: not allowed with argument --features"),
    ],
)  # fmt: skip
def test_what_cannot_be_asked_for_is_one_line_and_leaves_nothing(
    given: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["init", str(tmp_path / "a"), "--features", *given])
    (line,) = capsys.readouterr().err.splitlines()
    assert ended.value.code == 2
    assert said in line
    assert not (tmp_path / "a").exists()


def test_an_epsilon_that_leaves_nothing_is_said_where_one_looks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["init", str(tmp_path / "a"), "--features", "comfort"])
    assert "expect         blink_rate +-0." in capsys.readouterr().out
    path = tmp_path / "a" / "sidecar.toml"
    assert load(path).streams["features"].warnings == ()
    path.write_text(path.read_text().replace("epsilon = 4.8", "epsilon = 1.2", 1))
    (warning,) = load(path).streams["features"].warnings
    assert warning.startswith("epsilon 1.2 of a chunk is too little for what is asked for: blink_rate +-")
    assert warning.endswith("Ask for fewer features, or raise epsilon")
    main(["guarantee", "--config", str(path)])
    said = capsys.readouterr()
    assert "too little for what is asked for" in said.out + said.err
    assert "expected error of a change: blink_rate +-" in said.out


def test_init_says_before_somebody_chooses_what_a_choice_tells(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["init", str(tmp_path / "a")])
    before, _, _ = capsys.readouterr().out.partition("configuration  ")
    assert "--features NAME[,NAME...] spends all of epsilon on them" in before
    assert "Blink habits and pupils are a trait" in before
    assert "fatigue (blink habits), load (pupils), reading, attention, comfort (blink habits)." in before
    assert max(map(len, before.splitlines())) <= 120


def test_names_of_whoever_described_the_stream_are_escaped_and_short_in_a_refusal() -> None:
    names = ("blink_rat\x1b[2J", "\u202eevil", "x" * 100_000)
    chunk = Chunk(1, 0, names, np.zeros(1), np.zeros((3, 1), np.float32), 4.8, 0.0, "")
    with pytest.raises(ConfigError) as refused:
        chunk.feature("blink_rate")
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 200
