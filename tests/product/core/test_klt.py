"""Joint transform coding: what is private, what the state depends on, and that it is worth its epsilon."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from eyestream.core.calibration import Calibration
from eyestream.core.mechanisms import KLT, build
from eyestream.core.mechanisms.klt.core import JointStep
from eyestream.core.noise import Law
from eyestream.core.noise.response import ResponseLaw
from eyestream.errors import CalibrationError, ConfigError
from eyestream.rim.files import calibrations
from eyestream.rim.files.recordings import Recording
from eyestream_lab.calibration.corpus import Corpus, whole_chunks
from eyestream_lab.calibration.joint import calibrate_joint
from eyestream_lab.simulation.people import NAMES, load_statistics, simulate
from eyestream_lab.testing.noise import SeededNoise, ZeroNoise

Array = NDArray[np.float64]
N = 32


def people(count: int, seed: int) -> list[Recording]:
    return [
        Recording(np.arange(len(rows)) / 2.0, rows.astype(np.float64), NAMES, f"sim-{i}")
        for i, rows in enumerate(simulate(load_statistics(), count, 600.0, seed))
    ]


@pytest.fixture(scope="module")
def calibration() -> Calibration:
    return calibrate_joint(Corpus.of(people(16, 1), N))


@pytest.fixture(scope="module")
def shed() -> Calibration:
    return calibrate_joint(Corpus.of(people(16, 1), N), shed_identity=4.0)


@pytest.fixture(scope="module")
def chunks() -> Array:
    return whole_chunks(people(1, 77)[0].features, N)


class Forced:
    """Noise that replaces every code word by ones of its own."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)

    def ahead(self, law: Law) -> None:
        """Nothing to prepare."""

    def draw(self, law: Law) -> NDArray[np.int64]:
        """Replace, by any word."""
        assert isinstance(law, ResponseLaw)
        words = self._rng.integers(0, 64, law.shape) % np.concatenate([[2], law._cells]).astype(np.int64)
        words[0] = 1
        return words


def test_what_is_released_is_a_function_of_the_released_words_alone(calibration: Calibration, chunks: Array) -> None:
    """Replace every word: the outputs of two different people agree to the last bit, for a whole session."""
    ours, theirs = KLT(calibration, 9.6, noise=Forced(1)).session(), KLT(calibration, 9.6, noise=Forced(1)).session()
    hostile = np.full_like(chunks[0], 1e308)
    for chunk in chunks[:10]:
        np.testing.assert_array_equal(ours.release(chunk), theirs.release(hostile))


def test_a_filter_that_looks_at_the_raw_scores_is_seen(
    calibration: Calibration, chunks: Array, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control of the test above: prediction from the raw chunk instead of the released past."""
    raw = JointStep.release
    ours, theirs = KLT(calibration, 9.6, noise=Forced(1)).session(), KLT(calibration, 9.6, noise=Forced(1)).session()

    def leaking(self: JointStep, admitted: Array, *rest: Any) -> Array:
        scores, state = self.scores(admitted), raw(self, admitted, *rest)
        assert state is not None
        state[: len(scores)] += 1e-6 * scores
        return state

    monkeypatch.setattr(JointStep, "release", leaking)
    differs = [not np.array_equal(ours.release(c), theirs.release(np.zeros_like(c))) for c in chunks[:3]]
    assert any(differs)


def releases(mechanism: KLT, chunk: Array, count: int) -> Iterator[bytes]:
    for _ in range(count):
        yield mechanism.release(chunk).tobytes()


@pytest.mark.long
@pytest.mark.parametrize(("factor", "holds"), [(1.0, True), (0.6, False)])
def test_odds_of_every_output_between_two_extreme_chunks(
    calibration: Calibration, chunks: Array, factor: float, holds: bool
) -> None:
    """Count outputs of the first chunk of a session under two inputs; `factor` below 1 plants a fault."""
    mechanism = KLT(calibration, 1.0, noise=SeededNoise(8))
    law = mechanism.core.schedule.steps[0].law
    law._threshold = int(law._threshold * factor)
    first, second = calibration.lo[:, None].repeat(N, 1), calibration.hi[:, None].repeat(N, 1)
    counts = [{}, {}]
    for own, chunk in zip(counts, (first, second), strict=True):
        for output in releases(mechanism, chunk, 12_000):
            own[output] = own.get(output, 0) + 1
    assert counts[0].keys() == counts[1].keys()
    assert len(counts[0]) == 2 ** sum(len(p).bit_length() - 1 for p in mechanism.core.schedule.steps[0].points)
    odds = max(abs(np.log(counts[0][o] / counts[1][o])) for o in counts[0])
    assert bool(odds < 1.15) is holds  # six standard errors above epsilon
    assert odds > 0.85


def test_hostile_chunks_are_released_like_any_other(calibration: Calibration) -> None:
    mechanism = KLT(calibration, 4.8, noise=SeededNoise(2))
    session = mechanism.session()
    for value in (np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324):
        released = session.release(np.full((52, N), value))
        assert np.isfinite(released).all()
        assert (released >= np.minimum(calibration.lo, calibration.fill)[:, None]).all()
        assert (released <= np.maximum(calibration.hi, calibration.fill)[:, None]).all()


def test_constants_are_never_read(calibration: Calibration, chunks: Array) -> None:
    constant = calibration.constant
    assert constant.sum() >= 4
    changed = chunks[0].copy()
    changed[constant] = 1e9
    one, two = (KLT(calibration, 48.0, noise=ZeroNoise()).release(c) for c in (chunks[0], changed))
    np.testing.assert_array_equal(one, two)
    np.testing.assert_array_equal(one[constant], calibration.fill[constant][:, None].repeat(N, 1))


def explained(calibration: Calibration, epsilon: float, fresh: list[Recording], seeds: int, first: int = 0) -> float:
    """Explained variance, as the study defines it, of chunks from index `first` on."""
    active = ~calibration.constant
    mean = calibration.fill[active][:, None]
    error = base = np.zeros(int(active.sum()))
    for seed in range(seeds):
        mechanism = build(calibration, epsilon, noise=SeededNoise(seed))
        for recording in fresh:
            session = mechanism.session()
            for index, chunk in enumerate(whole_chunks(recording.features, calibration.n)):
                released = session.release(chunk)
                if index >= first:
                    error = error + np.nansum((released - chunk)[active] ** 2, axis=1)
                    base = base + np.nansum((chunk[active] - mean) ** 2, axis=1)
    return float(1 - np.mean(error / base))


FOLLOWING = ("rate_large_saccades", "rate_negative_saccades", "ratio_large_saccades", "ratio_negative_saccades",
             "wb1_mean", "wb2_range", "wb3_range", "wb4_range")  # fmt: skip
"""Multiples, sums and repetitions of other features."""


def clipped_share(calibration: Calibration, epsilon: float, fresh: list[Recording], seeds: int) -> Array:
    """(F,) explained variance of rows clipped to the calibration's range, where they have a value."""
    mean, lo, hi = (a[:, None] for a in (calibration.fill, calibration.lo, calibration.hi))
    error = base = np.zeros(len(calibration.names))
    for seed in range(seeds):
        mechanism = build(calibration, epsilon, noise=SeededNoise(seed))
        for recording in fresh:
            session = mechanism.session()
            for chunk in whole_chunks(recording.features, calibration.n):
                released, wanted = session.release(chunk), np.clip(chunk, lo, hi)
                error = error + np.nansum((released - wanted) ** 2, axis=1)
                base = base + np.nansum((wanted - mean) ** 2, axis=1)
    return np.asarray(1 - error / np.where(calibration.constant, 1.0, base))


@pytest.mark.long
def test_more_epsilon_and_more_session_tell_more(calibration: Calibration) -> None:
    fresh = people(8, 55)
    low, middle, high = (explained(calibration, epsilon, fresh, 3) for epsilon in (0.48, 4.8, 48.0))
    assert 0 < low < middle < high
    assert high > 0.4
    little = explained(calibration, 2.4, fresh, 3)
    assert low < little < middle
    assert explained(calibration, 2.4, fresh, 3, first=8) > little  # at more, the first chunks tell nearly as much


def test_the_stated_error_is_the_measured_one(calibration: Calibration) -> None:
    fresh = people(12, 91)
    mechanism = KLT(calibration, 9.6, noise=SeededNoise(4))
    errors = []
    for recording in fresh:
        session = mechanism.session()
        pieces = [(session.release(c) - c) for c in whole_chunks(recording.features, N)]
        errors.append(np.mean(np.square(pieces[8:]), axis=(0, 2)))
    measured = np.sqrt(np.mean(errors, axis=0))
    ratio = np.median((measured / np.maximum(mechanism.noise_sd, 1e-12))[~calibration.constant])
    assert 0.75 < ratio < 1.35
    assert (mechanism.noise_sd[calibration.constant] == 0).all()


@pytest.mark.long
def test_shedding_identity_keeps_one_score_and_costs_utility(calibration: Calibration, shed: Calibration) -> None:
    assert shed.tables.basis.shape[1] == 1
    np.testing.assert_allclose(shed.tables.weights, [0.2, 1.0])
    fresh = people(6, 13)
    assert 0 < explained(shed, 9.6, fresh, 2) < explained(calibration, 9.6, fresh, 2)


def test_the_face_is_that_of_every_mechanism(calibration: Calibration, tmp_path: Path) -> None:
    calibrations.save(calibration, tmp_path / "klt")
    mechanism = build(calibrations.load(tmp_path / "klt"), 4.8, k=None)  # None is "not said"
    assert mechanism.name == "klt"
    assert mechanism.guarantee.startswith("4.8-differential privacy (pure)")
    assert KLT(calibration, 4.8, noise=ZeroNoise()).guarantee.startswith("none")
    assert mechanism.delta == 0
    with pytest.raises(ValueError, match="shape"):
        mechanism.release(np.zeros((52, N + 1)))
    for option in ({"k": 3}, {"clip": False}, {"shrink": True}, {"smooth": True}):
        with pytest.raises(ConfigError, match=f"klt has no option {next(iter(option))}; it takes focus"):
            build(calibration, 4.8, **option)
    for epsilon in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(ConfigError, match="epsilon"):
            build(calibration, epsilon)


def test_calibration_needs_people_and_sense() -> None:
    with pytest.raises(CalibrationError, match="3 people"):
        calibrate_joint(Corpus.of(people(2, 3), N))
    with pytest.raises(CalibrationError, match="shed_identity"):
        calibrate_joint(Corpus.of(people(3, 3), N), shed_identity=-1.0)


@pytest.mark.parametrize("n", [32, 64, 128])
def test_shipped_calibrations_release(n: int, chunks: Array) -> None:
    mechanism = build(calibrations.load(f"everyday-klt-{n}"), 4.8)
    assert mechanism.release(np.full((52, n), np.nan)).shape == (52, n)
    assert mechanism.calibration.provenance.people == 30


@pytest.mark.long
@pytest.mark.parametrize("even", [True, pytest.param(False, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("epsilon", "bar"), [(0.48, 0.005), (4.8, 0.38), (24.0, 0.75)])
def test_utility_on_people_outside_the_calibration(
    everyday: list[Recording], even: bool, epsilon: float, bar: float
) -> None:
    """Clipped rows of the 15 people who are not in the calibration; `tools/make/frontier.py` measures with more seeds.

    And of the distinct features alone: those that others follow from must not carry the figure.
    """
    known, fresh = (everyday[::2], everyday[1::2]) if even else (everyday[1::2], everyday[::2])
    calibration = calibrate_joint(Corpus.of(known, N))
    every = clipped_share(calibration, epsilon, fresh, 5)
    released = ~calibration.constant
    assert released.sum() == 48
    assert every[released].mean() > bar
    distinct = released & ~np.isin(calibration.names, FOLLOWING)
    assert distinct.sum() == 40
    assert every[distinct].mean() > bar - 0.02


@pytest.mark.parametrize(
    "named",
    [
        ["blink_rate", "mean_fixation_duration"],
        ["rate_fixations", "mean_var_x", "mean_blink_duration", "mean_mean_diameter"],  # more than can be asked for
    ],
)
def test_a_focus_helps_the_features_that_it_names(calibration: Calibration, named: list[str]) -> None:
    """Expected errors: those that are named fall, others rise, and the claim is the same."""
    plain, focused = KLT(calibration, 9.6), build(calibration, 9.6, focus=named)
    chosen = np.isin(calibration.names, named)
    ratio = (focused.noise_sd / np.maximum(plain.noise_sd, 1e-12))[~calibration.constant]
    assert (ratio[chosen[~calibration.constant]] < 0.97).all()
    assert ratio[~chosen[~calibration.constant]].mean() > 1.0
    assert focused.guarantee == plain.guarantee
    assert focused.identity != plain.identity
    with pytest.raises(ConfigError, match="focus: expected names of released features, not 'wb1_min'"):
        build(calibration, 9.6, focus=["wb1_min"])
    with pytest.raises(ConfigError, match="not 'blink_rat'; did you mean blink_rate"):
        build(calibration, 9.6, focus=["blink_rat"])
    with pytest.raises(ConfigError, match="klt: option focus: expected a list of names"):
        build(calibration, 9.6, focus="blink_rate")
