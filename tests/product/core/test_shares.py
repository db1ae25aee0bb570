"""Features that some people hardly move in: less is released of their estimate, and they sink nothing."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from eyestream.core.calibration import Calibration
from eyestream.core.mechanism import Mechanism
from eyestream.core.mechanisms import build
from eyestream.errors import CalibrationError
from eyestream.rim.files import calibrations
from eyestream.rim.files.recordings import Recording
from eyestream_lab.calibration.corpus import Corpus, whole_chunks
from eyestream_lab.calibration.joint import calibrate_joint
from eyestream_lab.simulation.people import NAMES as FEATURES
from eyestream_lab.simulation.people import load_statistics, simulate
from eyestream_lab.testing.noise import SeededNoise

Array = NDArray[np.float64]
N, ROWS, EPSILON = 32, 800, 4.8
NAMES = ("first", "second", "third", "seldom")
STILL = 0.01
"""How far most people go in the last feature, beside a few."""


def person(seed: int, far: float) -> Array:
    """Three walks that say much of each other, and a fourth: who goes `far` in it follows them there, others do not."""
    rng = np.random.default_rng(seed)
    walks = np.cumsum(rng.normal(size=(ROWS, 5)), axis=0) / 8
    shared = walks[:, :1]
    fourth = shared if far == 1 else walks[:, 4:]
    return np.concatenate([shared + 0.7 * walks[:, 1:4], far * fourth], axis=1)


def people(seeds: range, far: float) -> list[Recording]:
    t = np.arange(ROWS) / 2.0
    return [Recording(t, person(seed, far), NAMES, f"person {seed}") for seed in seeds]


CORPUS = Corpus.of([*people(range(5), 1.0), *people(range(5, 20), STILL)], N)


@pytest.fixture(scope="module")
def with_shares() -> Calibration:
    return calibrate_joint(CORPUS, anchored=True)


@pytest.fixture(scope="module")
def without() -> Calibration:
    return calibrate_joint(CORPUS, anchored=True, shares=False)


def released(mechanism: Mechanism, one: Recording) -> tuple[Array, Array]:
    """Rows behind the baseline, and what was released of them, each around its own mean."""
    session, raw, out = mechanism.session(), [], []
    for chunk in whole_chunks(one.features, mechanism.n):
        if session.awaits_baseline:
            session.anchor(chunk)
            continue
        raw.append(chunk.T)
        out.append(session.release(chunk).T)
    pair = np.concatenate(raw), np.concatenate(out)
    return pair[0] - pair[0].mean(axis=0), pair[1] - pair[1].mean(axis=0)


def explained(calibration: Calibration, group: list[Recording], draws: int = 1) -> Array:
    mechanism = build(calibration, EPSILON * calibration.n / N, noise=SeededNoise(5))
    pairs = [released(mechanism, one) for one in group for _ in range(draws)]
    error, base = (np.sum(sums, axis=0) for sums in zip(*(_sums(*pair) for pair in pairs), strict=True))
    return np.asarray(1 - error / np.where(base > 0, base, np.nan))


def _sums(raw: Array, out: Array) -> tuple[Array, Array]:
    return ((raw - out) ** 2).sum(axis=0), (raw**2).sum(axis=0)


def test_who_stands_still_in_a_feature_does_not_sink_the_others(with_shares: Calibration, without: Calibration) -> None:
    still = people(range(100, 110), STILL)
    before, after = (explained(one, still, draws=8) for one in (without, with_shares))  # one draw says little
    assert before[3] < -50
    assert after[3] > -5
    assert after[:3].mean() > before[:3].mean() + 0.05


def test_shares_are_small_where_scales_have_heavy_tails_alone(with_shares: Calibration, without: Calibration) -> None:
    shares = with_shares.tables.shares
    assert shares is not None
    assert shares[3] <= 0.25
    assert (shares[:3] >= 0.75).all()
    assert without.tables.shares is None
    even = calibrate_joint(Corpus.of(people(range(20), 1.0), N), anchored=True)
    assert even.tables.shares is not None
    assert (even.tables.shares >= 0.75).all()
    assert calibrate_joint(CORPUS).tables.shares is None  # levels of people are in it: no baseline


def test_the_stated_error_counts_what_is_held_back(without: Calibration) -> None:
    """Half of every estimate; on people like those who calibrate. To forget it would be off by more than a fifth."""
    half = replace(without, tables=replace(without.tables, shares=np.full(4, 0.5)))
    mechanism, squares = build(half, EPSILON), []
    for one in [*people(range(200, 210), 1.0), *people(range(210, 240), STILL)]:
        session = mechanism.session()
        chunks = whole_chunks(one.features, N)
        baseline = np.concatenate([c.T for c in chunks[:4]]).mean(axis=0)
        for chunk in chunks[:4]:
            session.anchor(chunk)
        centre = half.anchor.centre * 2.0 ** -half.anchor.shift.astype(float) if half.anchor is not None else 0.0
        given = [np.clip((c.T - baseline + centre).T, half.lo[:, None], half.hi[:, None]) for c in chunks[4:]]
        told = [session.release(chunk) for chunk in chunks[4:]]
        squares.append(np.mean([np.square(a - b).mean(axis=1) for a, b in zip(told, given, strict=True)][4:], axis=0))
    ratio = np.sqrt(np.mean(squares, axis=0)) / mechanism.noise_sd
    assert 1 / 1.25 < np.median(ratio[:3]) < 1.25


@pytest.mark.parametrize("n", [32, 64, 128])
def test_what_ships_has_shares(n: int) -> None:
    """Simulated people who hardly move in the feature that people differ most in."""
    shipped, still = calibrations.load(f"everyday-klt-anchored-{n}"), FEATURES.index("var_var_diameter")
    group = []
    for rows in simulate(load_statistics(), 6, 600.0, 21):
        values = rows.astype(np.float64)
        values[:, still] = values[:, still].mean() + 0.03 * (values[:, still] - values[:, still].mean())
        group.append(Recording(np.arange(len(values)) / 2.0, values, FEATURES))
    after = explained(shipped, group)
    before = explained(replace(shipped, tables=replace(shipped.tables, shares=None)), group)
    assert before[still] < -5
    assert after[still] > -1
    assert np.nanmean(after) > 0.2
    assert np.nanmean(after) > np.nanmean(before) + 0.1


@pytest.mark.parametrize("wrong", [np.ones(3), np.array([1, 1, 1, 1.1]), np.array([1, 1, 1, -0.1])])
def test_shares_that_are_none_are_refused(without: Calibration, wrong: Array) -> None:
    with pytest.raises(CalibrationError, match="the shares of the calibration"):
        replace(without, tables=replace(without.tables, shares=wrong))
