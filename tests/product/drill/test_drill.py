"""A kind of release and a front end that the package does not know go through every door by their places alone.

Nothing outside `unary/` and `right.py` beside this file is written for them. Where the package has to know more of a
new kind, one of these tests fails.
"""

import asyncio
import json
import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eyestream.cli import main as command
from eyestream.core.charge import EPSILON_UNITS
from eyestream.core.mechanisms import build, registry
from eyestream.gaze.samples import Samples
from eyestream.rim.elsewhere import mechanism_elsewhere
from eyestream.rim.files import calibrations, recordings
from eyestream.rim.files.profiles import load_profile
from eyestream.rim.files.recordings import Recording
from eyestream.rim.ledger.reading import create_ledger, read_ledger
from eyestream.rim.plan import Plan, load
from eyestream.rim.plan.summary import summary
from eyestream.rim.sidecar.assembly import assemble
from eyestream.rim.sources import registry as sources
from eyestream.sdk.subscriber import Chunk, subscribe
from eyestream_lab.audit.estimate import lower_bound
from eyestream_lab.audit.trials import Case, count, trial_of
from eyestream_lab.embedded import embedded_broker
from eyestream_lab.study.people.run import subjects_of
from eyestream_lab.testing.mechanisms import check_any_input, check_life
from eyestream_lab.testing.noise import SeededNoise, ZeroNoise
from tests.product.drill.right import RIGHT, STEP_S
from tests.product.drill.unary import ENTRY
from tests.product.drill.unary.laboratory import synthetic
from tests.product.drill.unary.mechanism import weight_for
from tests.rigs.fast_gaze import RATE_HZ, SPEED, fast_tracker
from tests.rigs.sidecar import NO_BROKER, at_work

PLACE, EPSILON, N = "tests.product.drill.unary:ENTRY", 6.0, 4
LABORATORY = "tests.product.drill.unary.laboratory:ENTRY"
PROFILE = load_profile("degrees").at_rate(RATE_HZ)


def gaze_at(t: np.ndarray[Any, Any]) -> Samples:
    """On the left for five seconds, then on the right for as long, and again."""
    return Samples.of(t, np.where(np.floor((t + 0.001) / 5.0) % 2, 10.0, -10.0), np.zeros(len(t)))


TRACKER = fast_tracker(gaze_at)

TEXT = """
[private]
url = "{url}"
[[device]]
id = "hmd-1"
[[source]]
kind = "tests.product.drill.test_drill:TRACKER"
rate_hz = 100.0
streams = ["spells"]
[[stream]]
name = "spells"
front_end = "tests.product.drill.right:RIGHT"
[stream.privacy]
mechanism = "tests.product.drill.unary:ENTRY"
calibration = "{folder}/mine.npz"
epsilon = 6.0
[budget]
session_epsilon = 720.0
"""


def run(*words: object) -> None:
    command.main([str(word) for word in words])


def flags(folder: Path) -> Path:
    """Half a minute of gaze, as a recording of the front end's rows."""
    rows = RIGHT.make(PROFILE, 60.0, None).feed(gaze_at(np.arange(1, 3_000) / RATE_HZ))
    path = folder / "flags.npz"
    recordings.save(Recording(rows.t, rows.values, RIGHT.names, front_end=RIGHT.mark(PROFILE)), path)
    return path


def planned(folder: Path, url: str) -> Plan:
    path = folder / "sidecar.toml"
    path.write_text(TEXT.format(url=url, folder=folder))
    return load(path)


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A configuration whose calibration was made by the command."""
    run("calibrate", flags(tmp_path), "--mechanism", LABORATORY, "--chunk", N, "--out", tmp_path / "mine.npz")
    planned(tmp_path, NO_BROKER)
    return tmp_path / "sidecar.toml"


def test_a_calibration_comes_back_with_what_it_takes_off(config: Path) -> None:
    made = calibrations.load(config.parent / "mine.npz")
    assert (made.mechanism, made.n, made.names) == ("unary", N, ("right",))
    assert type(made.takes_off).__name__ == "Usual"
    assert made.content_hash == calibrations.load(config.parent / "mine.npz").content_hash


def test_the_guarantee_is_in_its_own_words(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stream = load(config).streams["spells"]
    short = dict(summary(stream))
    assert short["comes out"].endswith(" at 1 rows a second, 1 s at once")
    assert "levels" not in short
    made = stream.guarantee
    said = dict(made.sentences())
    assert said["claim"].startswith("6-differential privacy (pure) for one spell after the first one of its session,")
    assert said["unit"].startswith("one spell: a spell of 4 flags (1 s) of one device. Two spells are neighbours")
    assert (said["spell"], said["bits"]) == ("epsilon 6", "several bits of a spell may be 1, or none")
    assert said["usual side"] == "the first 1 s of each session are withheld, and say which side is usual in it"
    scopes = {scope.unit: scope for scope in made.scopes}
    assert scopes["gaze event"].ceiling == scopes["side"].ceiling == 720.0
    assert scopes["gaze event, after the first spell"].loss is not None
    capsys.readouterr()
    run("guarantee", "--config", config, "--json")
    claim = json.loads(capsys.readouterr().out)["spells"]
    assert (claim["usual"], claim["bits"], claim["loss"]["unit"]) == ({"spells": 1}, N + 1, "spell")


def test_check_says_what_a_second_of_gaze_enters(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):  # there is neither a ledger nor a broker
        run("check", "--config", config)
    said = capsys.readouterr().out
    assert "calibration, epsilon, budget and sources fit" in said
    assert "one second of gaze that enters no usual side enters up to 3 chunks of spells, epsilon 18 (the front" in said


def test_recordings_are_released_by_the_command(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = config.parent
    words = ("--mechanism", PLACE, "--calibration", folder / "mine.npz", "--epsilon", EPSILON, "--out", folder / "out")
    calibrating = recordings.load(folder / "flags.npz")
    recordings.save(replace(calibrating, features=1.0 - calibrating.features), folder / "other.npz")
    run("privatize", folder / "other.npz", *words)
    found = recordings.load(folder / "out" / "other.npz")
    assert found.names == ("0 of 4", "1 of 4", "2 of 4", "3 of 4", "4 of 4")
    assert np.isnan(found.features[0]).all()
    assert np.isin(found.features[1:], (0.0, 1.0)).all()
    claim = json.loads((folder / "out" / "other.npz.claim.json").read_text())
    assert (claim["chunks"], claim["epsilon"], claim["claim"]["bits"]) == (29, 29 * EPSILON, N + 1)
    assert "29 spells, epsilon 174 for the recording" in capsys.readouterr().out


def test_it_keeps_what_every_mechanism_must() -> None:
    registry.register(ENTRY)
    check_life(build(synthetic(N), EPSILON), levels=3)
    plain = synthetic(N)
    object.__setattr__(plain, "takes_off", None)
    check_any_input(build(plain, EPSILON))
    session, whole = (build(synthetic(N), EPSILON, noise=SeededNoise(3)).session() for _ in range(2))
    for one in (session, whole):
        one.anchor(np.ones((1, N)))
    restored = build(synthetic(N), EPSILON, noise=SeededNoise(3)).session(session.snapshot())
    np.testing.assert_array_equal(restored.release(np.zeros((1, N))), whole.release(np.zeros((1, N))))
    quiet = build(synthetic(N), EPSILON, noise=ZeroNoise()).session(session.snapshot())
    assert quiet.release(np.zeros((1, N)))[:, 0].tolist() != [1.0, 0.0, 0.0, 0.0, 0.0]  # other than usual


@pytest.mark.parametrize("epsilon", [1e-3, 1.0, EPSILON, 20.0])
def test_the_odds_are_within_epsilon_and_not_much_less(epsilon: float) -> None:
    weight = weight_for(epsilon)
    odds = Fraction(2**64 - weight, weight) ** 2
    assert math.log(odds) == pytest.approx(epsilon, rel=1e-9)
    assert odds <= Fraction(math.exp(epsilon)) * (1 + Fraction(1, 2**50))
    assert Fraction(2**64 - weight + 2**30, weight - 2**30) ** 2 > odds


def test_the_audit_tries_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bound is false once in a thousand times; the noise is seeded."""
    registry.register(ENTRY)
    case = Case("unary", N, None, 2.0, 40_000)
    bound = lower_bound(*count(trial_of(case, SeededNoise(5)), case.draws)).epsilon
    assert 0.9 * 2.0 < bound <= 2.0
    monkeypatch.setattr("tests.product.drill.unary.mechanism.weight_for", lambda epsilon: weight_for(1.3 * epsilon))
    assert lower_bound(*count(trial_of(case, SeededNoise(5)), case.draws)).epsilon > 2.0


def test_the_study_has_its_form() -> None:
    registry.register(ENTRY)
    [subject] = subjects_of([], "unary", LABORATORY, (N,))
    assert (subject.mechanism, subject.n, dict(subject.recipe)) == (LABORATORY, N, {"share": 0.75})


def test_a_founder_adds_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_ENTRIES", {})
    monkeypatch.setitem(registry.PRODUCT, "unary", PLACE)
    assert registry.entry_of("unary") is ENTRY
    assert mechanism_elsewhere(PLACE, "--mechanism") is ENTRY


async def test_a_sidecar_releases_it_live_and_an_application_reads_it(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of every session the first spell is withheld, and the ledger has what was released."""
    monkeypatch.setattr(sources, "HOST_SPEED", SPEED)
    heard: list[Chunk] = []
    async with embedded_broker() as url:
        plan = planned(config.parent, url)
        create_ledger(plan.settings.sidecar.ledger, created=0)
        with assemble(plan, lambda: 20_000) as made:
            async with at_work(made.sidecar), subscribe(url, "hmd-1", stream="spells") as chunks:
                async with asyncio.timeout(60):
                    async for chunk in chunks:
                        heard.append(chunk)
                        if len(heard) == 8:
                            break
            counters = made.sidecar.pipeline.counters
            assert counters.withheld["baseline"] >= len({chunk.session for chunk in heard}) > 0
        assert chunks.meta is not None
    assert chunks.meta.mechanism == "unary"
    assert {(chunk.values.shape, chunk.names[0]) for chunk in heard} == {((N + 1, 1), f"0 of {N}")}
    assert all(chunk.index > 0 and chunk.t[0] == chunk.index * N * STEP_S for chunk in heard)
    assert all(chunk.view.counts <= set(chunk.names) for chunk in heard)
    assert "several bits" in heard[0].guarantee
    odometer = read_ledger(plan.settings.sidecar.ledger).odometers["hmd-1"]
    charged, rest = divmod(odometer.epsilon, round(EPSILON * EPSILON_UNITS))
    assert rest == 0
    assert charged >= counters.released >= len(heard)
