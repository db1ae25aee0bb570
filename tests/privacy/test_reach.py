"""How far features go, evened out: by hand, in a release, in files, and what it does to who goes farther."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from eyestream.errors import CalibrationError
from eyestream.privacy.calibration import Calibration, JointTables
from eyestream.privacy.calibration.corpus import Corpus, whole_chunks
from eyestream.privacy.joint.adapt import adapt_joint
from eyestream.privacy.joint.calibrate import calibrate_joint
from eyestream.privacy.joint.reach import evened, usual_reach
from eyestream.privacy.mechanisms import build
from eyestream.rim.files import calibrations
from eyestream.testing.noise import SeededNoise
from tests.privacy.small_corpus import person, recordings

Array = NDArray[np.float64]
N = 32


@pytest.fixture(scope="module")
def even() -> Calibration:
    return calibrate_joint(Corpus.of(recordings(), N), anchored=True)


@pytest.fixture(scope="module")
def plain() -> Calibration:
    return calibrate_joint(Corpus.of(recordings(), N), anchored=True, evened=False)


def tables_of(calibration: Calibration) -> JointTables:
    assert isinstance(calibration.tables, JointTables)
    return calibration.tables


def test_a_feature_that_goes_four_times_as_far_as_usual_comes_out_twice_as_far() -> None:
    usual = np.array([[1.0, -1.0, 1.0, -1.0], [0.5, 0.5, 0.5, 0.5], [0.0, 0.0, 0.0, 0.0]])
    reach = np.array([1.0, 0.5, 1.0])
    np.testing.assert_allclose(evened(usual, reach), usual)
    np.testing.assert_allclose(evened(4 * usual, reach), 2 * usual)
    np.testing.assert_allclose(evened(usual / 10_000, reach), usual / 10_000 * 8)  # no more than that
    np.testing.assert_allclose(evened(np.stack([usual, 4 * usual]), reach), np.stack([usual, 2 * usual]))


def test_the_usual_reach_keeps_the_mean_square() -> None:
    rng = np.random.default_rng(1)
    chunks = rng.normal(size=(50, 3, N)) * np.exp(0.5 * rng.normal(size=(50, 3, 1)))
    present = rng.random((50, 3)) < 0.8
    chunks *= present[:, :, None]
    moved = evened(chunks, usual_reach(chunks, present))
    np.testing.assert_allclose((moved**2).sum(axis=(0, 2)), (chunks**2).sum(axis=(0, 2)), rtol=1e-9)
    assert (usual_reach(np.zeros((4, 3, N)), np.ones((4, 3), np.bool_)) == 1).all()


def test_a_release_codes_what_is_evened(even: Calibration) -> None:
    """The scores of a release are those of the standardised levels, evened by the definition, in the file's order."""
    mechanism = build(even, 9.6)
    core, tables = mechanism.core, tables_of(even)
    active = mechanism.frame.active
    assert tables.knots is not None
    assert tables.levels is not None
    assert tables.reach is not None
    chunk = np.clip(whole_chunks(person(3), N)[5], even.lo[:, None], even.hi[:, None])[active]
    level = np.array([np.interp(v, tables.knots[f], tables.levels[f]) for v, f in zip(chunk, active, strict=True)])
    level = (level - tables.mean[active][:, None]) / tables.sd[active][:, None]
    far = np.sqrt((level**2).mean(axis=1))
    level *= np.sqrt(tables.reach[active] / np.maximum(far, tables.reach[active] / 64))[:, None]
    wanted = (level @ tables.modes.T).reshape(-1) @ tables.basis
    np.testing.assert_allclose(core.step().scores(chunk), wanted, rtol=1e-9, atol=1e-12)  # type: ignore[attr-defined]


def far_of(calibration: Calibration, factor: float) -> Array:
    """(3,) how far features that vary are seen to go of one who goes `factor` times as far as another."""
    session = build(calibration, 96.0, noise=SeededNoise(4)).session()
    chunks, out = whole_chunks(person(77), N), []
    middle = chunks[:4].mean(axis=(0, 2))[:, None]
    for i, chunk in enumerate(chunks):
        if session.awaits_baseline:
            session.anchor(middle + 0 * chunk)
        else:
            ahead = np.sin(np.arange(N) / 4 + i)  # the same course, whoever it is
            spread = (calibration.hi - calibration.lo)[:, None] / 40
            out.append(session.release(middle + factor * spread * ahead))
    return np.asarray(np.array(out).std(axis=(0, 2))[[0, 1, 4]])


def test_who_goes_farther_is_seen_to_go_less_far_than_he_does(even: Calibration, plain: Calibration) -> None:
    kept, seen = (np.log(far_of(one, 4.0) / far_of(one, 1.0)).mean() for one in (plain, even))
    assert kept > 0.8
    assert seen < 0.7 * kept


def test_it_is_kept_in_files_and_by_adaption_and_without_it_nothing_changes(
    even: Calibration, plain: Calibration, tmp_path: Path
) -> None:
    calibrations.save(even, tmp_path / "even.npz")
    again = tables_of(calibrations.load(tmp_path / "even.npz"))
    np.testing.assert_array_equal(again.reach, tables_of(even).reach)
    adapted, _ = adapt_joint(even, Corpus.of(recordings()[:6], N))
    np.testing.assert_array_equal(tables_of(adapted).reach, tables_of(even).reach)
    assert tables_of(plain).reach is None
    assert tables_of(calibrate_joint(Corpus.of(recordings(), N))).reach is None
    assert even.content_hash != plain.content_hash


def test_what_does_not_fit_is_refused(even: Calibration) -> None:
    tables = tables_of(even)
    assert tables.reach is not None
    for reach in (tables.reach[:-1], 0 * tables.reach, np.full_like(tables.reach, np.nan)):
        with pytest.raises(CalibrationError, match="reach"):
            replace(even, tables=replace(tables, reach=reach))
    with pytest.raises(CalibrationError, match="evened is for features on maps"):
        calibrate_joint(Corpus.of(recordings(), N), ranks=False, anchored=True, evened=True)
