"""What stays and what forgets, learned from rows; and how chunks follow each other by it."""

import numpy as np
from numpy.typing import NDArray

from eyestream.core.calibration import Calibration, JointTables
from eyestream_lab.calibration.corpus import Corpus
from eyestream_lab.calibration.joint import calibrate_joint
from eyestream_lab.calibration.row_parts import MEMORIES_S, chunk_moments, fitted_parts, row_moments
from tests.rigs.small_corpus import recordings

Array = NDArray[np.float64]
RATE_HZ = 2.0
N = 32


def joint(calibration: Calibration) -> JointTables:
    assert isinstance(calibration.tables, JointTables)
    return calibration.tables


def parts() -> Array:
    """(3, 3, 3): features share what stays and what forgets slowly, and each forgets something of its own."""
    stays, slow = np.array([1.0, 0.5, 0.0]), np.array([0.3, 0.0, 1.2])
    return np.stack([np.outer(stays, stays), np.outer(slow, slow), np.diag([1.0, 0.4, 0.1])])


def decays(lag_s: Array) -> Array:
    """(3, L), written out."""
    return np.stack([np.ones(len(lag_s)), np.exp(-lag_s / 60.0), np.exp(-lag_s / 15.0)])


def test_parts_are_found_again_in_their_own_moments() -> None:
    lags_s = np.arange(0.0, 190.0, 6.0)
    moments = np.einsum("pl,pij->lij", decays(lags_s), parts())
    found = fitted_parts(lags_s, moments, np.full(len(lags_s), 100.0))
    assert (np.inf, 60.0, 15.0) == MEMORIES_S
    np.testing.assert_allclose(found, parts(), atol=0.12)
    np.testing.assert_allclose(np.einsum("pl,pij->lij", decays(lags_s), found), moments, atol=0.02)
    assert all(np.linalg.eigvalsh(part).min() > -1e-12 for part in found)


def test_moments_of_rows_count_pairs_that_are_there() -> None:
    rng = np.random.default_rng(1)
    people = []
    for _ in range(60):
        walk = np.zeros((500, 2))
        steps = rng.normal(size=(500, 2)) * np.sqrt(1 - np.exp(-2 / (15 * RATE_HZ)))
        for i in range(1, 500):
            walk[i] = np.exp(-1 / (15 * RATE_HZ)) * walk[i - 1] + steps[i]
        there = rng.random(walk.shape) < 0.7
        people.append((np.where(there, walk + rng.normal(size=2), 1e6), there))  # what is not there says nothing
    lags_s, moments, counts = row_moments(people, RATE_HZ)
    late = lags_s < 100
    wanted = np.exp(-lags_s / 15)[:, None] * [1.0, 1.0] + 1.0
    np.testing.assert_allclose(moments[late][:, [0, 1], [0, 1]], wanted[late], atol=0.35)
    assert (np.abs(moments[late][:, 0, 1]) < 0.35).all()
    assert (np.diff(counts) < 0).all()


def test_a_person_shorter_than_a_lag_has_no_pairs_of_it() -> None:
    rng = np.random.default_rng(2)
    long, short = rng.normal(size=(300, 2)), np.full((20, 2), 1e3)
    people = [(long, np.ones(long.shape, dtype=np.bool_)), (short, np.ones(short.shape, dtype=np.bool_))]
    lags_s, moments, _ = row_moments(people, RATE_HZ)
    assert np.abs(moments[lags_s > 10]).max() < 1
    assert moments[0].min() > 1e3


def test_the_end_of_a_chunk_tells_more_of_the_next_one() -> None:
    """Two chunks in a row as one vector of rows: its covariance, in cosines, has both moments as blocks."""
    modes = np.cos(np.pi * np.arange(4)[:, None] * (np.arange(N) + 0.5) / N)
    modes /= np.linalg.norm(modes, axis=1, keepdims=True)
    row = np.arange(2 * N)
    for p, memory in enumerate(MEMORIES_S):
        both = decays(np.abs(row[:, None] - row).ravel() / RATE_HZ)[p].reshape(2 * N, 2 * N)
        same, later = chunk_moments(memory, modes, RATE_HZ)
        np.testing.assert_allclose(same, modes @ both[:N, :N] @ modes.T, atol=1e-12)
        np.testing.assert_allclose(later, modes @ both[N:, :N] @ modes.T, atol=1e-12)
        if p:
            assert later[0, 1] < -0.01  # the first cosine falls: a chunk that rises ends high, and the next one is high
            assert later[1, 0] > 0.01


def test_looking_back_has_something_to_divide_by() -> None:
    """Of three people, what stays has two directions; the others must not be without any variance."""
    tables = joint(calibrate_joint(Corpus.of(recordings()[:3], N)))
    for own in tables.covariances:
        values = np.linalg.eigvalsh(own)
        assert values.min() > 0.9e-5 * values.max()


def test_one_score_moves_too() -> None:
    tables = joint(calibrate_joint(Corpus.of(recordings(), N), shed_identity=1.0))
    assert tables.moves is not None
    assert tables.moves.shape == (2, 1, 1)
    assert tables.moves[0, 0, 0] == 1.0
    assert 0 < tables.moves[1, 0, 0] < 1
