import numpy as np
import pytest

from eyestream_lab.study import recovery
from eyestream_lab.study.recovery import Dynamics, Gains, filtered, smoothed
from eyestream_lab.study.steil import Scale, published, repaired


def joint_estimates(dynamics, noise, seen):
    """The same estimates from the joint normal law of everything: causal and with all chunks."""
    steps, size = seen.shape
    lags = np.abs(np.subtract.outer(np.arange(steps), np.arange(steps)))
    covariance = np.kron(np.ones((steps, steps)), dynamics.between) + np.kron(
        dynamics.persistence**lags, dynamics.within
    )
    noisy = covariance + np.kron(np.eye(steps), np.diag(noise))
    everything = (covariance @ np.linalg.solve(noisy, seen.ravel())).reshape(steps, size)
    causal = []
    for t in range(1, steps + 1):
        part = slice(0, t * size)
        causal.append((covariance[part, part] @ np.linalg.solve(noisy[part, part], seen[:t].ravel()))[-size:])
    return np.array(causal), everything


def test_kalman_filter_and_smoother_are_the_best_linear_estimates():
    rng = np.random.default_rng(1)
    root = rng.normal(size=(2, 3, 3))
    dynamics = Dynamics(root[0] @ root[0].T, root[1] @ root[1].T, 0.7)
    noise, seen = np.array([0.5, 2.0, 9.0]), rng.normal(size=(6, 3))
    causal, everything = joint_estimates(dynamics, noise, seen)
    gains = Gains.of(dynamics, noise, len(seen) + 3)  # made once, for sessions as long as any
    np.testing.assert_allclose(filtered(gains, seen), causal, atol=1e-8)
    np.testing.assert_allclose(smoothed(gains, seen), everything, atol=1e-6)


def test_dynamics_are_found_again():
    rng = np.random.default_rng(2)
    sequences = []
    for _ in range(60):
        person, state = rng.normal() * 2, rng.normal()
        values = []
        for _ in range(200):
            state = 0.8 * state + np.sqrt(1 - 0.64) * rng.normal()
            values.append([person + state])
        sequences.append(np.array(values))
    found = Dynamics.of(sequences)
    assert found.between[0, 0] == pytest.approx(4, rel=0.5)
    assert found.within[0, 0] == pytest.approx(1, rel=0.1)
    assert found.persistence == pytest.approx(0.8, abs=0.03)


def test_averaging_recovers_what_one_release_hides(world):
    settings = {"measured": "averaging", "source": "CFPA", "mechanism": "cfpa", "n": 32, "repeats": 100}
    records = recovery.measure(world, epsilon=48.0, **settings)
    assert [record["count"] for record in records] == [1, 3, 10, 32, 100]
    assert [record["spent"] for record in records][-1] == pytest.approx(4800)
    gained = [record["explained_variance_median"] for record in records]
    assert gained[-1] > gained[0] + 0.2
    # the difference signal's first coefficient is the last row: an average of ramps must not count as one of chunks
    records = recovery.measure(world, epsilon=480.0, **settings | {"source": "DCFPA", "mechanism": "dcfpa"})
    gained = [record["explained_variance_median"] for record in records]
    assert gained[-1] > gained[0] + 0.2


@pytest.mark.long
def test_more_knowledge_recovers_more(world):
    settings = {"measured": "filtering", "source": "CFPA", "mechanism": "cfpa", "n": 32, "repeats": 2}
    middling = recovery.measure(world, epsilon=480.0, **settings)
    found = [record["explained_variance_median"] for record in middling]
    assert found[0] < found[1] < found[3]
    strong = recovery.measure(world, epsilon=0.48, **settings)
    assert abs(strong[3]["explained_variance_median"]) < 0.05


def test_noise_of_steil_as_printed_and_repaired():
    scale = Scale(np.array([1.0, 0.0, 4.0]), 600, 2.0)
    np.testing.assert_allclose(scale.rate, [1 / 1200, np.inf, 1 / 4800])
    rng = np.random.default_rng(1)
    printed, mended = published(scale, 50_000, rng), repaired(scale, 50_000, rng)
    assert not printed[:, 1].any()
    assert not mended[:, 1].any()
    assert mended.std(axis=0)[[0, 2]] == pytest.approx(np.sqrt(2) * np.array([1200, 4800]), rel=0.02)
    assert printed[:, 0].std() == pytest.approx(13, rel=0.05)
