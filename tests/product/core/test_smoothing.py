"""Smoothing: against a filter written out for one feature, and that it sees releases alone."""

import numpy as np
import pytest

from eyestream.core.additive.core import AdditiveStep, Smoother
from eyestream.core.additive.signals import DifferenceFourierTransform, FourierTransform, TimeTransform
from eyestream.core.mechanisms import CFPA, DCFPA, LPA, build
from eyestream.errors import CalibrationError
from eyestream.rim.files.recordings import Recording
from eyestream_lab.calibration import calibrate, declared_range
from eyestream_lab.calibration.corpus import Corpus, whole_chunks
from eyestream_lab.simulation.people import NAMES, load_statistics, simulate
from eyestream_lab.testing.noise import SeededNoise


def people(count: int, seed: int) -> list[Recording]:
    return [
        Recording(np.arange(len(rows)) / 2.0, rows.astype(np.float64), NAMES)
        for rows in simulate(load_statistics(), count, 400.0, seed)
    ]


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return Corpus.of(people(12, 2), 32)


def test_one_feature_by_hand() -> None:
    """The textbook recursion in plain numbers, for 90 chunks: past the end of the schedule too."""
    rng = np.random.default_rng(1)
    u, v, noise = 2.0, 0.7, 3.0
    smoother = Smoother(np.zeros((1, 4)), np.array([[u, v]]), np.array([0.0]), np.array([noise]), np.array([1.0]))
    state, x, p = smoother.start, np.zeros(2), np.diag([u, v])
    f, q = np.diag([1.0, 0.5]), np.diag([0.0, v * 0.75])
    for turn in range(90):
        seen = float(rng.normal())
        if turn:
            x = f @ x
            p = f @ p @ f + q
        gain = p.sum(axis=1) / (p.sum() + noise)
        x = x + gain * (seen - x.sum())
        p = p - np.outer(gain, p.sum(axis=0))
        ours, state = smoother.smooth(np.full((1, 4), seen), turn, state)
        np.testing.assert_allclose(ours, x.sum(), rtol=0, atol=1e-9 if turn < 60 else 0.02)
    assert smoother.sd[0] == pytest.approx(np.sqrt(p.sum()), rel=0.02)


@pytest.mark.parametrize("n", [8, 32])
@pytest.mark.parametrize("k", [1, 3, 5])
@pytest.mark.parametrize("make", [TimeTransform, FourierTransform, DifferenceFourierTransform])
def test_levels_are_the_means_of_what_coordinates_stand_for(make: type, k: int, n: int) -> None:
    """Written down in closed form, for the product with a unit would round in its own way on each machine."""
    transform = make(np.zeros((1, n))) if make is TimeTransform else make(np.zeros((1, n)), k)
    levels = transform.levels()
    means = [transform.chunk(unit[None]).mean() for unit in np.eye(len(levels))]
    np.testing.assert_allclose(levels, means, rtol=1e-12, atol=1e-15)


@pytest.mark.long
@pytest.mark.parametrize("mechanism", [LPA, CFPA, DCFPA])
def test_a_smoothed_session_is_a_function_of_the_plain_one(
    mechanism: type, corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two people whose plain releases agree (made so by hand) get the same smoothed ones."""
    calibration = calibrate(mechanism.name, corpus)
    ours, theirs = (mechanism(calibration, 48.0, noise=SeededNoise(3), smooth=True) for _ in range(2))
    rng = np.random.default_rng(0)
    plain = [rng.normal(size=(len(ours.frame.active), 32)) for _ in range(6)]
    released = {id(own.core): iter(plain) for own in (ours, theirs)}

    def by_hand(self: AdditiveStep, integers: object, out: np.ndarray) -> None:
        out[:] = next(released[id(self.core)])

    monkeypatch.setattr(AdditiveStep, "plain", by_hand)
    one, two = ours.session(), theirs.session()
    for chunk in corpus.chunks[:6]:
        np.testing.assert_array_equal(one.release(chunk), two.release(chunk * 0))


def explained(corpus: Corpus, mechanism: str, epsilon: float, **options: bool) -> float:
    calibration = calibrate(mechanism, corpus)
    active = ~calibration.constant
    error = base = np.zeros(int(active.sum()))
    for recording in people(6, 40):
        session = build(calibration, epsilon, noise=SeededNoise(1), **options).session()
        for chunk in whole_chunks(recording.features, 32):
            error = error + np.nansum((session.release(chunk) - chunk)[active] ** 2, axis=1)
            base = base + np.nansum((chunk - calibration.tables.mean)[active] ** 2, axis=1)
    return float(np.median(1 - error / base))


@pytest.mark.long
@pytest.mark.parametrize(("mechanism", "epsilon"), [("cfpa", 200.0), ("lpa", 3000.0)])
def test_smoothing_is_better_than_shrinking_is_better_than_nothing(
    corpus: Corpus, mechanism: str, epsilon: float
) -> None:
    plain, shrunk, smooth = (
        explained(corpus, mechanism, epsilon, **options) for options in ({}, {"shrink": True}, {"smooth": True})
    )
    assert plain < shrunk < smooth
    assert smooth > 0.1


def test_a_range_alone_cannot_smooth(corpus: Corpus) -> None:
    ranged = declared_range(calibrate("cfpa", corpus), 32)
    with pytest.raises(CalibrationError, match="smooth"):
        CFPA(ranged, 48.0, smooth=True)
