"""Calibration tables from recordings: chunks, balls, truncation, constants, refusals."""

import math
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from eyestream.core.calibration import Calibration, PerFeatureTables
from eyestream.core.spectrum import difference, integrate
from eyestream.errors import CalibrationError
from eyestream.rim.files.recordings import Recording
from eyestream.streams import FrontEndMark
from eyestream_lab.calibration import calibrate
from eyestream_lab.calibration.corpus import Corpus, whole_chunks
from eyestream_lab.calibration.fingerprints import recording_hash

Array = NDArray[np.float64]
NAMES = ("a", "wb2_min", "still")


def recording(seed: int, rows: int = 70, rate: float = 2.0) -> Recording:
    rng = np.random.default_rng(seed)
    walk = np.cumsum(rng.normal(size=rows)) + 5 * rng.normal()
    features = np.stack([walk, rng.normal(size=rows), np.full(rows, 1e17)], axis=1)
    return Recording(np.arange(rows) / rate, features, NAMES, f"person {seed}")


def corpus(n: int = 32) -> Corpus:
    return Corpus.of([recording(seed) for seed in range(9)], n)


def tables(calibration: Calibration) -> PerFeatureTables:
    assert isinstance(calibration.tables, PerFeatureTables)
    return calibration.tables


def test_chunks_are_whole_and_do_not_overlap() -> None:
    rows = np.arange(70 * 2, dtype=float).reshape(70, 2)
    chunks = whole_chunks(rows, 32)
    assert chunks.shape == (2, 2, 32)
    np.testing.assert_array_equal(chunks.transpose(0, 2, 1).reshape(-1, 2), rows[:64])
    made = corpus()
    assert made.chunks.shape == (18, 3, 32)
    assert made.person.tolist() == [i // 2 for i in range(18)]
    assert made.index.tolist() == [0, 1] * 9
    assert made.hashes == tuple(recording_hash(recording(seed).features) for seed in range(9))


def signals(made: Corpus, mechanism: str) -> Array:
    return difference(made.chunks[:, 0]) if mechanism == "dcfpa" else made.chunks[:, 0]


@pytest.mark.parametrize("mechanism", ["lpa", "cfpa", "dcfpa"])
@pytest.mark.parametrize("coverage", [0.8, 0.95, 1.0])
def test_the_ball_holds_its_share_in_the_domain_that_the_noise_sees(mechanism: str, coverage: float) -> None:
    made = corpus()
    found = tables(calibrate(mechanism, made, coverage=coverage))
    order = 1 if mechanism == "lpa" else 2
    distance = np.linalg.norm(signals(made, mechanism) - found.centre[0], ord=order, axis=1)
    share = (distance <= found.radius[0] * (1 + 1e-12)).mean()
    assert coverage <= share <= coverage + 1 / 18 + 1e-9
    pairs = np.linalg.norm(signals(made, mechanism)[:, None] - signals(made, mechanism)[None], ord=order, axis=2)
    assert found.diameter[0] == pytest.approx(pairs.max())
    same_index = made.index[:, None] == made.index[None]
    assert found.between_people[0] == pytest.approx(np.where(same_index, pairs, 0).max())


@pytest.mark.parametrize("mechanism", ["cfpa", "dcfpa"])
def test_truncation_is_the_mean_loss_of_projection_and_low_pass(mechanism: str) -> None:
    made = corpus()
    found = tables(calibrate(mechanism, made, coverage=0.8))
    y = signals(made, mechanism) - found.centre[0]
    y *= np.minimum(1, found.radius[0] / np.linalg.norm(y, axis=1))[:, None]
    for k in (1, 2, 9, 17):
        spectrum = np.fft.rfft(y + found.centre[0], axis=1)
        spectrum[:, k:] = 0
        kept = np.fft.irfft(spectrum, 32, axis=1)
        kept = integrate(kept) if mechanism == "dcfpa" else kept
        loss = ((made.chunks[:, 0] - kept) ** 2).sum(axis=1).mean()
        assert found.truncation[0, k - 1] == pytest.approx(loss, rel=1e-9)
    everything = tables(calibrate(mechanism, made, coverage=1.0)).truncation[0]
    assert everything[-1] == pytest.approx(0, abs=1e-9 * everything[0])
    assert (np.diff(everything) < 1e-9).all() or mechanism == "dcfpa"


def test_constants_are_declared_or_without_any_change() -> None:
    calibration = calibrate("cfpa", corpus())
    assert calibration.declared.tolist() == [False, True, False]
    assert calibration.constant.tolist() == [False, True, True]
    assert calibration.fill[2] == 1e17
    other = calibrate("cfpa", corpus(), declared=("a",))
    assert other.constant.tolist() == [True, False, True]


def test_range_and_fill_ignore_what_is_missing() -> None:
    people = [recording(seed) for seed in range(3)]
    people[0].features[3:9, 0] = math.nan
    people[1].features[5, 0] = math.inf
    made = Corpus.of(people, 32)
    present = np.concatenate([p.features[:, 0] for p in people])
    present = present[np.isfinite(present)]
    assert (made.lo[0], made.hi[0]) == (present.min(), present.max())
    assert made.fill[0] == pytest.approx(present.mean())
    assert np.isfinite(made.chunks).all()
    assert (made.chunks[0, 0, 3:9] == people[0].features[2, 0]).all()  # held, as the mechanisms hold


def test_recordings_that_do_not_fit_are_refused() -> None:
    one = recording(0)
    with pytest.raises(CalibrationError, match="at least one"):
        Corpus.of([], 32)
    with pytest.raises(CalibrationError, match="other features"):
        Corpus.of([one, replace(one, names=("a", "b", "c"))], 32)
    with pytest.raises(CalibrationError, match="another rate"):
        Corpus.of([one, recording(1, rate=1.0)], 32)
    with pytest.raises(CalibrationError, match="no recording holds a whole chunk of 128 rows"):
        Corpus.of([one], 128)
    with pytest.raises(CalibrationError, match="another front end"):
        Corpus.of([one, replace(recording(1), front_end=FrontEndMark("glasses", "a", "b"))], 32)
    nothing = replace(recording(1), features=np.full_like(one.features, math.nan))
    with pytest.raises(CalibrationError, match="no recording has a value"):
        Corpus.of([nothing], 32)
    with pytest.raises(CalibrationError, match="person 1 holds no chunk with a value"):
        Corpus.of([one, nothing], 32)


@pytest.mark.parametrize("mechanism", ["lpa", "cfpa", "dcfpa"])
def test_what_nobody_has_is_a_constant_and_what_somebody_lacks_is_left_out_there(mechanism: str) -> None:
    people = [recording(seed) for seed in range(9)]
    for person in people:
        person.features[:, 2] = math.nan
    for person in people[:2]:
        person.features[:, 0] = math.nan
    people[3].features[:40] = math.nan  # a lost eye: the first chunk is no chunk, the second one begins late
    made = Corpus.of(people, 32)
    assert len(made.chunks) == 17
    assert made.index[made.person == 3].tolist() == [1]
    assert made.lacks == "still: of nobody, released as constants; a: of 7 people"
    whole = calibrate(mechanism, made)
    assert whole.constant.tolist() == [False, True, True]
    assert (whole.lo[2], whole.hi[2], whole.fill[2]) == (0.0, 0.0, 0.0)
    assert whole.provenance.corpus.endswith(made.lacks)
    having = Corpus.of([replace(person, path="") for person in people[2:]], 32)
    seven = tables(calibrate(mechanism, having))
    for figure in ("centre", "radius", "mean", "spread", "stable_variance", "diameter", "between_people"):
        np.testing.assert_allclose(getattr(tables(whole), figure)[0], getattr(seven, figure)[0], err_msg=figure)


@pytest.mark.parametrize("coverage", [0.0, -0.5, 1.01, math.nan])
def test_a_coverage_that_is_none_is_refused(coverage: float) -> None:
    with pytest.raises(CalibrationError, match="coverage"):
        calibrate("cfpa", corpus(), coverage=coverage)


@pytest.mark.parametrize("k", [0, 18])
def test_a_k_outside_is_refused(k: int) -> None:
    with pytest.raises(CalibrationError, match="k must lie between 1 and 17"):
        calibrate("cfpa", corpus(), k=k)
