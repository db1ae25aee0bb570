"""The example of one category a slot: its law is exact, wrong versions are seen, and a chunk is (1, 1) on every way."""

import itertools
import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import category_response as example
import category_response_lab  # noqa: F401  makes its calibration known
import numpy as np
import pytest

from eyestream.claims.guarantee import guarantee_of
from eyestream.cli import main as command
from eyestream.core.charge import EPSILON_UNITS, Ceilings
from eyestream.core.mechanism import Mechanism
from eyestream.core.mechanisms import build
from eyestream.core.scopes import Deployment
from eyestream.errors import CalibrationError, ConfigError
from eyestream.rim.config import PrivacySettings
from eyestream.rim.files import calibrations, recordings
from eyestream.rim.files.recordings import Recording
from eyestream.rim.ledger.reading import read_ledger
from eyestream.rim.plan import resolved
from eyestream.rim.sidecar.assembly import assemble
from eyestream.sdk.publisher import Publisher
from eyestream.streams import StreamSpec
from eyestream_lab.calibration import Corpus, calibrate
from eyestream_lab.recordings.privatize import privatize
from eyestream_lab.testing.clocks import until
from eyestream_lab.testing.mechanisms import check_any_input, check_frozen, check_life, check_sessions, some_chunks
from eyestream_lab.testing.noise import SeededNoise, ZeroNoise
from tests.rigs.mosquitto import Mosquitto
from tests.rigs.noise import any_noise_taken
from tests.rigs.sidecar import at_work, settings_for
from tests.rigs.spy import spying

K, NAMES = 5, ("activity",)


def recording(rows: int = 20, seed: int = 0) -> Recording:
    values = np.random.default_rng(seed).integers(0, K, (rows, 1)).astype(np.float64)
    return Recording(np.arange(rows) / 1.0, values, NAMES, f"p{seed}")


def made(epsilon: float = 2.0, **options: Any) -> Mechanism:
    return build(calibrate("category-response", Corpus.of([recording()], 1), categories=K), epsilon, **options)


def law(weight: int, categories: int) -> list[list[Fraction]]:
    """P(released | own), of the weight of each other category."""
    other, own = Fraction(weight, example.WHOLE), Fraction(example.WHOLE - (categories - 1) * weight, example.WHOLE)
    return [[own if i == j else other for j in range(categories)] for i in range(categories)]


def odds(weight: int, categories: int) -> Fraction:
    """The largest ratio of the probabilities of an output under any two inputs, by brute force."""
    rows = law(weight, categories)
    return max(p / q for one, other in itertools.permutations(rows, 2) for p, q in zip(one, other, strict=True))


@pytest.mark.parametrize("categories", [2, 3, 5, 8, 37])
@pytest.mark.parametrize("epsilon", [1e-3, 0.5, 1.0, 4.8, 20.0])
def test_the_odds_of_every_output_are_within_epsilon_and_not_much_less(epsilon: float, categories: int) -> None:
    weight = example.weight_for(epsilon, categories)
    assert sum(law(weight, categories)[0]) == 1
    assert math.log(odds(weight, categories)) == pytest.approx(epsilon, rel=1e-12)
    exact = Fraction(math.exp(epsilon))
    assert odds(weight, categories) <= exact * (1 + Fraction(1, 2**50))
    too_small = weight - weight // 10**6
    assert odds(too_small, categories) > exact * (1 + Fraction(1, 10**7))


def test_draws_have_the_law() -> None:
    """chi-square of 40,000 draws over K cells: above 30 once in 200,000 times (4 degrees of freedom); seeded."""
    own = example.ShiftLaw(1.0, K)
    noise = SeededNoise(3)
    counts = np.bincount([int(noise.draw(own)[0]) for _ in range(40_000)], minlength=K)
    weights = {right: example.weight_for(epsilon, K) for right, epsilon in ((True, 1.0), (False, 1.1))}
    for right, weight in weights.items():
        expected = 40_000 * np.array([float(p) for p in law(weight, K)[0]])
        assert bool(((counts - expected) ** 2 / expected).sum() < 30) is right


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e308, -3.0, 2.4])
def test_whatever_comes_in_there_is_one_category(value: float) -> None:
    found = made(noise=ZeroNoise()).release(np.array([[value]]))
    assert found.shape == (1, 1)
    assert found[0, 0] == {2.4: 2.0, 1e308: K - 1.0}.get(value, 0.0)


def test_it_holds_to_what_every_mechanism_does() -> None:
    mechanism = made(noise=SeededNoise(0))
    check_frozen(mechanism, some_chunks(mechanism, 3))
    check_sessions(lambda: made(noise=SeededNoise(0)), some_chunks(mechanism, 3))
    check_any_input(mechanism)
    check_life(made(), levels=3)


def test_the_stated_error_is_the_measured_one() -> None:
    """2,000 draws of each category; 5 % is above four standard errors. Seeded."""
    mechanism = made(1.0, noise=SeededNoise(5))
    errors = [mechanism.release(np.array([[float(i % K)]]))[0, 0] - i % K for i in range(10_000)]
    assert np.sqrt(np.mean(np.square(errors))) == pytest.approx(mechanism.noise_sd[0], rel=0.05)


def test_the_guarantee_is_of_one_slot() -> None:
    stream = StreamSpec("activity", 1, NAMES, ("1",), 1.0, 1.0)
    guarantee = guarantee_of(made(), Deployment(stream, Ceilings.of(10, 20.0, 100.0)))
    words = dict(guarantee.sentences())
    assert guarantee.statement.startswith("2-differential privacy (pure) for one chunk of 1 row of one device")
    assert words["unit"].startswith("one chunk: one row (1 s) of one device. Two chunks are")
    assert "k-ary randomised response on the category of a slot" in words["noise"]
    assert {scope.unit: scope.chunks for scope in guarantee.scopes}["second of gaze"] == 2
    assert made().schema.shape == (1, 1)


@pytest.mark.parametrize("n", [2, 32])
def test_a_calibration_of_other_chunks_is_refused(n: int) -> None:
    other = calibrate("category-response", Corpus.of([recording(64)], n), categories=K)
    with pytest.raises(
        CalibrationError, match=rf"one category a slot is a chunk of the shape \(1, 1\), not \(1, {n}\)"
    ):
        build(other, 2.0)


def test_categories_are_declared() -> None:
    for wrong in (0, 1, 5000):
        with pytest.raises(ConfigError, match=f"categories: expected 2 to 4096, not {wrong}"):
            calibrate("category-response", Corpus.of([recording()], 1), categories=wrong)


def test_recordings_go_through_the_offline_door_slot_by_slot() -> None:
    mechanism = made(noise=ZeroNoise())
    with any_noise_taken():
        [released] = privatize([recording()], mechanism.calibration, mechanism)
    np.testing.assert_array_equal(released.recording.features, recording().features)
    assert (released.chunks, released.epsilon) == (20, 40.0)


def run(*words: object) -> None:
    command.main([str(word) for word in words])


def test_the_commands_take_it_from_its_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place, path = ("--mechanism", "category_response:ENTRY"), tmp_path / "p.npz"
    calibrating = ("--mechanism", "category_response_lab:ENTRY")
    recordings.save(recording(), path)
    run("calibrate", path, *calibrating, "--chunk", 1, "--option", f"categories={K}", "--out", tmp_path / "mine.npz")
    with pytest.raises(SystemExit):
        run("calibrate", path, *calibrating, "--chunk", 4, "--option", f"categories={K}", "--out", tmp_path / "no.npz")
    assert "--chunk must be 1, not 4" in capsys.readouterr().err
    recordings.save(recording(seed=1), path)  # somebody else's
    run("privatize", path, *place, "--calibration", tmp_path / "mine.npz", "--epsilon", 2, "--out", tmp_path / "out")
    claim = json.loads((tmp_path / "out" / "p.npz.claim.json").read_text())
    assert (claim["chunks"], claim["epsilon"], claim["claim"]["promise"]["variant"]) == (20, 40.0, "pure")


async def test_a_sidecar_releases_one_slot_at_a_time(mosquitto: Mosquitto, tmp_path: Path) -> None:
    calibrations.save(made().calibration, tmp_path / "mine.npz")
    privacy = PrivacySettings(str(tmp_path / "mine.npz"), 2.0, mechanism="category_response:ENTRY")
    settings = settings_for(
        mosquitto.url, tmp_path, raw_url=mosquitto.url, names=NAMES, rate_hz=1.0, window_s=1.0, privacy=privacy
    )
    with assemble(resolved(settings), lambda: 20_000) as sidecar:
        async with (
            spying(mosquitto.url) as spy,
            at_work(sidecar.sidecar),
            Publisher(mosquitto.url, "hmd-1", NAMES, 1.0) as publisher,
        ):
            await until(lambda: sidecar.sidecar.raw_stands and sidecar.sidecar.private_stands)
            assert await publisher.send(recording(7).features)
            await until(lambda: len(spy.leaf("private")) >= 7)
        chunks = spy.leaf("private")
        assert [tuple(chunk["shape"]) for chunk in chunks] == [(1, 1)] * 7
        assert [chunk["t0"] for chunk in chunks] == [float(i) for i in range(7)]
        values = [np.frombuffer(chunk["values"], "<f4") for chunk in chunks]
        assert all(value.shape == (1,) and value[0] in range(K) for value in values)
    assert read_ledger(settings.sidecar.ledger).odometers["hmd-1"].epsilon == 14 * EPSILON_UNITS
