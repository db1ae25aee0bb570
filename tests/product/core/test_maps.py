"""Maps of features in a calibration and its file, the error that is stated with them, and what looking back adds."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from eyestream.core.calibration import Calibration, JointTables
from eyestream.core.mechanisms import build
from eyestream.core.mechanisms.klt.schedule import ComponentMotion
from eyestream.errors import CalibrationError
from eyestream.rim.files import calibrations
from eyestream_lab.calibration.corpus import Corpus, whole_chunks
from eyestream_lab.calibration.joint import calibrate_joint
from eyestream_lab.hindsight import hindsight
from eyestream_lab.hindsight.klt import backward
from eyestream_lab.testing.noise import SeededNoise
from tests.rigs.small_corpus import person, recordings

Array = NDArray[np.float64]
N = 32


@pytest.fixture(scope="module")
def mapped() -> Calibration:
    return calibrate_joint(Corpus.of(recordings(), N))


def test_files_keep_the_map(mapped: Calibration, tmp_path) -> None:  # type: ignore[no-untyped-def]
    calibrations.save(mapped, tmp_path / "mine.npz")
    again = calibrations.load(tmp_path / "mine.npz")
    assert again.content_hash == mapped.content_hash
    chunk = whole_chunks(person(77), N)[0]
    first, second = (build(c, 4.8, noise=SeededNoise(1)).session().release(chunk) for c in (mapped, again))
    np.testing.assert_array_equal(first, second)


def test_a_map_that_does_not_rise_is_refused(mapped: Calibration) -> None:
    tables = mapped.tables
    assert isinstance(tables, JointTables)
    assert tables.knots is not None
    flat = tables.knots.copy()
    flat[0, 5] = flat[0, 4]
    with pytest.raises(CalibrationError, match="does not rise"):
        replace(mapped, tables=replace(tables, knots=flat))
    for wrong in (None, tables.knots[1:], tables.knots[:, :1]):
        with pytest.raises(CalibrationError, match="maps of the calibration"):
            replace(mapped, tables=replace(tables, knots=wrong))


def test_the_stated_error_is_the_measured_one_in_the_units_of_the_feature(mapped: Calibration) -> None:
    mechanism = build(mapped, 9.6, noise=SeededNoise(4))
    squares = []
    for seed in range(200, 216):
        session = mechanism.session()
        pieces = [
            session.release(c) - np.clip(c, mapped.lo[:, None], mapped.hi[:, None])
            for c in whole_chunks(person(seed), N)
        ]
        squares.append(np.mean(np.square(pieces[4:]), axis=(0, 2)))
    ratio = (np.sqrt(np.mean(squares, axis=0)) / np.maximum(mechanism.noise_sd, 1e-12))[~mapped.constant]
    assert 1 / 1.5 < np.median(ratio) < 1.5


def test_looking_back_tells_more_and_is_a_function_of_what_was_released(mapped: Calibration) -> None:
    mechanism = build(mapped, 4.8, noise=SeededNoise(6))
    live = later = base = 0.0
    for seed in range(300, 308):
        session, states, chunks = mechanism.session(), [], whole_chunks(person(seed), N)
        released = []
        for chunk in chunks:
            released.append(session.release(chunk))
            states.append(session.state)
        better = hindsight(mechanism, states)
        assert better is not None
        np.testing.assert_array_equal(better[-1], released[-1])
        wanted = np.clip(chunks, mapped.lo[:, None], mapped.hi[:, None])
        spread = np.maximum(mapped.hi - mapped.lo, 1e-9)[:, None]
        live += float((((np.array(released) - wanted) / spread) ** 2).sum())
        later += float((((np.array(better) - wanted) / spread) ** 2).sum())
        base += float((((mapped.fill[:, None] - wanted) / spread) ** 2).sum())
    assert later < 0.98 * live < 0.98 * base
    again = hindsight(mechanism, states)
    assert again is not None
    np.testing.assert_array_equal(again, better)


def test_looking_back_agrees_with_all_of_a_gaussian_session_at_once(mapped: Calibration) -> None:
    """The smoother against the whole session as one linear regression, with the codes of the schedule."""
    core = build(mapped, 9.6).core
    schedule = core.schedule
    size, turns, rng = len(core.start), 6, np.random.default_rng(9)
    d = size // len(core.tables.poles)
    first, moves = np.zeros((2, size, size))
    assert core.tables.moves is not None
    for j, (own, move) in enumerate(zip(core.tables.covariances, core.tables.moves, strict=True)):
        first[j * d : (j + 1) * d, j * d : (j + 1) * d] = own
        moves[j * d : (j + 1) * d, j * d : (j + 1) * d] = move
    later = [np.linalg.matrix_power(moves, lag) @ first for lag in range(turns)]  # E x(t + lag) x(t)'
    prior = np.block([[later[t - s] if t >= s else later[s - t].T for s in range(turns)] for t in range(turns)])
    total = np.tile(np.eye(d), len(core.tables.poles))
    rows, noises, states, state = [], [], [], np.zeros(size)
    innovations = []
    for t in range(turns):
        step = schedule.steps[t]
        before = moves @ state if t else state
        z = rng.normal(size=len(step.points))
        state = before + step.gain @ z
        states.append(state)
        innovations.append((t, step, before, z))
    turned = list(schedule.turns())
    for t, step, before, z in innovations:
        _, unknown, _ = turned[t]
        # gain = unknown o' (o unknown o' + R)^-1, hence o and R from the code of this step
        seen = _observed(step, total, unknown)
        rows.append(np.hstack([seen if s == t else np.zeros((len(seen), size)) for s in range(turns)]))
        noises.append((z + seen @ before, _residual(step, seen, unknown)))
    design, told = np.vstack(rows), np.concatenate([z for z, _ in noises])
    spread = np.zeros((len(told), len(told)))
    at = 0
    for _, residual in noises:
        spread[at : at + len(residual), at : at + len(residual)] = residual
        at += len(residual)
    whole = prior @ design.T @ np.linalg.solve(design @ prior @ design.T + spread, told)
    np.testing.assert_allclose(np.concatenate(backward(schedule, states)), whole, rtol=1e-5, atol=1e-7)


def _observed(step, total: Array, unknown: Array) -> Array:  # type: ignore[no-untyped-def]
    """(m, J d) slope times directions of the step: the slope is read off the law and the quantisers."""
    theta = 1 - step.law.replace
    from eyestream.core.mechanisms.klt.codebook import quantiser

    power = np.array([quantiser(len(points).bit_length() - 1).power for points in step.points])
    observed: Array = ((theta * power)[:, None] * step.directions) @ total
    return observed


def _residual(step, seen: Array, unknown: Array) -> Array:  # type: ignore[no-untyped-def]
    """(m, m) R with gain (seen unknown seen' + R) = unknown seen'."""
    toward = unknown @ seen.T
    both: Array = np.linalg.lstsq(step.gain, toward, rcond=None)[0]
    return both - seen @ toward


def test_motion_keeps_what_is_stationary(mapped: Calibration) -> None:
    tables = mapped.tables
    assert isinstance(tables, JointTables)
    assert tables.moves is not None
    motion, state = ComponentMotion(tables), np.random.default_rng(3).normal(size=2 * tables.basis.shape[1])
    np.testing.assert_allclose(motion.spread(motion.stationary), motion.stationary, rtol=1e-9, atol=1e-9)
    stays, moves = np.split(motion.forward(state), 2)
    np.testing.assert_array_equal(stays, np.split(state, 2)[0])
    np.testing.assert_allclose(moves, tables.moves[1] @ np.split(state, 2)[1])
    assert (motion.stays == np.repeat([True, False], len(stays))).all()
    many = np.stack([motion.stationary, 2 * motion.stationary])
    np.testing.assert_allclose(motion.spread(many)[1], motion.spread(2 * motion.stationary))
    assert np.linalg.eigvalsh(motion.spread(0 * motion.stationary)).min() > -1e-9 * np.trace(motion.stationary)


def test_moves_that_leave_more_than_there_was_are_refused(mapped: Calibration) -> None:
    tables = mapped.tables
    assert isinstance(tables, JointTables)
    assert tables.moves is not None
    for wrong, said in ((1.1 * tables.moves, "more of a component"), (tables.moves[:1], "one matrix for each")):
        with pytest.raises(CalibrationError, match=said):
            replace(mapped, tables=replace(tables, moves=wrong))
